"""Parts of all heatmaps: numbers in cells, token labels, legends, arrows between panels."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Patch
from torch import Tensor

from attnlib import palette
from attnlib.plotting.page import SMALLEST_TEXT, on_phone
from attnlib.plotting.style import SIGNED_MAP
from attnlib.plotting.text import LETTER, font_of, longest, plain_text

LABEL_LINE = 0.115  # inches; the height of a label
SMALLEST_NUMBER = 4.5  # points; a page can be enlarged
HATCHED: dict[str, Any] = {"fill": False, "hatch": "////", "edgecolor": palette.MUTED}


def write_numbers(
    ax: Axes, values: Tensor, scale: Colormap, norm: Normalize, pattern: str, cell: float
) -> None:
    """Write each value but NaN into its cell, dark on light cells and light on dark ones.

    A cell's smaller side, `cell` inches, decides the size of the numbers. Nothing is written if
    they would be too small to read.
    """
    if number_size(cell, 1) is None:
        return  # before formatting very many numbers
    size = number_size(cell, longest_number(values, pattern))
    if size is None:
        return
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            if not math.isnan(value):
                text, color = plain_text(pattern.format(value)), text_color_on(scale(norm(value)))
                ax.text(j, i, text, ha="center", va="center", fontsize=size, color=color)


def longest_number(values: Tensor, pattern: str) -> int:
    """Return how many letters the longest of the values but NaN has."""
    numbers = values[~values.isnan()].tolist()
    return max([1, *(len(pattern.format(value)) for value in numbers)])


def number_size(cell: float, letters: int) -> float | None:
    """Return the size in points of numbers in cells of `cell` inches; None if too small to read."""
    tallest, smallest = (36, SMALLEST_TEXT) if on_phone() else (19, SMALLEST_NUMBER)
    # A digit is 0.6 of its size wide; a tenth of the cell stays free between numbers.
    size = min(8.0, tallest * cell, 108 * cell / letters)
    return size if size >= smallest else None


def label_axis(
    axis: Axis, labels: Sequence[str] | None, count: int, cell: float = math.inf
) -> None:
    """Write labels, made by `label_of`, along an axis of `count` cells, or leave the axis bare.

    `cell` is a cell's size along the axis in inches. If there is no room for all labels, every
    second, third, ... cell has one, with a tick. Below narrow cells labels stand upright.
    """
    axis.set_tick_params(length=0)
    if labels is None:
        axis.set_ticks([])
        return
    every = max(1, math.ceil(LABEL_LINE / cell))
    upright = isinstance(axis, XAxis) and stand_upright(labels, cell)
    if isinstance(axis, XAxis):
        axis.set_tick_params(labelrotation=90 if upright else 0)
        every = every if upright else 1
    shown = labels[::every]
    axis.set_ticks(
        range(0, count, every), [plain_text(label) for label in shown], **font_of(*shown)
    )
    if every > 1:
        axis.set_tick_params(length=3)


def stand_upright(labels: Sequence[str], cell: float) -> bool:
    """Return whether labels are too long to lie side by side below cells of this width."""
    return LETTER * (longest(labels) + 1) > cell


def text_color_on(color: tuple[float, ...]) -> str:
    """Return black or all but white, whichever reads better on a cell of this color.

    These two aren't in the palette, because numbers keep their color in a figure's dark copy, as
    their cells do. Anything grayer falls below a contrast of 4.5 on the cells in between.
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.178 else "#fefefe"


def draw_matrix(
    ax: Axes,
    matrix: Tensor,
    norm: Normalize,
    cell: float,
    pattern: str | None,
    row: float | None = None,
) -> None:
    """Draw a matrix that isn't attention on the signed scale, without labels.

    Args:
        cell: width of a cell in inches.
        pattern: how to write each number, or None for colors alone.
        row: height of a cell in inches; its width if left out.
    """
    row = cell if row is None else row
    color_cells(ax, matrix, SIGNED_MAP, norm=norm, aspect=row / cell)
    ax.set_xticks([])
    ax.set_yticks([])
    frame(ax)
    if pattern is not None:
        write_numbers(ax, matrix, SIGNED_MAP, norm, pattern, min(row, cell))


def color_cells(ax: Axes, values: Tensor, scale: Colormap, **options: Any) -> None:
    """Draw each value as a cell of its color, the first row on top; options go to `Axes.imshow`."""
    ax.imshow(values.numpy(), cmap=scale, interpolation="none", origin="upper", **options)


def frame(ax: Axes) -> None:
    """Frame a map with hairlines."""
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(palette.LINE)


def short_pattern(matrix: Tensor) -> str:
    """Return the pattern for a matrix's numbers: without decimals if they are whole."""
    return "{:.0f}" if (matrix == matrix.round()).all() else "{:.2f}"


def add_color_bar(
    figure: Figure, axes: Any, colors: ScalarMappable, *, shrink: float = 1.0, **options: Any
) -> Colorbar:
    """Show what the colors of maps mean: beside the maps, or above them on a phone.

    `shrink` is the bar's height / the maps', where it is beside them; options go to
    `Figure.colorbar`.
    """
    place = {"location": "top", "shrink": 0.8} if on_phone() else {"shrink": shrink}
    bar = figure.colorbar(colors, ax=axes, aspect=20, pad=0.02, **place, **options)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelcolor=palette.MUTED)  # as the widgets' legends
    bar.ax.yaxis.label.set_color(palette.MUTED)
    bar.ax.xaxis.label.set_color(palette.MUTED)
    return bar


def meanings_of(*, hatched: bool, blank: bool) -> list[Patch]:
    """Return the legend's entries for weights without a color, of the kinds that occur."""
    meanings = []
    if hatched:
        meanings.append(Patch(label="hatched: may look nowhere", **HATCHED))
    if blank:
        meanings.append(Patch(label="blank: may not look", fill=False, edgecolor=palette.MUTED))
    return meanings


def add_meanings(figure: Figure, meanings: list[Patch]) -> None:
    """Show what cells without a color mean: below the maps, or above them on a phone."""
    place: Any = "outside upper right" if on_phone() else "outside lower right"
    figure.legend(
        handles=meanings, loc=place, fontsize=9, frameon=False, handleheight=1, handlelength=1.6
    )


def draw_arrow(figure: Figure, start: Axes, end: Axes, *, down: bool = False) -> None:
    """Draw an arrow from the right of one panel to the left of another, or down to its title."""
    leave, arrive = ((0.5, 0.0), (0.5, 1.0)) if down else ((1.0, 0.5), (0.0, 0.5))
    figure.add_artist(
        ConnectionPatch(
            leave, arrive, "axes fraction", "axes fraction", axesA=start, axesB=end,
            arrowstyle="-|>", color=palette.MUTED, linewidth=0.9,
            shrinkA=4, shrinkB=17 if down else 4,
        )
    )  # fmt: skip
