"""Each model's bar is cut into the shares of its parts."""

from itertools import accumulate

import pytest
from tools.figure_reading import legend

from attncourse.lessons.l07 import figures

MODELS = {"small": {"tables": 30, "blocks": 70}, "large": {"tables": 1, "blocks": 999}}


def test_pieces_are_as_wide_as_their_shares_and_have_a_color_and_a_percent():
    figure = figures.plot_budgets(MODELS)
    small, large = figure.axes
    for ax, counts in zip(figure.axes, MODELS.values(), strict=True):
        shares = [count / sum(counts.values()) for count in counts.values()]
        assert [piece.get_width() for piece in ax.patches] == pytest.approx(shares)
        ends = [piece.get_x() + piece.get_width() for piece in ax.patches]
        assert ends == pytest.approx([*accumulate(shares)]) and ax.get_xlim() == (0, 1)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["small: 100", "large: 1,000"]
    assert [text.get_text() for text in small.texts] == ["30%", "70%"]
    assert [text.get_text() for text in large.texts] == ["100%"]  # where there is room
    assert [*legend(figure)] == ["tables", "blocks"]
    colors, others = ([piece.get_edgecolor() for piece in ax.patches] for ax in figure.axes)
    assert colors == others and colors[0] != colors[1]
