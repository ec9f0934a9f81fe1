"""Bars on one scale say how many bytes models keep."""

import pytest

from attncourse.lessons.l10 import figures
from attncourse.lessons.l10.figures.cache_sizes import amount

MODELS = {"small": {"kept": 1024, "whole": 4096}, "large": {"kept": 3 * 2**20, "whole": 2**20}}


def test_all_bars_have_one_scale_that_begins_at_0():
    axes = figures.plot_cache_sizes(MODELS).axes
    assert len({ax.get_xlim() for ax in axes}) == 1 and axes[0].get_xlim()[0] == 0
    for ax, sizes in zip(axes, MODELS.values(), strict=True):
        assert [bar.get_width() for bar in ax.patches] == list(sizes.values())
        assert {bar.get_x() for bar in ax.patches} == {0}


def test_the_longest_bar_leaves_room_for_its_words():
    figure = figures.plot_cache_sizes(MODELS)
    assert figure.axes[0].get_xlim()[1] > 3 * 2**20
    figure.draw_without_rendering()
    for ax in figure.axes:
        for text in ax.texts:
            assert text.get_window_extent().x1 <= figure.bbox.x1


def test_sizes_stand_behind_the_bars_and_names_above():
    figure = figures.plot_cache_sizes(MODELS)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["small", "large"]
    words = [[text.get_text() for text in ax.texts] for ax in figure.axes]
    assert words == [["1 KiB", "4 KiB"], ["3 MiB", "1 MiB"]]


def test_a_way_has_one_color_in_all_models_and_its_name_in_the_legend():
    figure = figures.plot_cache_sizes(MODELS)
    (names,) = [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]
    assert names == ["kept", "whole"]
    for bars in zip(*(ax.patches for ax in figure.axes), strict=True):
        assert len({bar.get_edgecolor() for bar in bars}) == 1


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1, "1 B"), (1023, "1023 B"), (36 * 1024, "36 KiB"), (69_120, "67.5 KiB"),
        (4_718_592, "4.5 MiB"), (2**40, "1 TiB"), (5 * 2**52, "2.048e+04 TiB"),
    ],
)  # fmt: skip
def test_bytes_are_said_in_words(size, words):
    assert amount(size) == words
