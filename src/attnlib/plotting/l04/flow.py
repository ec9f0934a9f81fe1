"""Several heads from input to output: all read X, and W_o brings them together."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_divisible
from attnlib.functional import merge_heads, scaled_dot_product_attention, split_heads
from attnlib.plotting._cells import draw_arrow, draw_matrix, label_axis, short_pattern
from attnlib.plotting._checks import checked_labels, checked_tensor
from attnlib.plotting._text import label_of
from attnlib.plotting._weights import draw_weights
from attnlib.plotting.style import TEXT_WIDTH, new_figure, signed_norm

GAP = 0.4  # inches between two columns; an arrow must fit
LABELS = 0.65  # inches for the tokens at the left
MARGIN = 0.08  # inches at the right and at the bottom
HEADROOM = 0.36  # inches above each matrix, for its title


def plot_flow(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    num_heads: int,
    tokens: Sequence[str] | None = None,
) -> Figure:
    """Draw multi-head attention on one sequence: X, each head's weights and output, joined, W_o.

    Everything is computed here from the matrices, so the panels belong together. Weights are drawn
    on the scale of weights, everything else on one signed scale.

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
    widths = (d, T, d_k, d, d)  # cells of the five columns
    cell = min((TEXT_WIDTH - LABELS - MARGIN - 4 * GAP) / sum(widths), 0.42)
    row = T * cell + HEADROOM  # inches from one head to the next
    height = num_heads * row + MARGIN
    figure, axes = new_figure(height=height, ncols=3 + 2 * num_heads)
    figure.set_layout_engine("none")  # the places below are exact
    panels = iter(axes)
    lefts = [LABELS + sum(widths[:i]) * cell + i * GAP for i in range(len(widths))]
    norm = signed_norm(max(t.abs().max().item() for t in (x, heads, merged, output)))

    def place(column: int, down: float, title: str, color: str = palette.INK) -> Axes:
        ax = next(panels)
        bottom = height - (down + 1) * row
        size = widths[column] * cell / TEXT_WIDTH, T * cell / height
        ax.set_position((lefts[column] / TEXT_WIDTH, bottom / height, *size))
        ax.set_title(title, pad=3, color=color)
        return ax

    middle = (num_heads - 1) / 2
    x_panel, merged_panel, output_panel = (
        place(column, middle, title)
        for column, title in ((0, "X"), (3, "joined"), (4, "joined @ W_o"))
    )
    for ax, matrix in ((x_panel, x), (merged_panel, merged), (output_panel, output)):
        draw_matrix(ax, matrix, norm, cell, short_pattern(matrix))
    label_axis(x_panel.yaxis, tokens, T, cell)
    for head in range(num_heads):
        color = palette.head_color(head)
        weights_panel = place(1, head, f"head {head + 1} looks", color)
        head_panel = place(2, head, "and brings", color)
        draw_weights(weights_panel, weights[head], None, None, cell=cell, numbers=True)
        draw_matrix(head_panel, heads[head], norm, cell, short_pattern(heads[head]))
        way = (x_panel, weights_panel, head_panel, merged_panel)
        for here, there in pairwise(way):
            draw_arrow(figure, here, there)
    draw_arrow(figure, merged_panel, output_panel)
    return figure
