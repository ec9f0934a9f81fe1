"""What heatmaps of every kind share: numbers in cells and token labels."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Colormap, Normalize
from torch import Tensor


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
            style = {"ha": "center", "va": "center", "fontsize": min(8.0, 19 * cell)}
            ax.text(j, i, pattern.format(value), color=color, **style)


def label_axis(axis: Axis, labels: Sequence[str] | None, count: int) -> None:
    """Label the `count` cells along an axis, or leave it bare."""
    if labels is None:
        axis.set_ticks([])
    else:
        # A token may hold a dollar sign; it is text, not mathematics.
        axis.set_ticks(range(count), [str(label).replace("$", r"\$") for label in labels])


def text_color_on(color: tuple[float, ...]) -> str:
    """Return near-black or near-white, whichever reads better on a cell of this color.

    These two aren't in the palette on purpose: a cell keeps its color in the dark copy of a
    figure, so its number must keep its color too.
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#050505" if luminance > 0.18 else "#fafafa"
