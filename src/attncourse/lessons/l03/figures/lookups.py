"""Queries among keys, and the mix that they get among the values, in the plane."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.functional import scaled_dot_product_attention
from attnlib.plotting.checks import checked_labels, checked_tensor
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import set_title

LABEL_OFFSET = torch.tensor([32.0, 18.0], dtype=torch.float64)  # points; labels are wide
LARGEST_DOT = 260.0  # points squared; the area of a dot that has all the weight


@drawn_for_phones
def plot_lookups(
    queries: Tensor, keys: Tensor, values: Tensor, *, titles: Sequence[str] | None = None
) -> Figure:
    """Draw each query among the keys (above), and its output among the values (below).

    A value's dot is as large as its weight. The shaded area is the convex hull of the values: all
    that can be reached by any weights. The outputs are computed here.

    Args:
        queries: [n, 2], drawn one a column.
        keys, values: [T, 2].
        titles: n titles.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: tensors of other shapes, or titles that don't fit.
    """
    queries = checked_tensor("queries", queries, "n 2")
    keys = checked_tensor("keys", keys, "T 2")
    values = checked_tensor("values", values, "T 2", T=len(keys))
    if titles is not None:
        titles = checked_labels("titles", titles, len(queries), "query")
    outputs, weights = scaled_dot_product_attention(queries, keys, values)
    if on_phone():  # a query a line: its keys on the left, the values on the right
        figure, axes = new_figure(
            height=1.75 * len(queries) + 0.3,
            nrows=len(queries), ncols=2, sharex="col", sharey="col", squeeze=False,
        )  # fmt: skip
        axes = axes.T
        for ax in axes[1]:  # the values' names stand where the axis would
            ax.tick_params(left=False, labelleft=False)
            ax.spines["left"].set_visible(False)
    else:
        figure, axes = new_figure(
            height=4.6, nrows=2, ncols=len(queries), sharex="row", sharey="row", squeeze=False
        )
    for i in range(len(queries)):
        _draw_keys(axes[0, i], queries[i], keys)
        _draw_values(axes[1, i], outputs[i], values, weights[i])
        if titles is not None:
            set_title(axes[0, i], titles[i], text_width() / len(axes.T))
    for line, name in zip(axes, ("query and keys", "values and output"), strict=True):
        if on_phone():
            line[-1].set_xlabel(name)
        else:
            line[0].set_ylabel(name)
    _frame(axes[0, 0], torch.cat([queries, keys, torch.zeros(1, 2)]))
    _frame(axes[1, 0], values)
    return figure


def convex_hull(points: Tensor) -> Tensor:
    """Return the corners of the convex hull of points [n, 2], counterclockwise.

    Andrew's monotone chain: the lower edge from left to right, then the upper edge back.
    """
    order = sorted(set(map(tuple, points.tolist())))
    if len(order) == 1:
        return points[:1]
    return torch.tensor(_chain(order)[:-1] + _chain(order[::-1])[:-1], dtype=points.dtype)


def _chain(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep the points at which the way turns left."""
    chain: list[tuple[float, float]] = []
    for x, y in points:
        while len(chain) >= 2:
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            chain.pop()
        chain.append((x, y))
    return chain


def _draw_keys(ax: Axes, query: Tensor, keys: Tensor) -> None:
    ax.axhline(0, color=palette.LINE, linewidth=0.8)
    ax.axvline(0, color=palette.LINE, linewidth=0.8)
    ax.plot(*keys.T.numpy(), "o", color=palette.KEY_COLOR, markersize=5)
    for j, (x, y) in enumerate(keys.tolist()):
        ax.annotate(f"k{j}", (x, y), (5, 4), textcoords="offset points", color=palette.KEY_COLOR)
    arrow = {"arrowstyle": "-|>", "color": palette.QUERY_COLOR, "linewidth": 1.8, "shrinkA": 0}
    ax.annotate("", tuple(query.tolist()), (0, 0), arrowprops={**arrow, "shrinkB": 0})


def _draw_values(ax: Axes, output: Tensor, values: Tensor, weights: Tensor) -> None:
    ax.fill(*convex_hull(values).T.numpy(), color=palette.LINE, alpha=0.45, linewidth=0)
    for weight, (x, y) in zip(weights.tolist(), values.tolist(), strict=True):
        line = {"color": palette.MUTED, "linewidth": 3 * weight}
        ax.plot([x, output[0].item()], [y, output[1].item()], **line)
    x, y = values.T.numpy()
    ax.scatter(x, y, s=12 + LARGEST_DOT * weights.numpy(), color=palette.KEY_COLOR)
    away = values - values.mean(0)  # labels stand outside, where nothing else is drawn
    away = LABEL_OFFSET * away / away.norm(dim=1, keepdim=True).clamp(min=1e-6)
    for j, (weight, place) in enumerate(zip(weights.tolist(), values.tolist(), strict=True)):
        ax.annotate(
            f"v{j}: {weight:.2f}", place, tuple(away[j].tolist()), textcoords="offset points",
            ha="center", va="center", color=palette.INK, fontsize=8.5,
        )  # fmt: skip
    ax.plot(*output.tolist(), "D", color=palette.QUERY_COLOR, markersize=7, label="output")


def _frame(ax: Axes, points: Tensor) -> None:
    """Show all points with room for their labels; rows of panels share their axes."""
    low, high = points.min(0).values, points.max(0).values
    room = 0.36 * (high - low).clamp(min=1e-6)
    ax.set_xlim((low - room)[0].item(), (high + room)[0].item())
    ax.set_ylim((low - room)[1].item(), (high + room)[1].item())
