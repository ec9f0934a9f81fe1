"""Figures look alike: one scale, taken from the palette."""

from matplotlib.colors import to_hex

from attnlib import palette
from attnlib.plotting.style import WEIGHT_MAP


def test_the_scale_is_the_palette_s():
    assert to_hex(WEIGHT_MAP(0.0)) == palette.WEIGHT_SCALE[0]
    assert to_hex(WEIGHT_MAP(1.0)) == palette.WEIGHT_SCALE[-1]
