"""A window beside the whole map: where it lies, what is drawn in it, and what is refused."""

import re

import matplotlib
import pytest
import torch
from tools.figure_reading import drawn, hatched, images, legend, panels

from attnlib import palette
from attnlib.heatmap import attention_heatmap, attention_window
from attnlib.plotting import plot_window
from attnlib.plotting.style import STYLE

T = 1000
ALL = range(T)
ROWS, KEYS = range(480, 520), range(470, 530)


@pytest.fixture
def limited_window(q, limits):
    """Both maps of the second head under limits, and their figure."""
    whole = attention_heatmap(q, q, grid=100, **limits)[0, 1]
    window = attention_window(q, q, ROWS, KEYS, **limits)[0, 1]
    with matplotlib.rc_context(STYLE):
        figure = plot_window(whole, ALL, ALL, window, ROWS, KEYS, causal=True)
    return whole, window, figure


class TestPlotWindow:
    def test_the_frame_lies_where_the_window_does(self, limited_window):
        _, _, figure = limited_window
        left, right = panels(figure)
        (frame,) = [p for p in left.patches if not p.get_hatch()]
        box = frame.get_bbox()
        assert (box.x0, box.x1) == (KEYS.start - 0.5, KEYS.stop - 0.5) == right.get_xlim()
        assert (box.y1, box.y0) == (ROWS.stop - 0.5, ROWS.start - 0.5) == right.get_ylim()
        assert (box.y0, box.y1) != (box.x0, box.x1)  # queries and keys differ, so can be mixed up

    def test_lines_lead_from_the_frame_to_the_window(self, limited_window):
        _, _, figure = limited_window
        figure.canvas.draw()
        left, right = panels(figure)
        ends = [
            line.get_transform().transform(line.get_path().vertices)[[0, -1]]
            for line in figure.artists
        ]
        for (begin, end), row, height in zip(ends, (479.5, 519.5), (1, 0), strict=True):
            for found, wanted in (
                (begin, left.transData.transform((529.5, row))),
                (end, right.transAxes.transform((0, height))),
            ):
                assert found == pytest.approx(wanted, abs=0.5)  # pixels

    def test_colors_are_the_numbers_of_the_map_and_of_the_window(self, limited_window):
        whole, window, figure = limited_window
        left, right = map(drawn, images(figure))
        for found, numbers in ((left, whole), (right, window)):
            shown = found != -1
            assert shown.any() and not shown.all()
            torch.testing.assert_close(found[shown], numbers.double()[shown])
            assert (numbers[~shown] == 0).all()
        later = torch.tensor(KEYS) > torch.tensor(ROWS)[:, None]
        fully_masked = (torch.tensor(ROWS) < T // 2)[:, None]
        assert torch.equal(right == -1, later | fully_masked)

    def test_queries_are_hatched_in_both(self, limited_window):
        _, _, figure = limited_window
        left, right = panels(figure)
        assert hatched(left) == [(-0.5, T / 2 - 0.5)]
        assert hatched(right) == [(ROWS.start - 0.5, T / 2 - 0.5)]
        assert legend(figure) == ["hatched: may look nowhere", "blank: may not look"]

    def test_a_cell_with_unmasked_queries_does_not_hatch_its_fully_masked_ones(self, q, limits):
        whole = attention_heatmap(q, q, grid=3, **limits)[0, 0]  # cells of 334: the second is mixed
        window = attention_window(q, q, ROWS, KEYS, **limits)[0, 0]
        left, right = panels(plot_window(whole, ALL, ALL, window, ROWS, KEYS))
        assert hatched(left) == [(-0.5, 333.5)] and hatched(right) == []

    def test_blank_cells_of_the_window_alone_are_explained_too(self, q):
        whole = attention_heatmap(q, q, grid=1, causal=True)[:, :1]  # one cell, with all the weight
        window = attention_window(q, q, ROWS, KEYS, causal=True)[:, :1]
        figure = plot_window(whole, ALL, ALL, window, ROWS, KEYS, causal=True)
        assert legend(figure) == ["blank: may not look"]


def test_only_the_palette_s_colors_are_drawn_so_that_there_is_a_dark_copy(limited_window, tmp_path):
    *_, figure = limited_window
    with matplotlib.rc_context(STYLE):
        figure.savefig(tmp_path / "window.svg")
    svg = (tmp_path / "window.svg").read_text(encoding="utf-8")
    assert "share of a query" in svg  # a comment beside the letters' outlines
    colors = set(re.findall(r"(?:fill|stroke): (#\w+)", svg))
    assert {palette.MUTED, palette.INK, palette.LINE} <= colors <= set(palette.DARK)


BAD = {
    "a whole of heads": (lambda w: {"whole": torch.eye(50).repeat(3, 1, 1)}, ValueError,
        ["whole", "one map", "3"]),
    "a window of heads": (lambda w: {"window": w}, ValueError, ["window", "one map", "3"]),
    "no shares": (lambda w: {"window": w[0, 0] + 1}, ValueError, ["window", "1 or less"]),
    "a negative window": (lambda w: {"window": -w[0, 0]}, ValueError, ["window", "negative"]),
    "half a window": (lambda w: {"window": w[0, 0, :20]}, ValueError, ["rows", "20", "40 cells"]),
    "half a whole": (lambda w: {"all_keys": range(30)}, ValueError, ["all_keys", "30 cells"]),
    "beyond": (lambda w: {"rows": range(980, 1020)}, ValueError, ["rows", "all_rows", "1020"]),
    "before": (lambda w: {"all_keys": range(475, 975)}, ValueError, ["keys", "all_keys", "475"]),
    "another head": (lambda w: {"window": torch.eye(40, 60)}, ValueError, ["window", "head"]),
    "a window that isn't causal": (lambda w: {"causal": True, "whole": torch.eye(50)}, ValueError,
        ["causal", "window", "row 0"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, q):
    change, error, words = BAD[name]
    whole, window = attention_heatmap(q, q, grid=50), attention_window(q, q, ROWS, KEYS)
    good = {
        "whole": whole[0, 0], "all_rows": ALL, "all_keys": ALL,
        "window": window[0, 0], "rows": ROWS, "keys": KEYS,
    }  # fmt: skip
    plot_window(**good)
    with pytest.raises(error) as caught:
        plot_window(**{**good, **change(window)})
    assert all(word in str(caught.value) for word in words), caught.value
