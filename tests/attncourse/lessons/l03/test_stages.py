"""The stages of one head belong to the matrices that were given."""

import pytest
import torch
from tools.figure_reading import drawn_maps

from attncourse.lessons.l03 import figures
from attnlib import scaled_dot_product_attention


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
        figure = figures.plot_stages(x, w_q, w_k, w_v, list("abcde"))
        panels = [panel.float() for panel in drawn_maps(figure)]
        for panel, stage in zip(
            panels, (x, q, k, v, q @ k.T / 3**0.5, weights, output), strict=True
        ):
            torch.testing.assert_close(panel, stage, atol=1e-5, rtol=1e-4)

    def test_weights_keep_their_own_scale(self):
        figure = figures.plot_stages(torch.randn(3, 2), *[torch.eye(2)] * 3)
        limits = {ax.get_title(): ax.images[0].get_clim() for ax in figure.axes}
        assert limits.pop("weights") == (0, 1)
        assert all(low == -high and high > 0 for low, high in limits.values())

    def test_everything_stays_inside_the_figure(self):
        for d in (2, 4, 8):
            figure = figures.plot_stages(torch.randn(3, d), *[torch.eye(d)] * 3, ["token 0"] * 3)
            figure.canvas.draw()
            boxes = [ax.get_tightbbox() for ax in figure.axes]
            assert min(box.x0 for box in boxes) >= 0
            assert max(box.x1 for box in boxes) <= figure.bbox.x1
            assert max(box.y1 for box in boxes) <= figure.bbox.y1

    @pytest.mark.parametrize(("number", "size"), [(1, 7.5), (-1.25, 5)], ids=["short", "long"])
    def test_numbers_are_large_and_stay_in_their_cells(self, number, size):
        x = number * torch.ones(3, 4)
        figure = figures.plot_stages(x, *[torch.eye(4)] * 2, torch.eye(4, 2))
        figure.canvas.draw()
        for ax in figure.axes:
            cell = ax.get_window_extent().width / ax.images[0].get_array().shape[1]
            assert all(text.get_window_extent().width <= cell for text in ax.texts)
            assert all(text.get_fontsize() >= size for text in ax.texts)
