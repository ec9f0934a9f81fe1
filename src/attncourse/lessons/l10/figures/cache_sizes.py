"""What models keep of each token."""

from collections.abc import Mapping
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attncourse.model_bars import checked_models, plot_models
from attnlib import palette
from attnlib.checks import require_positive_int
from attnlib.plotting.page import drawn_for_phones, text_width

BAR, TITLE = 0.17, 0.3  # inches for a bar, and for the title above a model's bars
LABEL_ROOM = 0.75  # inches after the longest bar, for its size in words
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
    sizes = checked_models(
        models,
        parts="ways",
        holds="dict of bytes",
        kind="size in bytes",
        check=require_positive_int,
    )
    largest = max(max(of_model.values()) for of_model in sizes.values())
    reach = largest * text_width() / (text_width() - LABEL_ROOM)
    height = TITLE + BAR * len(next(iter(sizes.values())))
    return plot_models(sizes, height, partial(_draw_bars, reach=reach), list(sizes))


def amount(size: int) -> str:
    """Return bytes in words, as "4.5 MiB"; a KiB has 1024 of them."""
    unit = min((size.bit_length() - 1) // 10, len(UNITS) - 1)
    return f"{size / 1024**unit:.4g} {UNITS[unit]}"


def _draw_bars(ax: Axes, sizes: list[int], reach: float) -> None:
    """Draw bars below each other, with their sizes in words after them."""
    for i, size in enumerate(sizes):
        color = palette.head_color(i)
        ax.barh(i, size, height=0.8, facecolor=(color, 0.45), edgecolor=color)
        ax.annotate(
            amount(size), (size, i), (4, 0), textcoords="offset points", va="center",
            color=palette.INK, fontsize=8.5,
        )  # fmt: skip
    ax.set(xlim=(0, reach), ylim=(len(sizes) - 0.5, -0.5))
    ax.set_axis_off()
