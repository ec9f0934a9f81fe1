"""Curves show every seed and the seeds' median."""

import pytest
import torch
from tools.figure_reading import legend, ticks, titles

from attnlib import palette, plotting
from attnlib.plotting.page import phone_copy

VALUES = torch.tensor([[1.0, 2.0, 9.0], [4.0, 3.0, 5.0]])
PANELS = {
    "loss": {"pre": VALUES, "post": VALUES + 1}, "size": {"pre": 2 * VALUES, "post": VALUES},
    "c": {"pre": VALUES, "post": 3 * VALUES},
}  # fmt: skip


def draw(x, panels, **options):
    return plotting.plot_seed_curves(x, panels, x_label="depth", **options)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_curves_show_every_seed_and_join_their_medians(columns):
    figure = draw([2, 6], PANELS, log=["size"], columns=columns)
    assert titles(figure) == list(PANELS) and [*legend(figure)] == ["pre", "post"]
    assert figure.axes[0].get_gridspec().ncols == columns
    assert figure.axes[-1].get_xlabel() == "depth"
    for ax, (title, curves) in zip(figure.axes, PANELS.items(), strict=False):
        lines = iter(ax.lines)
        for i, values in enumerate(curves.values()):
            median, *seeds = (next(lines) for _ in range(4))
            assert median.get_ydata().tolist() == values.median(1).values.tolist()
            assert [seed.get_ydata().tolist() for seed in seeds] == values.T.tolist()
            assert all(line.get_xdata().tolist() == [2, 6] for line in (median, *seeds))
            assert {line.get_color() for line in (median, *seeds)} == {palette.head_color(i)}
            styles = [line.get_linestyle() for line in seeds]
            assert median.get_linestyle() != "None" and set(styles) == {"None"}
        assert next(lines, None) is None
        assert ax.get_yscale() == ("log" if title == "size" else "linear")
        assert ax.get_xscale() == "log" and ax.get_xticks().tolist() == [2, 6]
    assert {ax.get_gridspec().ncols for ax in phone_copy(figure).axes} == {1}


def test_many_points_make_a_line_a_seed_and_points_that_count_stand_evenly_apart():
    ax = draw(range(9), {"loss": {"a": torch.randn(9, 2)}}).axes[0]
    assert ax.get_xscale() == "linear"
    assert {line.get_marker() for line in ax.lines} <= {"", "None"}
    assert {line.get_linestyle() for line in ax.lines} == {"-"}
    ax = draw([0, 1, 2], {"loss": {"a": torch.ones(3, 2)}}, linear_x=True).axes[0]
    assert ax.get_xscale() == "linear" and ticks(ax.xaxis) == ["0", "1", "2"]
