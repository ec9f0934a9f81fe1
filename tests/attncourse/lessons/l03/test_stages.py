"""The stages of one head belong to the matrices that were given."""

import pytest
import torch
from tools.figure_reading import drawn_maps

from attncourse.lessons.l03 import figures
from attnlib import scaled_dot_product_attention


def test_the_stages_are_those_of_these_matrices_and_weights_keep_their_own_scale():
    x, w_q, w_k, w_v = (torch.randn(size) for size in ((5, 4), (4, 3), (4, 3), (4, 2)))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    output, weights = scaled_dot_product_attention(q, k, v)
    figure = figures.plot_stages(x, w_q, w_k, w_v, list("abcde"))
    stages = (x, q, k, v, q @ k.T / 3**0.5, weights, output)
    for panel, stage in zip(drawn_maps(figure), stages, strict=True):
        torch.testing.assert_close(panel.float(), stage, atol=1e-5, rtol=1e-4)
    limits = {ax.get_title(): ax.images[0].get_clim() for ax in figure.axes}
    assert limits.pop("weights") == (0, 1)
    assert all(low == -high and high > 0 for low, high in limits.values())


@pytest.mark.parametrize(("number", "size"), [(1, 7.5), (-1.25, 5)], ids=["short", "long"])
def test_numbers_are_large_and_stay_in_their_cells(number, size):
    figure = figures.plot_stages(number * torch.ones(3, 4), *[torch.eye(4)] * 2, torch.eye(4, 2))
    figure.canvas.draw()
    for ax in figure.axes:
        cell = ax.get_window_extent().width / ax.images[0].get_array().shape[1]
        assert all(text.get_window_extent().width <= cell for text in ax.texts)
        assert all(text.get_fontsize() >= size for text in ax.texts)
