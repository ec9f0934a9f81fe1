"""Whatever the sizes, a figure fits a page, or it is refused and the error says what to do."""

import re
import warnings

import matplotlib
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.plotting import plot_heads, plot_long_heads, plot_matrices, plot_seed_curves
from attnlib.plotting.style import TALLEST, new_figure

SIZES = st.sampled_from([1, 2, 3, 7, 20, 60, 300, 2000])
TEXTS = st.sampled_from(
    ["a", "", " the", "\n", "$", "$a$", "_x", "x" * 300, "e\u0301", "\u0301", "\ud800", "\x00",
     "中国", "😀", "\u200d", "हिन्दी", "العربية", "a very long text with many words " * 9]
) | st.text(max_size=6)  # fmt: skip


def maps(h, T_q, T_k):
    return torch.ones(h, T_q, T_k) / T_k


def labels(data, count):
    """Return some texts again and again: there are too many to draw each."""
    few = data.draw(st.lists(TEXTS, min_size=1, max_size=4))
    return (few * count)[:count]


def draw(make, argument):
    """Draw a figure if it isn't refused, and look whether a page can hold it."""
    try:
        figure = make()
    except ValueError as error:
        assert argument in str(error) and re.search("draw|pools", str(error)), error
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of texts without a font
        figure.draw_without_rendering()
    assert figure.get_figheight() <= TALLEST + 1  # a legend below comes on top
    for ax in figure.axes:
        if ax.images:
            assert min(ax.get_window_extent().size) > 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from([1, 2, 5, 12, 30, 1000]), SIZES, SIZES, st.booleans(), st.data())
def test_heads_of_any_size(h, T_q, T_k, labelled, data):
    texts = {}
    if labelled:
        texts = {"tokens": labels(data, T_q), "key_tokens": labels(data, T_k)}
        texts["titles"] = labels(data, h)
    if h * T_q * T_k < 10**7:
        draw(lambda: plot_heads(maps(h, T_q, T_k), **texts), "weights")


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 12), SIZES, SIZES, st.booleans(), st.data())
def test_matrices_of_any_size(count, rows, columns, labelled, data):
    titles = [f"{i}{title}" for i, title in enumerate(labels(data, count))]
    texts = {}
    if labelled:
        texts = {"row_labels": labels(data, rows), "column_labels": labels(data, columns)}
    if count * rows * columns < 10**7:
        matrices = {title: torch.ones(rows, columns) for title in titles}
        draw(lambda: plot_matrices(matrices, **texts), "matrices")


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.sampled_from([1, 2, 5, 12, 30, 500]), SIZES, SIZES)
def test_long_maps_of_any_size(h, n, m):
    if h * n * m < 10**7:
        draw(lambda: plot_long_heads(maps(h, n, m), range(n), range(m)), "maps")


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(1, 30), st.integers(1, 40), st.data())
def test_curves_of_any_number(panels, curves, data):
    named = [f"{i}{name}" for i, name in enumerate(labels(data, curves))]
    drawn = {f"{i}": {name: torch.ones(2, 1) for name in named} for i in range(panels)}
    draw(lambda: plot_seed_curves([1, 2], drawn, x_label=data.draw(TEXTS)), "panels")


