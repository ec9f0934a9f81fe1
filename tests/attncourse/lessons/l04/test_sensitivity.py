"""Shades are sizes of gradients; what isn't read at all is left hatched."""

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
    assert image.get_extent() == [0, 3, 2.5, 0.5]  # numbers of the embedding; heads from 1
    assert image.norm.vmax == 3 and 0.5 <= image.norm.vmin < 1


def test_all_maps_share_one_scale():
    figure = figures.plot_sensitivity({"real": torch.rand(2, 5) + 1, "sliced": torch.rand(2, 5)})
    first, second = images(figure)
    assert first.norm is second.norm
