"""Stacked bars are what the heads add, and their sum is the output."""

import pytest
import torch

from attnlib import palette, plotting

PARTS = torch.tensor([[1.0, 2.0, -1.0], [0.5, -1.0, -2.0]])


def test_bars_are_stacked_away_from_zero_and_dots_mark_their_sum():
    ax = plotting.plot_head_contributions(PARTS, PARTS.sum(0)).axes[0]
    bars = [(bar.get_y(), bar.get_height()) for bar in ax.patches]
    assert bars == [(0, 1), (0, 2), (0, -1), (1, 0.5), (0, -1), (-1, -2)]
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    assert dots.get_ydata().tolist() == [1.5, 1, -3]


def test_a_head_has_its_color_and_its_label():
    figure = plotting.plot_head_contributions(PARTS, PARTS.sum(0), labels=["who", "where"])
    for head, bars in enumerate(figure.axes[0].containers):
        assert bars.get_label() == ["who", "where"][head]
        assert all(bar.get_facecolor() == bars[0].get_facecolor() for bar in bars)
        assert bars[0].get_facecolor()[:3] == pytest.approx(
            tuple(int(palette.head_color(head)[i : i + 2], 16) / 255 for i in (1, 3, 5))
        )


def test_parts_that_leave_something_out_are_refused():
    with pytest.raises(ValueError, match=r"parts must sum to output, .* by up to 0\.5: .* bias"):
        plotting.plot_head_contributions(PARTS, PARTS.sum(0) + 0.5)
