"""Several heads from input to output: all read X, and W_o brings them together."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from torch import Tensor

from attnlib import palette
from attnlib.checks import require_divisible
from attnlib.functional import merge_heads, scaled_dot_product_attention, split_heads
from attnlib.plotting.cells import draw_arrow, draw_matrix, label_axis, short_pattern
from attnlib.plotting.checks import checked_labels, checked_tensor
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure, signed_norm
from attnlib.plotting.text import label_of
from attnlib.plotting.weights import draw_weights

GAP = 0.4  # inches between two columns; an arrow must fit
LABELS = 0.65  # inches for the tokens at the left
MARGIN = 0.08  # inches at the right and at the bottom
SHORT_GAP, RAIL = 0.25, 0.3  # inches, on a phone: between columns; for the way down at the left
HEADROOM = 0.32  # inches above each matrix, for its title
GROWN = 1.4  # times; the result has longer numbers, and on a phone a line of its own
CELL, ROW = 0.42, 0.33  # inches; the largest cells
# How many rows of matrices down each stage of a head stands: the scores between Q and K, the output
# between K and V, so that the arrow from V passes below the weights.
DOWN = {"Q": 0, "K": 1, "V": 2, "scores": 0.5, "weights": 0.5, "output": 1.25}
ENDS = {"Q": "scores", "K": "scores", "scores": "weights", "weights": "output", "V": "output"}


@drawn_for_phones
def plot_flow(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    num_heads: int,
    tokens: Sequence[str] | None = None,
) -> Figure:
    """Draw multi-head attention on one sequence: every matrix of each head, then joined @ W_o.

    Everything is computed here from the matrices, so the panels belong together. Weights are drawn
    on the scale of weights, everything else on one signed scale. A line in a head's color marks its
    columns of the joined matrix, and the rows of W_o that these meet.

    Args:
        x: [T, d].
        w_q, w_k, w_v: [d, d], all heads side by side (x @ w_q).
        w_o: [d, d].
        num_heads: h; must divide d.
        tokens: T labels of the rows.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: tensors of other shapes, heads that don't fit, or labels that don't.
    """
    x = checked_tensor("x", x, "T d")
    T, d = x.shape
    w_q, w_k, w_v, w_o = (
        checked_tensor(name, w, "d d", d=d)
        for name, w in (("w_q", w_q), ("w_k", w_k), ("w_v", w_v), ("w_o", w_o))
    )
    require_divisible(d, num_heads)
    if tokens is not None:
        tokens = checked_labels("tokens", tokens, T, "row of x")
        tokens = [label_of(token, LABELS) for token in tokens]
    q, k, v = (split_heads((x @ w)[None], num_heads) for w in (w_q, w_k, w_v))
    heads, weights = scaled_dot_product_attention(q, k, v)
    merged = merge_heads(heads)[0]
    heads, weights, output = heads[0], weights[0], merged @ w_o

    d_k = heads.shape[-1]
    width = text_width()
    widths = (d, d_k, T, T, d_k)  # cells of the five columns of a head
    if on_phone():  # X stands above the heads, the product below its factors
        room = width - RAIL - MARGIN
        cells = ((room - 3 * SHORT_GAP) / sum(widths[1:]), (room - SHORT_GAP) / (2 * d))
        cell = min(*cells, (width - LABELS - MARGIN) / d, CELL)
    else:
        room = width - LABELS - MARGIN
        cell = min((room - 4 * GAP) / sum(widths), (room - 2 * GAP) / (3 * d), CELL)
    row = min(cell, ROW)
    line = T * row + HEADROOM  # inches from one of Q, K, V to the next
    last = d * row + HEADROOM  # and for W_o
    if on_phone():
        above, below = line, line + (GROWN - 1) * T * row
        gap, left, grown = SHORT_GAP, RAIL - widths[0] * cell - SHORT_GAP, GROWN
        x_place = (LABELS, 0.0)
    else:
        above, below = 0.0, 0.0
        gap, left, grown = GAP, LABELS, 1.0
        x_place = (LABELS, (3 * num_heads - 1) / 2 * line)
    top = above + 3 * num_heads * line
    height = top + last + below + MARGIN
    lefts = [left + sum(widths[:i]) * cell + i * gap for i in range(len(widths))]
    figure, axes = new_figure(height=height, ncols=4 + 6 * num_heads)
    figure.set_layout_engine("none")  # the places below are exact
    panels = iter(axes)
    scores = q[0] @ k[0].transpose(-2, -1)
    signed = (x, q, k, v, scores, heads, merged, w_o, output)
    norm = signed_norm(max(t.abs().max().item() for t in signed))

    def place(
        matrix: Tensor, left: float, top: float, title: str, color: str = palette.INK,
        *, grown: float = 1.0,
    ) -> Axes:  # fmt: skip
        ax: Axes = next(panels)
        rows, columns = matrix.shape
        bottom = height - top - HEADROOM - rows * row * grown
        size = columns * cell * grown / width, rows * row * grown / height
        ax.set_position((left / width, bottom / height, *size))
        ax.set_title(title, pad=3, color=color)
        if on_phone():
            ax.title.set_fontsize(9)
        return ax

    def draw(matrix: Tensor, *at: Any, grown: float = 1.0) -> Axes:
        ax = place(matrix, *at, grown=grown)
        draw_matrix(ax, matrix, norm, cell * grown, short_pattern(matrix), row * grown)
        return ax

    x_panel = draw(x, *x_place, "X")
    label_axis(x_panel.yaxis, tokens, T, row)
    reading: list[Axes] = []  # what is made from X
    for head in range(num_heads):
        color = palette.head_color(head)
        tops = {stage: above + (3 * head + down) * line for stage, down in DOWN.items()}
        stages = {
            name: draw(matrix[0, head], lefts[1], tops[name], name, color)
            for name, matrix in {"Q": q, "K": k, "V": v}.items()
        }
        reading.extend(stages.values())
        if not on_phone():
            for here in stages.values():
                draw_arrow(figure, x_panel, here)
        stages["scores"] = draw(scores[head], lefts[2], tops["scores"], "Q @ K.T", color)
        looks = place(weights[head], lefts[3], tops["weights"], f"head {head + 1} looks", color)
        draw_weights(looks, weights[head], None, None, cell=cell, row=row, numbers=True)
        stages["weights"] = looks
        stages["output"] = draw(heads[head], lefts[4], tops["output"], "and brings", color)
        for start, end in ENDS.items():
            draw_arrow(figure, stages[start], stages[end])
    if on_phone():
        _draw_rail(figure, x_panel, reading)
    beside = (d - T) / 2 * row
    steps = [(LABELS + i * (d * cell + GAP), top + beside) for i in range(3)]
    if on_phone():
        steps = [(RAIL, top + beside), (RAIL + d * cell + gap, top), (RAIL, top + last)]
    joined_panel = draw(merged, *steps[0], "joined")
    mixing_panel = draw(w_o, steps[1][0], top, "W_o")
    draw(output, *steps[2], "joined @ W_o", grown=grown)
    for head in range(num_heads):
        ends, color = (head * d_k - 0.42, (head + 1) * d_k - 0.58), palette.head_color(head)
        for ax, x_ends, y_ends in (
            (joined_panel, ends, (T - 0.3, T - 0.3)),
            (mixing_panel, (-0.7, -0.7), ends),
        ):
            ax.plot(x_ends, y_ends, color=color, linewidth=3, clip_on=False)
    for ax, (columns, rows) in ((joined_panel, (d, T)), (mixing_panel, (d, d))):
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    return figure


def _draw_rail(figure: Figure, start: Axes, ends: Sequence[Axes]) -> None:
    """Lead from the left side of X down a rail, and from there into each matrix."""
    (width, height), x = figure.get_size_inches(), start.get_position()
    rail, above = RAIL / 3, x.y0 * height - 0.07
    middles = [end.get_position().get_points()[:, 1].mean() * height for end in ends]
    line: dict[str, Any] = {
        "color": palette.MUTED, "linewidth": 0.9, "transform": figure.dpi_scale_trans
    }  # fmt: skip
    figure.add_artist(Line2D([x.x0 * width, rail, rail], [above, above, min(middles)], **line))
    for end, middle in zip(ends, middles, strict=True):
        into = (end.get_position().x0 * width, middle)
        arrow = FancyArrowPatch(
            (rail, middle), into, arrowstyle="-|>", mutation_scale=10, shrinkA=0, shrinkB=4, **line
        )
        figure.add_artist(arrow)
