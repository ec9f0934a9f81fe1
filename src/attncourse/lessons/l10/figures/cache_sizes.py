"""What models keep of each token."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib import palette
from attnlib.checks import require_positive_int
from attnlib.plotting.checks import checked_mapping
from attnlib.plotting.page import drawn_for_phones, text_width
from attnlib.plotting.room import require_height
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import entries_abreast, label_of, name_entries, set_title

BAR, TITLE = 0.17, 0.3  # inches for a bar, and for the title above a model's bars
LABEL_ROOM = 0.75  # inches behind the longest bar, for its size in words
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@drawn_for_phones
def plot_cache_sizes(models: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draw how many bytes models keep per token, in different ways, on one scale that begins at 0.

    Args:
        models: name -> {way of keeping: bytes}; every model has the same ways.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: bytes that aren't whole numbers of at least 1, models with other
            ways, or more models than a figure of 24 inches holds.
    """
    sizes = {
        name: _checked_sizes(f"models[{name!r}]", ways)
        for name, ways in checked_mapping("models", models, "dict of bytes").items()
    }
    ways = list(next(iter(sizes.values())))
    for name, of_model in sizes.items():
        if list(of_model) != ways:
            raise ValueError(
                f"models must have the same ways in one order, got {ways} and, in {name!r}, "
                f"{list(of_model)}"
            )
    abreast = entries_abreast([label_of(way) for way in ways])
    height = (TITLE + BAR * len(ways)) * len(sizes) + 0.22 * -(-len(ways) // abreast) + 0.15
    require_height("models", height, "draw fewer of them at a time")
    figure, axes = new_figure(height=height, nrows=len(sizes), squeeze=False)
    largest = max(max(of_model.values()) for of_model in sizes.values())
    reach = largest * text_width() / (text_width() - LABEL_ROOM)
    for (ax,), (name, of_model) in zip(axes, sizes.items(), strict=True):
        _draw_bars(ax, list(of_model.values()), reach)
        set_title(ax, name, text_width(), loc="left", fontsize=9.5)
    legend = figure.legend(
        axes[0, 0].patches, list(map(str, range(len(ways)))),
        loc="outside lower center", ncols=min(len(ways), abreast), handlelength=1.2,
    )  # fmt: skip
    name_entries(legend, ways)
    return figure


def amount(size: int) -> str:
    """Return bytes in words, as "4.5 MiB"; a KiB has 1024 of them."""
    unit = min((size.bit_length() - 1) // 10, len(UNITS) - 1)
    return f"{size / 1024**unit:.4g} {UNITS[unit]}"


def _checked_sizes(name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return ways and bytes, or raise unless these are whole numbers of at least 1."""
    found = checked_mapping(name, sizes, "size in bytes")
    for way, size in found.items():
        require_positive_int(f"{name}[{way!r}]", size)
    return found


def _draw_bars(ax: Axes, sizes: list[int], reach: float) -> None:
    """Draw bars below each other, with their sizes in words behind them."""
    for i, size in enumerate(sizes):
        color = palette.head_color(i)
        ax.barh(i, size, height=0.8, facecolor=(color, 0.45), edgecolor=color)
        ax.annotate(
            amount(size), (size, i), (4, 0), textcoords="offset points", va="center",
            color=palette.INK, fontsize=8.5,
        )  # fmt: skip
    ax.set(xlim=(0, reach), ylim=(len(sizes) - 0.5, -0.5))
    ax.set_axis_off()
