"""Figures of long maps: what is drawn where, and what is refused."""

import re

import matplotlib
import pytest
import torch

from attnlib import palette
from attnlib.heatmap import attention_heatmap, attention_window
from attnlib.plotting import plot_long_heads, plot_window
from attnlib.plotting.style import STYLE

T = 1000
ALL = range(T)
SEEING = torch.arange(T)[None] >= T // 2  # a key_mask that makes half of the causal queries blind
LIMITS = {"causal": True, "key_mask": SEEING}
ROWS, KEYS = range(480, 520), range(470, 530)


@pytest.fixture
def q():
    return 3 * torch.randn(1, 3, T, 8)


def panels(figure):
    return [ax for ax in figure.axes if ax.images]


def images(figure):
    return [ax.images[0] for ax in panels(figure)]


def drawn(image):
    """The numbers of an image, -1 where nothing is drawn."""
    return torch.tensor(image.get_array().filled(-1))


def hatched(ax):
    """From which to which row an axes is hatched."""
    boxes = [p.get_bbox() for p in ax.patches if p.get_hatch()]
    return [(box.y0, box.y1) for box in boxes]


def legend(figure):
    return [text.get_text() for box in figure.legends for text in box.get_texts()]


def test_a_whole_map_is_counted_in_tokens(q):
    maps = attention_heatmap(q, q, grid=50)
    figure = plot_long_heads(maps, ALL, ALL)
    assert len(images(figure)) == 3
    for image, expected in zip(images(figure), maps[0], strict=True):
        assert image.get_extent() == [-0.5, T - 0.5, T - 0.5, -0.5]  # row 0 on top
        torch.testing.assert_close(drawn(image), expected.double())
    assert [ax.get_title() for ax in panels(figure)] == ["head 1", "head 2", "head 3"]


def test_cells_at_the_end_may_be_smaller():
    q = torch.randn(1, 1, 10, 2)
    (ax,) = panels(plot_long_heads(attention_heatmap(q, q, grid=4), range(10), range(10)))
    assert ax.images[0].get_extent() == [-0.5, 11.5, 11.5, -0.5]  # 4 cells of 3 tokens ...
    assert ax.get_xlim() == (-0.5, 9.5) and ax.get_ylim() == (9.5, -0.5)  # ... of which 10 exist


def test_a_window_is_counted_where_it_lies(q):
    rows, keys = range(200, 240), range(100, 180)
    weights = attention_window(q, q, rows, keys)[0, 0]
    (image,) = images(plot_long_heads(weights, rows, keys, titles=["sharp"], window=True))
    assert image.get_extent() == [99.5, 179.5, 239.5, 199.5]
    assert image.norm(1.0) == 1 and image.norm(1 / 256) > 0.15  # spread attention has shades


@pytest.mark.parametrize(("T_q", "T_k"), [(3, 3000), (3000, 3)])
def test_few_queries_or_few_keys_can_still_be_seen(T_q, T_k):
    q, k = torch.randn(1, 1, T_q, 4), torch.randn(1, 1, T_k, 4)
    figure = plot_long_heads(attention_heatmap(q, k), range(T_q), range(T_k))
    figure.canvas.draw()
    (ax,) = panels(figure)
    width, height = ax.get_window_extent().size / figure.dpi  # inches
    assert 1 < width < 10 and 1 < height < 10


class TestCellsWithoutColor:
    def test_queries_that_may_look_nowhere_are_hatched(self, q):
        figure = plot_long_heads(attention_heatmap(q, q, grid=10, **LIMITS), ALL, ALL)
        for ax in panels(figure):
            assert hatched(ax) == [(-0.5, T / 2 - 0.5)]
            nothing = drawn(ax.images[0]) == -1
            assert nothing[:5].all() and not nothing[5:].any()
        assert legend(figure) == ["hatched: may look nowhere"]

    def test_each_map_is_hatched_where_its_own_queries_are_blind(self):
        maps = torch.eye(6).repeat(2, 1, 1)
        maps[0, [0, 3, 4]] = 0
        first, second = panels(plot_long_heads(maps, range(12), range(12)))  # cells of 2 tokens
        assert hatched(first) == [(-0.5, 1.5), (5.5, 9.5)] and hatched(second) == []

    def test_cells_that_causal_attention_never_reaches_are_blank(self, q):
        maps = attention_heatmap(q, q, grid=(10, 20), causal=True)  # 100 queries, 50 keys a cell
        figure = plot_long_heads(maps, ALL, ALL, causal=True)
        reached = torch.arange(20) <= 2 * torch.arange(10)[:, None] + 1
        for image in images(figure):
            assert torch.equal(drawn(image) >= 0, reached)
        assert legend(figure) == ["blank: may not look"]

    def test_a_window_is_blank_where_its_own_keys_come_later(self, q):
        rows, keys = range(100, 103), range(99, 104)
        weights = attention_window(q, q, rows, keys, causal=True)
        figure = plot_long_heads(weights, rows, keys, window=True, causal=True)
        for image in images(figure):
            assert (drawn(image) >= 0).tolist() == [
                [True, True, False, False, False],
                [True, True, True, False, False],
                [True, True, True, True, False],
            ]

    def test_no_weight_in_a_window_is_not_taken_for_a_query_that_is_blind(self):
        weights = torch.tensor([[0.0, 0.0], [0.5, 0.2]])  # the first may look elsewhere
        figure = plot_long_heads(weights, range(7, 9), range(2), window=True)
        (ax,) = panels(figure)
        assert hatched(ax) == [] and legend(figure) == []
        torch.testing.assert_close(drawn(ax.images[0]), weights.double())

    def test_nothing_is_explained_that_is_not_there(self, q):
        assert legend(plot_long_heads(attention_heatmap(q, q), ALL, ALL)) == []


