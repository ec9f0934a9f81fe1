"""Bars on one scale say how many bytes models keep."""

import pytest
from tools.figure_reading import legend

from attncourse.lessons.l10 import figures
from attncourse.lessons.l10.figures.cache_sizes import amount

MODELS = {"small": {"kept": 1024, "whole": 4096}, "large": {"kept": 3 * 2**20, "whole": 2**20}}


def test_bars_on_one_scale_are_as_long_as_models_keep_bytes():
    figure = figures.plot_cache_sizes(MODELS)
    figure.draw_without_rendering()
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["small", "large"]
    words = [[text.get_text() for text in ax.texts] for ax in figure.axes]
    assert words == [["1 KiB", "4 KiB"], ["3 MiB", "1 MiB"]]
    assert [*legend(figure)] == ["kept", "whole"]
    ((low, high),) = {ax.get_xlim() for ax in figure.axes}
    assert low == 0 and high > 3 * 2**20
    for ax, sizes in zip(figure.axes, MODELS.values(), strict=True):
        assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [
            (0, size) for size in sizes.values()
        ]
        assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in ax.texts)
    for bars in zip(*(ax.patches for ax in figure.axes), strict=True):
        assert len({bar.get_edgecolor() for bar in bars}) == 1


@pytest.mark.parametrize(
    ("size", "words"),
    [(1023, "1023 B"), (69_120, "67.5 KiB"), (5 * 2**52, "2.048e+04 TiB")],
)  # fmt: skip
def test_bytes_are_said_in_words(size, words):
    assert amount(size) == words
