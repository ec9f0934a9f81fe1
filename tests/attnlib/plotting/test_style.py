"""Figures look alike: one scale, taken from the palette."""

import matplotlib
import pytest
from matplotlib.colors import to_hex
from tools.figure_examples import EXAMPLES
from tools.figures import FIGURES

from attnlib import palette
from attnlib.plotting.style import WEIGHT_MAP


def test_the_scale_is_the_palette_s():
    assert to_hex(WEIGHT_MAP(0.0)) == palette.WEIGHT_SCALE[0]
    assert to_hex(WEIGHT_MAP(1.0)) == palette.WEIGHT_SCALE[-1]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_first_row_is_the_highest_whatever_the_reader_s_own_style(name):
    with matplotlib.rc_context({"image.origin": "lower"}):
        figure = FIGURES[name](**EXAMPLES[name].arguments)
    assert all(image.origin == "upper" for ax in figure.axes for image in ax.images)
