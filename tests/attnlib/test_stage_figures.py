"""The figures of one head: they compute what they show, and refuse what doesn't fit."""

import pytest
import torch
from matplotlib.colors import to_hex

from attnlib import palette, plotting, scaled_dot_product_attention
from attnlib.plotting.l03.lookups import convex_hull


def shown(ax):
    return torch.tensor(ax.images[0].get_array().data)


class TestPlotStages:
    def test_shows_the_stages_that_belong_to_these_matrices(self):
        x, w_q, w_k, w_v = (
            torch.randn(5, 4),
            torch.randn(4, 3),
            torch.randn(4, 3),
            torch.randn(4, 2),
        )
        q, k, v = x @ w_q, x @ w_k, x @ w_v
        output, weights = scaled_dot_product_attention(q, k, v)
        figure = plotting.plot_stages(x, w_q, w_k, w_v, list("abcde"))
        panels = [shown(ax).float() for ax in figure.axes]
        for panel, stage in zip(
            panels, (x, q, k, v, q @ k.T / 3**0.5, weights, output), strict=True
        ):
            torch.testing.assert_close(panel, stage, atol=1e-5, rtol=1e-4)

    def test_weights_keep_their_own_scale(self):
        figure = plotting.plot_stages(torch.randn(3, 2), *[torch.eye(2)] * 3)
        limits = {ax.get_title(): ax.images[0].get_clim() for ax in figure.axes}
        assert limits.pop("weights") == (0, 1)
        assert all(low == -high and high > 0 for low, high in limits.values())

    def test_everything_stays_inside_the_figure(self):
        for d in (2, 4, 8):
            figure = plotting.plot_stages(torch.randn(3, d), *[torch.eye(d)] * 3, ["token 0"] * 3)
            figure.canvas.draw()
            boxes = [ax.get_tightbbox() for ax in figure.axes]
            assert min(box.x0 for box in boxes) >= 0
            assert max(box.x1 for box in boxes) <= figure.bbox.x1
            assert max(box.y1 for box in boxes) <= figure.bbox.y1

    def test_bad_input(self):
        x, eye = torch.randn(3, 2), torch.eye(2)
        with pytest.raises(ValueError, match=r"x must have shape \[T, d\], got \[1, 3, 2\]"):
            plotting.plot_stages(x[None], eye, eye, eye)
        with pytest.raises(ValueError, match="tokens must hold 3 labels, got 1"):
            plotting.plot_stages(x, eye, eye, eye, ["a"])
        with pytest.raises(TypeError, match=r"w_q must be a torch\.Tensor"):
            plotting.plot_stages(x, [[1.0]], eye, eye)


class TestPlotLookups:
    def test_the_diamond_is_the_output_and_labels_are_the_weights(self):
        queries, keys, values = torch.randn(2, 2), torch.randn(4, 2), torch.randn(4, 2)
        outputs, weights = scaled_dot_product_attention(queries, keys, values)
        axes = plotting.plot_lookups(queries, keys, values).axes
        for i, ax in enumerate(axes[2:]):
            (diamond,) = (line for line in ax.lines if line.get_marker() == "D")
            assert to_hex(diamond.get_color()) == palette.QUERY_COLOR
            torch.testing.assert_close(torch.tensor(diamond.get_xydata()).float()[0], outputs[i])
            labels = [text.get_text() for text in ax.texts]
            assert labels == [f"v{j}: {w:.2f}" for j, w in enumerate(weights[i].tolist())]

    def test_the_hull_holds_all_points_and_only_corners(self):
        square = torch.tensor([[0.0, 0], [2, 0], [2, 2], [0, 2]])
        inside = torch.tensor([[1.0, 1], [1, 0], [0.5, 1.5]])  # one of them on an edge
        hull = convex_hull(torch.cat([inside, square]))
        assert hull.tolist() == square.tolist()  # counterclockwise from the lower left
        points = torch.randn(40, 2)
        hull = convex_hull(points)
        edges = hull.roll(-1, 0) - hull
        offsets = points[:, None] - hull  # [40, corners, 2]
        turns = edges[:, 0] * offsets[..., 1] - edges[:, 1] * offsets[..., 0]
        assert (turns > -1e-6).all()  # every point lies to the left of every edge

    def test_bad_input(self):
        plane = torch.randn(3, 2)
        with pytest.raises(ValueError, match=r"keys must have shape \[T, 2\], got \[3, 4\]"):
            plotting.plot_lookups(plane, torch.randn(3, 4), plane)
        with pytest.raises(ValueError, match="titles must hold 3 labels, got 1: one per query"):
            plotting.plot_lookups(plane, plane, plane, titles=["a"])
