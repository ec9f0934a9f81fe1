"""Where the numbers of a tensor end up when it is cut into heads."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_tensor, shape_of
from attnlib.plotting.style import new_figure

CELL = 0.36  # inches
GAP = 0.8  # cells between two matrices


def plot_origin(
    panels: Mapping[str, Sequence[Tensor]], tokens: Sequence[str], titles: Sequence[str] = ()
) -> Figure:
    """Draw matrices of positions, colored by the token that each position belongs to.

    Fill a tensor [T, d] with 0, 1, 2, ... and reshape it: each number then tells where it came
    from. Number n belongs to token n // d, where d = (how many numbers there are) / T.

    Args:
        panels: title -> matrices [rows, columns] of such numbers, drawn beside each other.
        tokens: the T tokens, for the legend.
        titles: titles over the matrices of a panel that has several.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor of two dimensions.
    """
    for label, matrices in panels.items():
        for matrix in matrices:
            require_tensor(f"panels[{label!r}]", matrix)
            if matrix.dim() != 2:
                raise ValueError(
                    f"panels[{label!r}] must hold matrices [rows, columns], got {shape_of(matrix)}"
                )
    count = max(sum(m.numel() for m in matrices) for matrices in panels.values())
    width = count // len(tokens)
    widths = [sum(m.shape[1] + GAP for m in matrices) - GAP for matrices in panels.values()]
    tallest = max(m.shape[0] for matrices in panels.values() for m in matrices)
    figure, axes = new_figure(
        height=tallest * CELL + 0.95, ncols=len(panels), width_ratios=widths, squeeze=False
    )
    for ax, (label, matrices), total in zip(axes[0], panels.items(), widths, strict=True):
        left = 0.0
        for i, matrix in enumerate(matrices):
            _draw(ax, matrix, left, width)
            if titles and len(matrices) > 1:
                middle = left + matrix.shape[1] / 2
                style = {"ha": "center", "va": "bottom", "fontsize": 9}
                ax.text(middle, -0.1, titles[i], color=palette.head_color(i), **style)
            left += matrix.shape[1] + GAP
        ax.set(xlim=(-0.05, total + 0.05), ylim=(tallest + 0.05, -0.7), aspect="equal", title=label)
        ax.set_axis_off()
    handles = [
        Rectangle((0, 0), 1, 1, color=palette.HEAD_COLORS[i + 3]) for i in range(len(tokens))
    ]
    figure.legend(handles, tokens, loc="outside lower left", ncols=len(tokens))
    return figure


def _draw(ax: Axes, matrix: Tensor, left: float, width: int) -> None:
    for i, row in enumerate(matrix.tolist()):
        for j, number in enumerate(row):
            color = palette.HEAD_COLORS[int(number) // width + 3]
            box = Rectangle((left + j, i), 1, 1, facecolor=color, edgecolor=palette.PAPER)
            ax.add_patch(box)
            ax.text(
                left + j + 0.5, i + 0.5, f"{int(number)}",
                ha="center", va="center", fontsize=9, color="#fafafa",
            )  # fmt: skip
