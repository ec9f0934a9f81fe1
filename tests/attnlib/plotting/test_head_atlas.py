"""An atlas has a table per model, in which every head's score stands on one scale from 0 to 1."""

import pytest
import torch
from tools.figure_reading import drawn, panels, ticks, titles, written_in

from attnlib import palette, plotting
from attnlib.plotting.page import phone_copy

ROWS = ["verb>subject", "verb>object", "their>owner"]


@pytest.mark.parametrize(("count", "columns"), [(1, 5), (3, 5), (3, 2), (5, 3)])
def test_each_model_has_a_table_whose_lines_have_names(count, columns):
    tables = {f"seed {i}": torch.rand(3, 2) for i in range(count)}
    figure = plotting.plot_head_atlas(tables, ROWS, meaning="mass", columns=columns)
    assert titles(figure) == list(tables)
    for i, (ax, shares) in enumerate(zip(panels(figure), tables.values(), strict=True)):
        torch.testing.assert_close(drawn(ax.images[0]).float(), shares)
        assert ax.images[0].get_clim() == (0, 1)
        numbers = [[f"{share:.2f}" for share in row] for row in shares.tolist()]
        assert written_in(ax) == {(i, j): numbers[i][j] for i in range(3) for j in range(2)}
        assert ticks(ax.yaxis) == (ROWS if i % columns == 0 else [])
        assert ticks(ax.xaxis) == ["1", "2"]
        assert [one.get_color() for one in ax.get_xticklabels()] == palette.HEAD_COLORS[:2]
        assert ax.get_gridspec().ncols == min(count, columns)
    assert figure.axes[-1].get_ylabel() == "mass"
    for ax in panels(phone_copy(figure)):  # where numbers would have no room
        assert not ax.texts and ax.get_gridspec().ncols <= 2


def test_heads_without_room_have_no_number():
    (ax,) = panels(plotting.plot_head_atlas({"wide": torch.rand(3, 96)}, ROWS))
    heads = [int(text) for text in ticks(ax.xaxis)]
    assert 10 < len(heads) < 96 and heads == [*range(1, 97, heads[1] - 1)]
    colors = {label.get_position()[0]: label.get_color() for label in ax.get_xticklabels()}
    assert colors == {head - 1: palette.head_color(head - 1) for head in heads}
