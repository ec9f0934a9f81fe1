"""Where the numbers of a tensor end up when it is cut into heads."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlib import palette
from attnlib.checks import checked_texts
from attnlib.plotting.cells import text_color_on
from attnlib.plotting.checks import checked_labels, checked_mapping, checked_tensors
from attnlib.plotting.page import drawn_for_phones, text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import font_of, name_entries, plain_text, set_title

CELL = 0.36  # inches
GAP = 0.8  # cells between two matrices
NARROWEST, MARGIN = 3.2, 0.3  # inches
HEADROOM, LEGEND = 0.42, 0.35  # inches above each line, and below all of them
Color = tuple[float, float, float, float]


@drawn_for_phones
def plot_origin(
    panels: Mapping[str, Sequence[Tensor]],
    tokens: Sequence[str],
    titles: Sequence[str] | None = None,
) -> Figure:
    """Draw matrices of positions, shaded by the token that each position belongs to.

    Fill a tensor [T, d] with 0, 1, 2, ... and reshape it: each number then tells where it came
    from. Number n belongs to token n // d, where d = (how many numbers there are) / T. Tokens are
    shades of gray from the first to the last, as every color of the course means a head, a query, a
    key or a weight.

    Args:
        panels: title -> matrices [rows, columns] of such numbers, drawn below each other.
        tokens: the T tokens, for the legend.
        titles: titles over the matrices of a panel that has several.

    Returns:
        A figure no wider than it must be, which a phone shows whole if the matrices are small; see
        `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a matrix of positions, tokens among which they
            can't be shared out, or titles that don't fit.
    """
    tokens = checked_texts("tokens", tokens)
    drawn = {
        title: checked_tensors(f"panels[{title!r}]", matrices, "rows columns")
        for title, matrices in checked_mapping("panels", panels, "list of matrices").items()
    }
    count = max(sum(m.numel() for m in matrices) for matrices in drawn.values())
    if count % len(tokens):
        raise ValueError(
            f"tokens must share out {count} positions evenly, got {len(tokens)} tokens"
        )
    for title, matrices in drawn.items():
        for i, matrix in enumerate(matrices):
            _require_positions(f"panels[{title!r}][{i}]", matrix, count)
    if titles is not None:
        titles = checked_labels("titles", titles, max(map(len, drawn.values())), "matrix")
    shades = _shades(len(tokens))
    color_of = [shade for shade in shades for _ in range(count // len(tokens))]  # position -> color
    widths = [sum(m.shape[1] + GAP for m in matrices) - GAP for matrices in drawn.values()]
    heights = [max(m.shape[0] for m in matrices) for matrices in drawn.values()]
    # Room for the titles over the matrices, in cells.
    tops = [0.7 if titles is not None and len(m) > 1 else 0.1 for m in drawn.values()]
    ratios = [rows + top for rows, top in zip(heights, tops, strict=True)]
    width = min(max(NARROWEST, max(widths) * CELL + MARGIN), text_width())
    height = sum(ratios) * CELL + len(drawn) * HEADROOM + LEGEND
    figure, axes = new_figure(width, height, nrows=len(drawn), height_ratios=ratios, squeeze=False)
    lines = zip(axes[:, 0], drawn.items(), widths, heights, tops, strict=True)
    for ax, (label, matrices), total, rows, top in lines:
        left = 0.0
        for i, matrix in enumerate(matrices):
            _draw_positions(ax, matrix, left, color_of)
            if titles is not None and len(matrices) > 1:
                middle = left + matrix.shape[1] / 2
                style = {"ha": "center", "va": "bottom", "fontsize": 9, **font_of(titles[i])}
                name = plain_text(titles[i])
                ax.text(middle, -0.1, name, color=palette.head_color(i), **style)
            left += matrix.shape[1] + GAP
        ax.set(xlim=(-0.05, total + 0.05), ylim=(rows + 0.05, -top), aspect="equal")
        set_title(ax, label, width)
        ax.set_axis_off()
    handles = [Rectangle((0, 0), 1, 1, color=shade) for shade in shades]
    numbered = map(str, range(len(tokens)))
    legend = figure.legend(handles, numbered, loc="outside lower left", ncols=min(len(tokens), 8))
    name_entries(legend, tokens)
    return figure


def _require_positions(name: str, matrix: Tensor, count: int) -> None:
    """Raise ValueError unless all numbers are whole and below `count`."""
    wrong = (matrix != matrix.round()) | (matrix < 0) | (matrix >= count)
    if wrong.any():
        raise ValueError(
            f"{name} must hold positions from 0 to {count - 1}, got {matrix[wrong][0].item():g}"
        )


def _shades(tokens: int) -> list[Color]:
    """Return grays from light to dark, all of them seen on light and on dark pages."""
    gray = LinearSegmentedColormap.from_list("gray", [palette.PAPER, palette.INK])
    return [gray((i + 0.5) / tokens) for i in range(tokens)]


def _draw_positions(ax: Axes, matrix: Tensor, left: float, color_of: Sequence[Color]) -> None:
    """Draw each position in its cell, with its color."""
    for i, row in enumerate(matrix.int().tolist()):
        for j, position in enumerate(row):
            color = color_of[position]
            box = Rectangle((left + j, i), 1, 1, facecolor=color, edgecolor=palette.PAPER)
            ax.add_patch(box)
            ax.text(
                left + j + 0.5, i + 0.5, f"{position}",
                ha="center", va="center", fontsize=9, color=text_color_on(color),
            )  # fmt: skip
