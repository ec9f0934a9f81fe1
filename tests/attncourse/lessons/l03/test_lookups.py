"""Queries among keys: the output and the weights are those of attention."""

import torch
from matplotlib.colors import to_hex

from attncourse.lessons.l03 import figures
from attncourse.lessons.l03.figures.lookups import convex_hull
from attnlib import palette, scaled_dot_product_attention


def test_the_diamond_is_the_output_and_labels_are_the_weights():
    at = torch.tensor([5.0, -5])
    queries, keys, values = (torch.randn(n, 2) + k * at for n, k in ((2, 2), (4, 1), (4, -1)))
    outputs, weights = scaled_dot_product_attention(queries, keys, values)
    axes = figures.plot_lookups(queries, keys, values).axes
    for ax, points in zip(axes, [torch.cat([keys, queries])] * 2 + [values] * 2, strict=True):
        assert all(ax.viewLim.contains(*point) for point in points.tolist())
    for i, ax in enumerate(axes[2:]):
        (diamond,) = (line for line in ax.lines if line.get_marker() == "D")
        assert to_hex(diamond.get_color()) == palette.QUERY_COLOR
        torch.testing.assert_close(torch.tensor(diamond.get_xydata()).float()[0], outputs[i])
        labels = [text.get_text() for text in ax.texts]
        assert labels == [f"v{j}: {w:.2f}" for j, w in enumerate(weights[i].tolist())]


def test_the_hull_holds_all_points_and_only_corners():
    square = torch.tensor([[0.0, 0], [2, 0], [2, 2], [0, 2]])
    inside = torch.tensor([[1.0, 1], [1, 0], [0.5, 1.5]])  # one of them on an edge
    corners = convex_hull(torch.cat([inside, square]))
    assert corners.tolist() == square.tolist()  # counterclockwise from the lower left
    assert convex_hull(torch.ones(3, 2)).tolist() == [[1, 1]]
