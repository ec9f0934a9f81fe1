"""Whatever the sizes, a figure fits a page, or it is refused and the error says what to do."""

import re
from itertools import cycle, islice

import matplotlib
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.figure_reading import panels, ticks, written_in

from attnlib.plotting import plot_heads, plot_long_heads, plot_matrices
from attnlib.plotting.page import PHONE_WIDTH, phone_copy
from attnlib.plotting.style import TALLEST

SIZES = st.sampled_from([1, 2, 3, 7, 20, 60, 300, 2000])
TEXTS = st.sampled_from(
    ["a", "", "\n", "$", "x" * 300, "\u0301", "\ud800", "中国", "😀", "a long text " * 25]
)


def maps(h, T_q, T_k):
    return torch.ones(h, T_q, T_k) / T_k


@pytest.mark.filterwarnings("ignore::UserWarning")  # of texts without a font
@pytest.mark.parametrize("argument", ["weights", "matrices"])
@settings(max_examples=6, derandomize=True)
@given(st.sampled_from([1, 2, 5, 12, 30, 500]), SIZES, SIZES, st.lists(TEXTS, min_size=1))
def test_a_page_can_hold_it_or_the_error_says_what_to_do(argument, count, rows, columns, texts):
    if count * rows * columns > 2 * 10**4:
        return
    of_rows, of_columns, titles = ([*islice(cycle(texts), n)] for n in (rows, columns, count))
    try:
        if argument == "weights":
            shown = maps(count, rows, columns)
            figure = plot_heads(shown, of_rows, key_tokens=of_columns, titles=titles)
        else:
            shown = {f"{i}{title}": torch.ones(rows, columns) for i, title in enumerate(titles)}
            figure = plot_matrices(shown, row_labels=of_rows, column_labels=of_columns)
    except ValueError as error:
        assert argument in str(error) and re.search("draw|pools", str(error)), error
        return
    figure.draw_without_rendering()
    assert figure.axes and figure.get_figheight() <= TALLEST + 1  # a legend below comes on top
    assert all(min(ax.get_window_extent().size) > 1 for ax in panels(figure))
    phone = phone_copy(figure)
    assert phone is None or phone.get_figwidth() == PHONE_WIDTH


def test_more_heads_stand_in_more_columns():
    sizes = {(1, 20): 1, (12, 20): 3, (48, 20): 7, (9, 4): 4, (2, 512): 2, (2, 1000): 1}
    for (h, T), columns in sizes.items():
        assert plot_heads(maps(h, T, T)).axes[0].get_gridspec().ncols == columns
    for h, columns in {1: 1, 4: 2, 24: 4}.items():
        figure = plot_long_heads(maps(h, 6, 6), range(6), range(6))
        assert figure.axes[0].get_gridspec().ncols == columns
        narrow = phone_copy(figure)
        assert narrow is None or narrow.axes[0].get_gridspec().ncols <= 2


@pytest.mark.parametrize(
    ("shape", "way"),
    [
        ((96, 512, 512), r"weights\[:14\]"), ((1, 96, 512, 512), r"weights\[:, :14\]"),
        ((1, 1, 3000), "plot_long_heads"), ((1, 3000, 1), "plot_long_heads"),
    ],
)  # fmt: skip
def test_what_a_page_cannot_hold_is_refused_and_the_way_named(shape, way):
    weights = (torch.ones(1) / shape[-1]).expand(shape)
    with pytest.raises(ValueError, match=f"^weights must.*{way}"):
        plot_heads(weights)
    if shape[0] == 96:
        plot_heads(weights[:14])


def test_more_cells_than_a_file_should_have_are_refused():
    few = (torch.ones(1) / 2000).expand(2, 2000, 2000)
    plot_long_heads(few[:1], range(2000), range(2000))
    with pytest.raises(ValueError, match=r"^maps must.*fewer heads"):
        plot_long_heads(few, range(2000), range(2000))


def test_one_query_is_no_line_and_one_key_no_tower_and_no_title_is_cut():
    for T_q, T_k in ((1, 1000), (1500, 2), (9, 9)):
        figure = plot_heads(maps(3, T_q, T_k), titles=["head"] * 3)
        figure.draw_without_rendering()
        width, height = figure.axes[0].get_window_extent().size / figure.dpi  # inches
        assert 0.2 < height < 9 and 0.2 < width < 7
        assert figure.get_tightbbox().y1 <= figure.get_figheight()


def test_labels_without_room_are_left_out_and_ticks_show_whose_the_others_are():
    ax = plot_heads(maps(1, 200, 200), [f"token{i}" for i in range(200)]).axes[0]
    for axis in (ax.xaxis, ax.yaxis):
        texts, places = ticks(axis), axis.get_ticklocs().tolist()
        assert texts[0] == "token0" and 20 < len(texts) < 60
        assert texts == [f"token{place}" for place in places]
        assert axis.get_major_ticks()[0].tick1line.get_markersize() > 0
    few = plot_heads(maps(1, 20, 20), list("abcdefghijklmnopqrst")).axes[0].yaxis
    assert len(ticks(few)) == 20 and few.get_major_ticks()[0].tick1line.get_markersize() == 0


def test_numbers_stand_where_they_can_be_read():
    for size, written in ((3, 9), (20, 400), (200, 0)):
        (ax,) = panels(plot_matrices({"m": torch.ones(size, size)}))
        assert len(written_in(ax)) == written
    assert not plot_heads(maps(1, 100, 100), numbers=True).axes[0].texts  # though asked for
    assert len(plot_heads(maps(1, 6, 6)).axes[0].texts) == 36
    assert not plot_heads(maps(1, 20, 20)).axes[0].texts  # in the usual size

    def size_of(value):
        return plot_matrices({"m": torch.full((16, 16), value)}).axes[0].texts[0].get_fontsize()

    assert size_of(123456.0) < size_of(1.0) == size_of(12.0)


def test_a_big_map_is_an_image_in_an_svg(tmp_path):
    with matplotlib.rc_context({"svg.fonttype": "path"}):
        plot_heads(torch.rand(2, 300, 300).softmax(-1)).savefig(tmp_path / "maps.svg")
    assert (tmp_path / "maps.svg").stat().st_size < 10**6
