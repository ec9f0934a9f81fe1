"""Shades are sizes of gradients; what isn't read at all is left hatched."""

import pytest
import torch
from tools.figure_reading import drawn, images

from attncourse.lessons.l04 import figures


def test_shows_the_sizes_and_leaves_zeros_hatched():
    sizes = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.5]])
    figure = figures.plot_sensitivity({"real": sizes})
    (image,) = images(figure)
    shown = drawn(image)
    assert torch.equal(shown == -1, sizes == 0)
    assert torch.equal(shown[sizes > 0].float(), sizes[sizes > 0])
    assert figure.axes[0].patch.get_hatch()


def test_all_maps_share_one_scale():
    figure = figures.plot_sensitivity({"real": torch.rand(2, 5) + 1, "sliced": torch.rand(2, 5)})
    first, second = images(figure)
    assert first.norm is second.norm


def test_one_size_alone_is_a_scale():
    figures.plot_sensitivity({"real": torch.eye(2)}).draw_without_rendering()


def test_what_has_no_size_is_refused():
    with pytest.raises(ValueError, match=r"maps must hold a number above 0"):
        figures.plot_sensitivity({"real": torch.zeros(2, 3), "sliced": torch.zeros(2, 3)})
    with pytest.raises(ValueError, match=r"maps\['real'\] must hold no negative number, got -1"):
        figures.plot_sensitivity({"real": -torch.eye(2)})
