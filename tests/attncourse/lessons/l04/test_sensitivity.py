"""Shades are sizes of gradients, on one scale; what isn't read at all is left hatched."""

import torch
from tools.figure_reading import drawn, images

from attncourse.lessons.l04 import figures


def test_shows_the_sizes_and_leaves_zeros_hatched():
    sizes = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.5]])
    figure = figures.plot_sensitivity({"real": sizes, "sliced": sizes / 2})
    image, second = images(figure)
    shown = drawn(image)
    assert torch.equal(shown == -1, sizes == 0)
    assert torch.equal(shown[sizes > 0].float(), sizes[sizes > 0])
    assert figure.axes[0].patch.get_hatch() and image.norm is second.norm
    assert image.get_extent() == [0, 3, 2.5, 0.5]  # numbers of the embedding; heads from 1
    assert image.norm.vmax == 3 and 0 < image.norm.vmin < 0.5
