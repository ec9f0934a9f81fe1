"""What the parameters of models are spent on."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib import palette
from attnlib.checks import require_count
from attnlib.plotting.checks import checked_mapping
from attnlib.plotting.page import drawn_for_phones, text_width
from attnlib.plotting.room import require_height
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import entries_abreast, label_of, name_entries, set_title

BAR = 0.62  # inches for a bar and the title above it
NARROWEST = 0.45  # inches of a piece in which its share can be written


@drawn_for_phones
def plot_budgets(models: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draw a bar per model, as long for each, cut into the shares of its parts.

    Args:
        models: name -> {part: number of parameters}; every model has the same parts.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: numbers that aren't counts, models of other parts or without
            parameters, or more models than a figure of 24 inches holds.
    """
    counted = {
        name: _checked_counts(f"models[{name!r}]", counts)
        for name, counts in checked_mapping("models", models, "dict of counts").items()
    }
    parts = list(next(iter(counted.values())))
    for name, counts in counted.items():
        if list(counts) != parts:
            raise ValueError(
                f"models must have the same parts in one order, got {parts} and, in {name!r}, "
                f"{list(counts)}"
            )
    abreast = entries_abreast([label_of(part) for part in parts])
    height = BAR * len(counted) + 0.22 * -(-len(parts) // abreast) + 0.15
    require_height("models", height, "draw fewer of them at a time")
    figure, axes = new_figure(height=height, nrows=len(counted), squeeze=False)
    for (ax,), (name, counts) in zip(axes, counted.items(), strict=True):
        _draw_bar(ax, list(counts.values()))
        set_title(ax, f"{name}: {sum(counts.values()):,}", text_width(), loc="left", fontsize=9.5)
    legend = figure.legend(
        axes[0, 0].patches, list(map(str, range(len(parts)))),
        loc="outside lower center", ncols=min(len(parts), abreast), handlelength=1.2,
    )  # fmt: skip
    name_entries(legend, parts)
    return figure


def _checked_counts(name: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Return parts and counts, or raise unless some count isn't 0."""
    found = checked_mapping(name, counts, "count")
    for part, count in found.items():
        require_count(f"{name}[{part!r}]", count)
    if not sum(found.values()):
        raise ValueError(f"{name} must hold counts of which some aren't 0, got {found}")
    return found


def _draw_bar(ax: Axes, counts: list[int]) -> None:
    """Draw shares from left to right, with percents where there is room."""
    start, total = 0.0, sum(counts)
    for i, count in enumerate(counts):
        share = count / total
        color = palette.head_color(i)
        ax.barh(0, share, left=start, height=1, facecolor=(color, 0.45), edgecolor=color)
        if share * text_width() >= NARROWEST:
            middle = start + share / 2
            ax.text(middle, 0, f"{share:.0%}", ha="center", va="center", fontsize=8.5)
        start += share
    ax.set(xlim=(0, 1), ylim=(-0.5, 0.5))
    ax.set_axis_off()