def limited_window(q):
    """Both maps of the second head under LIMITS, and their figure."""
    whole = attention_heatmap(q, q, grid=100, **LIMITS)[0, 1]
    window = attention_window(q, q, ROWS, KEYS, **LIMITS)[0, 1]
    return whole, window, plot_window(whole, ALL, ALL, window, ROWS, KEYS, causal=True)


class TestPlotWindow:
    def test_the_frame_lies_where_the_window_does(self, q):
        _, _, figure = limited_window(q)
        left, right = panels(figure)
        (frame,) = [p for p in left.patches if not p.get_hatch()]
        box = frame.get_bbox()
        assert (box.x0, box.x1) == (KEYS.start - 0.5, KEYS.stop - 0.5) == right.get_xlim()
        assert (box.y1, box.y0) == (ROWS.stop - 0.5, ROWS.start - 0.5) == right.get_ylim()
        assert (box.y0, box.y1) != (box.x0, box.x1)  # queries and keys differ, so can be mixed up

    def test_lines_lead_from_the_frame_to_the_window(self, q):
        _, _, figure = limited_window(q)
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

    def test_colors_are_the_numbers_of_the_map_and_of_the_window(self, q):
        whole, window, figure = limited_window(q)
        left, right = map(drawn, images(figure))
        for found, numbers in ((left, whole), (right, window)):
            shown = found != -1
            assert shown.any() and not shown.all()
            torch.testing.assert_close(found[shown], numbers.double()[shown])
            assert (numbers[~shown] == 0).all()
        later = torch.tensor(KEYS) > torch.tensor(ROWS)[:, None]
        blind = (torch.tensor(ROWS) < T // 2)[:, None]
        assert torch.equal(right == -1, later | blind)

    def test_queries_are_hatched_in_both(self, q):
        _, _, figure = limited_window(q)
        left, right = panels(figure)
        assert hatched(left) == [(-0.5, T / 2 - 0.5)]
        assert hatched(right) == [(ROWS.start - 0.5, T / 2 - 0.5)]
        assert legend(figure) == ["hatched: may look nowhere", "blank: may not look"]

    def test_a_cell_with_seeing_queries_does_not_hatch_its_blind_ones(self, q):
        whole = attention_heatmap(q, q, grid=3, **LIMITS)[0, 0]  # cells of 334: the second is mixed
        window = attention_window(q, q, ROWS, KEYS, **LIMITS)[0, 0]
        left, right = panels(plot_window(whole, ALL, ALL, window, ROWS, KEYS))
        assert hatched(left) == [(-0.5, 333.5)] and hatched(right) == []

    def test_blank_cells_of_the_window_alone_are_explained_too(self, q):
        whole = attention_heatmap(q, q, grid=1, causal=True)[:, :1]  # one cell, with all the weight
        window = attention_window(q, q, ROWS, KEYS, causal=True)[:, :1]
        figure = plot_window(whole, ALL, ALL, window, ROWS, KEYS, causal=True)
        assert legend(figure) == ["blank: may not look"]


def test_only_the_palette_s_colors_are_drawn_so_that_there_is_a_dark_copy(q, tmp_path):
    with matplotlib.rc_context(STYLE):
        *_, figure = limited_window(q)
        figure.savefig(tmp_path / "window.svg")
    svg = (tmp_path / "window.svg").read_text(encoding="utf-8")
    assert "share of a query" in svg  # a comment beside the letters' outlines
    colors = set(re.findall(r"(?:fill|stroke): (#\w+)", svg))
    assert {palette.MUTED, palette.INK, palette.LINE} <= colors <= set(palette.DARK)


def long(**changes):
    """Draw maps of three heads with some arguments changed."""
    return lambda maps, window: plot_long_heads(
        **{"maps": maps, "rows": ALL, "keys": ALL} | {n: f(maps) for n, f in changes.items()}
    )


def piece(**changes):
    """Draw a window of the first head with some arguments changed."""
    return lambda maps, window: plot_window(
        **{
            "whole": maps[0, 0], "all_rows": ALL, "all_keys": ALL,
            "window": window[0, 0], "rows": ROWS, "keys": KEYS,
        } | {n: f(window) for n, f in changes.items()}
    )  # fmt: skip


BAD = {
    "sums": (long(maps=lambda m: 100 * m), ValueError, ["maps", "100.0", "mass"]),
    "small sums": (long(maps=lambda m: m / 20), ValueError, ["maps", "0.05", "window=True"]),
    "one sum": (long(maps=lambda m: m.index_fill(2, torch.tensor(7), 0.03)), ValueError,
        ["row 7 of map 0", "1.5"]),
    "negative": (long(maps=lambda m: -m), ValueError, ["maps", "negative", "scores"]),
    "NaN": (long(maps=lambda m: m * torch.nan), ValueError, ["maps", "finite"]),
    "infinity": (long(maps=lambda m: m / 0), ValueError, ["maps", "finite"]),
    "integers": (long(maps=lambda m: m.int()), TypeError, ["maps", "int32"]),
    "no tensor": (long(maps=lambda m: m.tolist()), TypeError, ["maps", "list"]),
    "a row": (long(maps=lambda m: m[0, 0, 0]), ValueError, ["maps", "[n, m]", "[50]"]),
    "five dimensions": (long(maps=lambda m: m[None]), ValueError, ["maps", "[1, 1, 3, 50, 50]"]),
    "a batch": (long(maps=lambda m: m.expand(2, -1, -1, -1)), ValueError, ["maps", "[2, 3, "]),
    "nothing": (long(maps=lambda m: m[:, :0]), ValueError, ["maps", "[1, 0, 50, 50]"]),
    "a number": (long(rows=lambda m: T), TypeError, ["rows", "range"]),
    "steps": (long(keys=lambda m: range(0, T, 2)), ValueError, ["keys", "steps"]),
    "few tokens": (long(keys=lambda m: range(9)), ValueError, ["keys", "50", "9 cells"]),
    "other cells": (long(rows=lambda m: range(60)), ValueError, ["rows", "50", "30 cells"]),
    "a window of cells": (long(window=lambda m: True), ValueError, ["rows", "50", "1000 cells"]),
    "titles": (long(titles=lambda m: ["a"]), ValueError, ["titles", "3", "1"]),
    "colors": (long(colors_of=lambda m: [0]), ValueError, ["colors_of", "3", "1"]),
    "not causal": (long(causal=lambda m: True), ValueError, ["causal", "maps", "row 0 of map 0"]),
    "causal as a number": (long(causal=lambda m: 1), TypeError, ["causal", "True or False", "int"]),
    "a whole of heads": (piece(whole=lambda w: torch.eye(50).repeat(3, 1, 1)), ValueError,
        ["whole", "one map", "3"]),
    "a window of heads": (piece(window=lambda w: w), ValueError, ["window", "one map", "3"]),
    "no shares": (piece(window=lambda w: w[0, 0] + 1), ValueError, ["window", "1 or less"]),
    "a negative window": (piece(window=lambda w: -w[0, 0]), ValueError, ["window", "negative"]),
    "half a window": (piece(window=lambda w: w[0, 0, :20]), ValueError, ["rows", "20", "40 cells"]),
    "half a whole": (piece(all_keys=lambda w: range(30)), ValueError, ["all_keys", "30 cells"]),
    "beyond": (piece(rows=lambda w: range(980, 1020)), ValueError, ["rows", "all_rows", "1020"]),
    "before": (piece(all_keys=lambda w: range(475, 975)), ValueError, ["keys", "all_keys", "475"]),
    "another head": (piece(window=lambda w: torch.eye(40, 60)), ValueError, ["window", "head"]),
    "a window that isn't causal": (piece(causal=lambda w: True, whole=lambda w: torch.eye(50)),
        ValueError, ["causal", "window", "row 0"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, q):
    wrong, error, words = BAD[name]
    maps, window = attention_heatmap(q, q, grid=50), attention_window(q, q, ROWS, KEYS)
    with pytest.raises(error) as caught:
        wrong(maps, window)
    assert all(word in str(caught.value) for word in words), caught.value


def test_what_bad_input_changes_is_good_otherwise(q):
    maps, window = attention_heatmap(q, q, grid=50), attention_window(q, q, ROWS, KEYS)
    long()(maps, window)
    piece()(maps, window)


def test_half_precision_sums_as_well_as_it_can(q):
    plot_long_heads(attention_heatmap(q, q).bfloat16(), ALL, ALL)