class TestHeads:
    def test_more_heads_stand_in_more_columns(self):
        def columns(h, T):
            return plot_heads(maps(h, T, T)).axes[0].get_gridspec().ncols

        assert [columns(h, 20) for h in (1, 4, 12, 48)] == [1, 2, 3, 7]
        assert columns(2, 512) == 2 and columns(2, 1000) == 1

    @pytest.mark.parametrize(
        ("shape", "way"),
        [
            ((96, 512, 512), r"weights\[:14\]"),
            ((1, 96, 512, 512), r"weights\[:, :14\]"),
            ((1, 1, 3000), "plot_long_heads"),
            ((1, 3000, 1), "plot_long_heads"),
        ],
    )
    def test_what_a_page_cannot_hold_is_refused_and_the_way_named(self, shape, way):
        weights = (torch.ones(1) / shape[-1]).expand(shape)
        with pytest.raises(ValueError, match=f"weights must.*{way}"):
            plot_heads(weights)
        if "weights" in way:
            plot_heads(weights[:14] if weights.dim() == 3 else weights[:, :14])

    @pytest.mark.parametrize(("T_q", "T_k"), [(1, 200), (300, 1), (1, 1000), (1500, 2)])
    def test_one_query_is_no_line_and_one_key_no_tower(self, T_q, T_k):
        figure = plot_heads(maps(1, T_q, T_k))
        figure.draw_without_rendering()
        width, height = figure.axes[0].get_window_extent().size / figure.dpi  # inches
        assert 0.2 < height < 9 and 0.2 < width < 7

    def test_labels_without_room_are_left_out_and_ticks_show_whose_the_others_are(self):
        tokens = [f"token{i}" for i in range(200)]
        ax = plot_heads(maps(1, 200, 200), tokens).axes[0]
        for axis in (ax.xaxis, ax.yaxis):
            texts = [text.get_text() for text in axis.get_ticklabels()]
            places = axis.get_ticklocs().tolist()
            assert texts[0] == "token0" and 20 < len(texts) < 60
            assert texts == [f"token{place}" for place in places]
            assert axis.get_major_ticks()[0].tick1line.get_markersize() > 0

    def test_few_labels_all_have_room_and_need_no_ticks(self):
        ax = plot_heads(maps(1, 20, 20), list("abcdefghijklmnopqrst")).axes[0]
        assert len(ax.get_yticklabels()) == 20
        assert ax.yaxis.get_major_ticks()[0].tick1line.get_markersize() == 0

    @pytest.mark.parametrize("T", [1, 3, 4, 5, 9, 20])
    @pytest.mark.parametrize("h", [1, 2, 3])
    def test_no_title_is_cut(self, h, T):
        figure = plot_heads(maps(h, T, T), ["a"] * T, titles=["head"] * h)
        figure.draw_without_rendering()
        assert figure.get_tightbbox().y1 <= figure.get_figheight()

    def test_a_line_of_too_many_columns_is_refused(self):
        with pytest.raises(ValueError, match="columns must be at most 24, got 100"):
            plot_heads(maps(100, 2, 2), columns=100)


class TestNumbers:
    @pytest.mark.parametrize(("size", "written"), [(3, 9), (20, 400), (200, 0)])
    def test_numbers_of_matrices_stand_where_there_is_room(self, size, written):
        ax, *legend = plot_matrices({"m": torch.ones(size, size)}).axes
        assert len(ax.texts) == written
        assert bool(legend) == (written == 0)  # then colors alone tell the numbers

    def test_long_numbers_are_smaller(self):
        def size(value):
            return plot_matrices({"m": torch.full((16, 16), value)}).axes[0].texts[0].get_fontsize()

        assert size(123456.0) < size(1.0) == size(12.0)

    def test_asked_for_numbers_of_heads_are_not_written_where_they_cannot_be_read(self):
        assert not plot_heads(maps(1, 100, 100), numbers=True).axes[0].texts


def test_a_big_map_is_an_image_in_an_svg(tmp_path):
    with matplotlib.rc_context({"svg.fonttype": "path"}):
        plot_heads(torch.rand(2, 300, 300).softmax(-1)).savefig(tmp_path / "maps.svg")
    assert (tmp_path / "maps.svg").stat().st_size < 10**6


@pytest.mark.parametrize(
    "tokens",
    [
        iter("abc"),
        ("a", "b", "c"),
        (c for c in "abc"),
        dict.fromkeys("abc"),
        np.array(["a", "b", "c"]),
    ],
)
def test_tokens_may_be_anything_that_can_be_gone_through(tokens):
    ax = plot_heads(maps(1, 3, 3), tokens).axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]


def test_a_figure_of_one_s_own_is_not_a_tower_either():
    with pytest.raises(ValueError, match="height must be at most 24 inches, got 100"):
        new_figure(height=100)
