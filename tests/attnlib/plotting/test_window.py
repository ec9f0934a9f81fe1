"""A window beside the whole map: where it lies, and what is drawn in both."""

import re

import matplotlib
import pytest
import torch
from tools.figure_reading import drawn, hatched, legend, panels

from attnlib import palette
from attnlib.heatmap import attention_heatmap, attention_window
from attnlib.plotting import plot_window
from attnlib.plotting.page import phone_copy
from attnlib.plotting.style import STYLE

T = 1000
ALL = range(T)
ROWS, KEYS = range(480, 520), range(470, 530)


def maps(grid, **limits):
    q = 3 * torch.randn(1, 2, T, 8)
    whole = attention_heatmap(q, q, grid=grid, **limits)[0, 1]
    return whole, attention_window(q, q, ROWS, KEYS, **limits)[0, 1]


def draw(whole, window, **options):
    return plot_window(whole, ALL, ALL, window, ROWS, KEYS, **options)


def test_both_maps_read_as_they_were_computed():
    limits = {"causal": True, "key_mask": torch.arange(T)[None] >= T // 2}
    whole, window = maps(100, **limits)
    figure = draw(whole, window, causal=True)
    left, right = panels(figure)
    blind = torch.arange(T) < T // 2
    for ax, numbers, rows, keys in (
        (left, whole, ALL[::10], ALL[::10]),
        (right, window, ROWS, KEYS),
    ):
        last = torch.tensor(rows) + (9 if ax is left else 0)  # query of a cell
        hidden = blind[rows[0] : rows[-1] + 1 : rows.step, None]
        hidden = hidden | (torch.tensor(keys) > last[:, None])
        torch.testing.assert_close(drawn(ax.images[0]), numbers.double().masked_fill(hidden, -1))
    assert hatched(left) == [(-0.5, T / 2 - 0.5)]
    assert hatched(right) == [(ROWS.start - 0.5, T / 2 - 0.5)]
    assert [text.split(":")[0] for text in legend(figure)] == ["hatched", "blank"]


def test_the_frame_lies_where_the_window_does_and_lines_lead_to_it():
    whole = draw(*maps(100))
    for figure, corners in ((whole, ((1, 0), (1, 1))), (phone_copy(whole), ((0, 1), (1, 1)))):
        figure.canvas.draw()
        left, right = panels(figure)
        (frame,) = [p for p in left.patches if not p.get_hatch()]
        box = frame.get_bbox()
        assert (box.x0, box.x1) == (469.5, 529.5) == right.get_xlim()
        assert (box.y1, box.y0) == (519.5, 479.5) == right.get_ylim()
        ends = [
            line.get_transform().transform(line.get_path().vertices)[[0, -1]]
            for line in figure.artists
        ]
        on_page = figure is whole
        tops = ((0, 1), (0, 0)) if on_page else ((0, 1), (1, 1))  # of the window
        for (begin, end), (x, y), top in zip(ends, corners, tops, strict=True):
            corner = left.transData.transform(((box.x0, box.x1)[x], (box.y0, box.y1)[y]))
            assert begin == pytest.approx(corner, abs=0.5)  # pixels
            assert end == pytest.approx(right.transAxes.transform(top), abs=0.5)


def test_a_cell_with_unmasked_queries_does_not_hatch_its_fully_masked_ones():
    limits = {"causal": True, "key_mask": torch.arange(T)[None] >= T // 2}
    left, right = panels(draw(*maps(3, **limits)))  # cells of 334: the second is mixed
    assert hatched(left) == [(-0.5, 333.5)] and hatched(right) == []


def test_blank_cells_of_the_window_alone_are_explained_too():
    figure = draw(*maps(1, causal=True), causal=True)  # one cell, with all the weight
    assert [text.split(":")[0] for text in legend(figure)] == ["blank"]


def test_only_the_palette_s_colors_are_drawn_so_that_there_is_a_dark_copy(tmp_path):
    with matplotlib.rc_context(STYLE):
        draw(*maps(100, causal=True), causal=True).savefig(tmp_path / "window.svg")
    svg = (tmp_path / "window.svg").read_text(encoding="utf-8")
    colors = set(re.findall(r"(?:fill|stroke): (#\w+)", svg))
    assert {palette.MUTED, palette.INK, palette.LINE} <= colors <= set(palette.DARK)
