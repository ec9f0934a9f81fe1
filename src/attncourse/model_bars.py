"""A panel of bars per model, below each other, and one legend for all: figures of L07 and L10."""

from collections.abc import Callable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plotting.checks import checked_mapping, require_same_names
from attnlib.plotting.layout_limits import require_height
from attnlib.plotting.page import text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import entries_abreast, label_of, name_entries, set_title

Models = Mapping[str, Mapping[str, int]]  # name -> {part: number}


def checked_models(
    models: Models, *, parts: str, holds: str, kind: str, check: Callable[[str, int], None]
) -> dict[str, dict[str, int]]:
    """Return models, or raise unless all have the same parts in one order.

    Args:
        parts: what errors call the parts; `holds` what they call a model, and `kind` a number.
        check: raises unless a number, which it is given by its name in errors, can be drawn.

    Raises:
        TypeError, ValueError: something else than dicts, models of other parts, or what `check`
            raises.
    """
    found = {
        name: checked_mapping(f"models[{name!r}]", numbers, kind)
        for name, numbers in checked_mapping("models", models, holds).items()
    }
    for name, numbers in found.items():
        for part, number in numbers.items():
            check(f"models[{name!r}][{part!r}]", number)
    require_same_names("models", found, parts)
    return found


def plot_models(
    models: Models, height: float, draw: Callable[[Axes, list[int]], None], titles: list[str]
) -> Figure:
    """Draw a panel per model, as wide as the text.

    Args:
        models: name -> {part: number}, as `checked_models` returns them.
        height: inches of a panel with its title.
        draw: draws a model's numbers on its axes: one patch per part, in the parts' colors.
        titles: those of the panels.

    Raises:
        ValueError: more models than a figure of 24 inches holds.
    """
    parts = list(next(iter(models.values())))
    abreast = entries_abreast([label_of(part) for part in parts])
    height = height * len(models) + 0.22 * -(-len(parts) // abreast) + 0.15
    require_height("models", height, "draw fewer of them at a time")
    figure, axes = new_figure(height=height, nrows=len(models), squeeze=False)
    for (ax,), title, numbers in zip(axes, titles, models.values(), strict=True):
        draw(ax, list(numbers.values()))
        set_title(ax, title, text_width(), loc="left", fontsize=9.5)
    legend = figure.legend(
        axes[0, 0].patches, list(map(str, range(len(parts)))),
        loc="outside lower center", ncols=min(len(parts), abreast), handlelength=1.2,
    )  # fmt: skip
    name_entries(legend, parts)
    return figure
