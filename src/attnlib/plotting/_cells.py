"""What heatmaps of every kind share: numbers in cells, token labels, arrows between panels."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch
from torch import Tensor

from attnlib import palette
from attnlib.plotting.style import SIGNED_MAP

LETTER = 0.075  # inches; about the width of a label's letter


def write_numbers(
    ax: Axes, values: Tensor, scale: Colormap, norm: Normalize, pattern: str, cell: float
) -> None:
    """Write each value but NaN into its cell, dark on light cells and light on dark ones.

    Args:
        cell: width of a cell in inches, which decides the size of the numbers.
    """
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            if math.isnan(value):
                continue
            color = text_color_on(scale(norm(value)))
            ax.text(
                j, i, pattern.format(value),
                ha="center", va="center", fontsize=min(8.0, 19 * cell), color=color,
            )  # fmt: skip


def label_axis(
    axis: Axis, labels: Sequence[str] | None, count: int, cell: float = math.inf
) -> None:
    """Label the `count` cells along an axis, or leave it bare.

    Args:
        cell: width of a cell in inches; labels below cells that are too narrow stand upright.
    """
    axis.set_tick_params(length=0)
    if labels is None:
        axis.set_ticks([])
        return
    axis.set_ticks(range(count), [plain_text(label) for label in labels])
    if isinstance(axis, XAxis):
        axis.set_tick_params(labelrotation=90 if stand_upright(labels, cell) else 0)


def plain_text(token: str) -> str:
    """Return a token for matplotlib to write: its dollar signs are text, not mathematics."""
    return token.replace("$", r"\$")


def stand_upright(labels: Sequence[str], cell: float) -> bool:
    """Tell whether labels are too long to lie side by side below cells of this width."""
    return LETTER * (longest(labels) + 1) > cell


def longest(labels: Sequence[str]) -> int:
    """Return the number of letters of the longest label."""
    return max(map(len, labels))


def text_color_on(color: tuple[float, ...]) -> str:
    """Return near-black or near-white, whichever reads better on a cell of this color.

    These two aren't in the palette on purpose: a cell keeps its color in the dark copy of a
    figure, so its number must keep its color too.
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#050505" if luminance > 0.18 else "#fafafa"


def draw_matrix(
    ax: Axes, matrix: Tensor, norm: Normalize, cell: float, pattern: str | None
) -> None:
    """Draw a matrix that isn't attention on the signed scale, without labels.

    Args:
        cell: width of a cell in inches, which decides the size of the numbers.
        pattern: how to write each number, or None for colors alone.
    """
    ax.imshow(matrix.numpy(), cmap=SIGNED_MAP, norm=norm, interpolation="none", aspect="equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(palette.LINE)
    if pattern is not None:
        write_numbers(ax, matrix, SIGNED_MAP, norm, pattern, cell)


def short_pattern(matrix: Tensor) -> str:
    """Return how to write a matrix's numbers: without decimals if they are whole."""
    return "{:.0f}" if (matrix == matrix.round()).all() else "{:.2f}"


def draw_arrow(figure: Figure, start: Axes, end: Axes) -> None:
    """Draw an arrow from the right side of one panel to the left side of another."""
    figure.add_artist(
        ConnectionPatch(
            (1, 0.5), (0, 0.5), "axes fraction", "axes fraction", axesA=start, axesB=end,
            arrowstyle="-|>", color=palette.MUTED, linewidth=0.9, shrinkA=4, shrinkB=4,
        )
    )  # fmt: skip
