"""Each head's colors stand above its columns of c_attn and beside its rows of c_proj."""

import torch
from matplotlib.colors import to_hex
from tools.figure_reading import ticks

from attncourse.lessons.l11 import figures
from attnlib import palette

D, HEADS = 6, 3


def test_a_head_has_its_columns_in_each_third_and_as_many_rows():
    figure = figures.plot_packed_heads(torch.randn(D, 3 * D), torch.randn(D, D), HEADS)
    columns, rows = figure.axes[:2]
    assert [columns.get_title(), rows.get_title()] == ["c_attn", "c_proj"]
    assert [box.get_x() for box in columns.patches] == [2 * i - 0.5 for i in range(3 * HEADS)]
    assert {box.get_width() for box in columns.patches} == {D / HEADS}
    assert [box.get_y() for box in rows.patches] == [2 * i - 0.5 for i in range(HEADS)]
    assert {box.get_height() for box in rows.patches} == {D / HEADS}
    colors = [palette.head_color(head) for head in range(HEADS)]
    assert [to_hex(box.get_facecolor()) for box in rows.patches] == colors
    assert [to_hex(box.get_facecolor()) for box in columns.patches] == 3 * colors
    assert ticks(columns.xaxis) == ["queries", "keys", "values"]
