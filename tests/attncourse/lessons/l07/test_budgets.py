"""Each model's bar is cut into the shares of its parts."""

import pytest

from attncourse.lessons.l07 import figures

MODELS = {"small": {"tables": 30, "blocks": 70}, "large": {"tables": 1, "blocks": 999}}


def test_pieces_are_as_wide_as_their_shares_and_stand_side_by_side():
    figure = figures.plot_budgets(MODELS)
    for ax, counts in zip(figure.axes, MODELS.values(), strict=True):
        start = 0.0
        for piece, count in zip(ax.patches, counts.values(), strict=True):
            share = count / sum(counts.values())
            assert (piece.get_x(), piece.get_width()) == pytest.approx((start, share))
            start += share
        assert start == pytest.approx(1) and ax.get_xlim() == (0, 1)


def test_totals_stand_above_and_percents_only_where_there_is_room():
    small, large = figures.plot_budgets(MODELS).axes
    assert small.get_title(loc="left") == "small: 100"
    assert large.get_title(loc="left") == "large: 1,000"
    assert [text.get_text() for text in small.texts] == ["30%", "70%"]
    assert [text.get_text() for text in large.texts] == ["100%"]


def test_a_part_has_one_color_in_all_bars_and_its_name_in_the_legend():
    figure = figures.plot_budgets(MODELS)
    (names,) = [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]
    assert names == ["tables", "blocks"]
    for pieces in zip(*(ax.patches for ax in figure.axes), strict=True):
        assert len({piece.get_edgecolor() for piece in pieces}) == 1
    assert len({piece.get_edgecolor() for piece in figure.axes[0].patches}) == 2
