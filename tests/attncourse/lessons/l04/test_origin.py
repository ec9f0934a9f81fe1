"""Positions are shaded by the token that they belong to, and never in the color of a head."""

import torch
from matplotlib.colors import to_hex
from tools.figure_reading import legend

from attncourse.lessons.l04 import figures
from attnlib import palette

x = torch.arange(12.0).view(3, 4)
HEADS = list(x.view(3, 2, 2).transpose(0, 1))


def shades(ax):
    """The color of each position."""
    numbers = [int(text.get_text()) for text in ax.texts if text.get_text().isdigit()]
    return dict(zip(numbers, (to_hex(box.get_facecolor()) for box in ax.patches), strict=True))


def test_a_token_keeps_its_shade_wherever_its_numbers_go_and_titles_have_the_heads_colors():
    figure = figures.plot_origin({"x": [x], "heads": HEADS}, ["a", "b", "c"], ["one", "two"])
    left, right = map(shades, figure.axes)
    assert left == right
    assert len({left[n] for n in range(4)}) == 1  # the first token's numbers
    shown = {token: to_hex(mark.get_facecolor()) for token, mark in legend(figure).items()}
    assert shown == {"a": left[0], "b": left[4], "c": left[8]} and len(figure.legends) == 1
    colors = {text.get_text(): text.get_color() for text in figure.axes[1].texts}
    assert [colors["one"], colors["two"]] == [palette.head_color(0), palette.head_color(1)]


def test_no_token_has_a_color_that_means_something():
    meant = {*palette.DARK, *palette.WEIGHT_SCALE, *palette.SIGNED_SCALE}
    figure = figures.plot_origin({"x": [x.view(12, -1)]}, [str(i) for i in range(12)])
    used = set(shades(figure.axes[0]).values())
    assert len(used) == 12 and not used & meant
