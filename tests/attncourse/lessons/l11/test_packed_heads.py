"""Each head's colors stand above its columns of c_attn and beside its rows of c_proj."""

import pytest
import torch

from attncourse.lessons.l11 import figures
from attnlib import palette

D, HEADS = 6, 3


def draw():
    return figures.plot_packed_heads(torch.randn(D, 3 * D), torch.randn(D, D), HEADS)


def boxes(ax):
    """Where the heads' colors are: (color, x, y, width, height), from left to right or down."""
    return [
        (patch.get_facecolor(), *patch.get_xy(), patch.get_width(), patch.get_height())
        for patch in ax.patches
    ]


def test_a_head_has_its_columns_in_each_third_and_as_many_rows():
    columns, rows = draw().axes[:2]
    assert [box[1] for box in boxes(columns)] == [2 * i - 0.5 for i in range(3 * HEADS)]
    assert {box[3] for box in boxes(columns)} == {D / HEADS}
    assert [box[2] for box in boxes(rows)] == [2 * i - 0.5 for i in range(HEADS)]
    assert {box[4] for box in boxes(rows)} == {D / HEADS}
    colors = [box[0][:3] for box in boxes(rows)]
    assert [box[0][:3] for box in boxes(columns)] == 3 * colors
    wanted = palette.head_color(1)
    assert colors[1] == pytest.approx(tuple(int(wanted[i : i + 2], 16) / 255 for i in (1, 3, 5)))


def test_thirds_are_named():
    columns = draw().axes[0]
    names = [text.get_text() for text in columns.get_xticklabels()]
    assert names == ["queries", "keys", "values"]
    assert columns.get_xticks().tolist() == [(i + 0.5) * D - 0.5 for i in range(3)]
