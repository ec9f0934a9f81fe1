"""An atlas has a table per model, in which every head's score stands on one scale from 0 to 1."""

import pytest
import torch

from attnlib import palette, plotting

ROWS = ["verb>subject", "verb>object", "their>owner"]
SHARES = torch.tensor([[0.9, 0.1], [0.0, 0.97], [0.25, 0.5]])


def panels(count):
    return {f"seed {seed}": (SHARES + seed / 100).clamp(max=1) for seed in range(count)}


def test_every_model_has_a_table_of_its_own():
    *tables, legend = plotting.plot_head_atlas(panels(3), ROWS, meaning="mass").axes
    assert [ax.get_title() for ax in tables] == ["seed 0", "seed 1", "seed 2"]
    for ax, shares in zip(tables, panels(3).values(), strict=True):
        image = ax.images[0]
        torch.testing.assert_close(torch.tensor(image.get_array().data), shares.double())
        assert image.norm.vmin == 0 and image.norm.vmax == 1
    assert legend.get_ylabel() == "mass"


def test_numbers_stand_in_the_cells():
    figure = plotting.plot_head_atlas({"one": SHARES}, ROWS)
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written == ["0.90", "0.10", "0.00", "0.97", "0.25", "0.50"]


def test_rows_are_named_at_the_left_and_heads_numbered_from_1_in_their_colors():
    first, second, *_ = plotting.plot_head_atlas(panels(2), ROWS).axes
    assert [label.get_text() for label in first.get_yticklabels()] == ROWS
    assert [label.get_text() for label in second.get_yticklabels()] == []
    for ax in (first, second):
        heads = ax.get_xticklabels()
        assert [head.get_text() for head in heads] == ["1", "2"]
        assert [head.get_color() for head in heads] == palette.HEAD_COLORS[:2]


def test_each_line_of_panels_has_the_names_of_its_rows():
    *tables, _ = plotting.plot_head_atlas(panels(3), ROWS, columns=2).axes
    named = [bool(ax.get_yticklabels()) for ax in tables if ax.images]
    assert named == [True, False, True]


@pytest.mark.parametrize("number", [-0.1, 1.1])
def test_what_is_no_share_is_refused(number):
    wrong = SHARES.index_fill(1, torch.tensor(1), number)
    with pytest.raises(ValueError, match=r"panels\['one'\] must hold shares from 0 to 1"):
        plotting.plot_head_atlas({"one": wrong}, ROWS)
