"""Several heads from input to output: all read X, and W_o brings them together."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_divisible, require_floating, shape_of
from attnlib.functional import merge_heads, scaled_dot_product_attention, split_heads
from attnlib.plotting._cells import draw_arrow, draw_matrix, label_axis
from attnlib.plotting.heads import draw_map
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
    for name, value in (("x", x), ("w_q", w_q), ("w_k", w_k), ("w_v", w_v), ("w_o", w_o)):
        require_floating(name, value)
        if value.dim() != 2 or value.shape[-1] != x.shape[-1]:
            raise ValueError(
                f"{name} must have two dimensions and end in d={x.shape[-1]}, got {shape_of(value)}"
            )
    require_divisible(x.shape[1], num_heads)
    if tokens is not None and len(tokens) != len(x):
        raise ValueError(f"tokens must hold {len(x)} labels, got {len(tokens)}")
    x, w_q, w_k, w_v, w_o = (t.detach().to("cpu", torch.float64) for t in (x, w_q, w_k, w_v, w_o))
    q, k, v = (split_heads((x @ w)[None], num_heads) for w in (w_q, w_k, w_v))
    heads, weights = scaled_dot_product_attention(q, k, v)
    joined = merge_heads(heads)[0]
    heads, weights, output = heads[0], weights[0], joined @ w_o

    (T, d), d_k = x.shape, heads.shape[-1]
    widths = (d, T, d_k, d, d)  # cells of the five columns
    cell = min((TEXT_WIDTH - LABELS - MARGIN - 4 * GAP) / sum(widths), 0.42)
    row = T * cell + HEADROOM  # inches from one head to the next
    height = num_heads * row + MARGIN
    figure, axes = new_figure(height=height, ncols=3 + 2 * num_heads)
    figure.set_layout_engine("none")  # the places below are exact
    panels = iter(axes)
    lefts = [LABELS + sum(widths[:i]) * cell + i * GAP for i in range(len(widths))]
    norm = signed_norm(max(t.abs().max().item() for t in (x, heads, joined, output)))

    def place(column: int, down: float, title: str, color: str = palette.INK) -> Axes:
        ax = next(panels)
        bottom = height - (down + 1) * row
        size = widths[column] * cell / TEXT_WIDTH, T * cell / height
        ax.set_position((lefts[column] / TEXT_WIDTH, bottom / height, *size))
        ax.set_title(title, pad=3, color=color)
        return ax

    middle = (num_heads - 1) / 2
    start, together, end = (
        place(column, middle, title)
        for column, title in ((0, "X"), (3, "joined"), (4, "joined @ W_o"))
    )
    for ax, matrix in ((start, x), (together, joined), (end, output)):
        draw_matrix(ax, matrix, norm, cell)
    label_axis(start.yaxis, tokens, T)
    for head in range(num_heads):
        color = palette.head_color(head)
        looks = place(1, head, f"head {head + 1} looks", color)
        brings = place(2, head, "and brings", color)
        draw_map(looks, weights[head], None, None, cell=cell, numbers=True)
        draw_matrix(brings, heads[head], norm, cell)
        for here, there in ((start, looks), (looks, brings), (brings, together)):
            draw_arrow(figure, here, there)
    draw_arrow(figure, together, end)
    return figure
