"""Whatever the sizes, a figure fits a page, or it is refused and the error says what to do."""

import re

import matplotlib
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.figure_reading import panels, ticks, written_in

from attnlib.plotting import plot_heads, plot_long_heads, plot_matrices, plot_seed_curves
from attnlib.plotting.page import PHONE_WIDTH, phone_copy
from attnlib.plotting.style import TALLEST

SIZES = st.sampled_from([1, 2, 3, 7, 20, 60, 300, 2000])
TEXTS = st.sampled_from(
    ["a", "", "\n", "$", "$a$", "x" * 300, "\u0301", "\ud800", "中国", "😀", "العربية",
     "a very long text with many words " * 9]
) | st.text(max_size=6)  # fmt: skip


def maps(h, T_q, T_k):
    return torch.ones(h, T_q, T_k) / T_k


def labels(data, count):
    """Return some texts again and again: there are too many to draw each."""
    few = data.draw(st.lists(TEXTS, min_size=1, max_size=4))
    return (few * count)[:count]


def heads_of(data, h, T_q, T_k):
    texts = {"tokens": labels(data, T_q), "key_tokens": labels(data, T_k)}
    texts["titles"] = labels(data, h)
    return plot_heads(maps(h, T_q, T_k), **data.draw(st.sampled_from([{}, texts])))


def matrices_of(data, count, rows, columns):
    texts = {"row_labels": labels(data, rows), "column_labels": labels(data, columns)}
    titles = [f"{i}{title}" for i, title in enumerate(labels(data, count))]
    matrices = {title: torch.ones(rows, columns) for title in titles}
    return plot_matrices(matrices, **data.draw(st.sampled_from([{}, texts])))


def long_maps_of(data, h, n, m):
    return plot_long_heads(maps(h, n, m), range(n), range(m))


def curves_of(data, panels, curves, seeds):
    named = [f"{i}{name}" for i, name in enumerate(labels(data, min(curves, 12)))]
    drawn = {f"{i}": {name: torch.ones(2, 1) for name in named} for i in range(min(panels, 30))}
    return plot_seed_curves([1, 2], drawn, x_label=data.draw(TEXTS))


FIGURES = {
    "weights": heads_of, "matrices": matrices_of, "maps": long_maps_of, "panels": curves_of,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")  # of texts without a font
@pytest.mark.parametrize("argument", FIGURES)
@settings(max_examples=6, derandomize=True)
@given(count=st.sampled_from([1, 2, 5, 12, 30, 500]), rows=SIZES, columns=SIZES, data=st.data())
def test_a_page_can_hold_it_or_the_error_says_what_to_do(argument, count, rows, columns, data):
    if count * rows * columns > 10**5:
        return
    try:
        figure = FIGURES[argument](data, count, rows, columns)
    except ValueError as error:
        assert argument in str(error) and re.search("draw|pools", str(error)), error
        return
    figure.draw_without_rendering()
    assert figure.axes and figure.get_figheight() <= TALLEST + 1  # a legend below comes on top
    assert all(min(ax.get_window_extent().size) > 1 for ax in panels(figure))
    phone = phone_copy(figure)
    assert phone is None or phone.get_figwidth() == PHONE_WIDTH


@pytest.mark.parametrize(
    ("h", "T", "columns"),
    [(1, 20, 1), (12, 20, 3), (48, 20, 7), (9, 4, 4), (2, 512, 2), (2, 1000, 1)],
)
def test_more_heads_stand_in_more_columns(h, T, columns):
    assert plot_heads(maps(h, T, T)).axes[0].get_gridspec().ncols == columns


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


@pytest.mark.parametrize(("T_q", "T_k"), [(1, 1000), (1500, 2)])
def test_one_query_is_no_line_and_one_key_no_tower(T_q, T_k):
    figure = plot_heads(maps(1, T_q, T_k))
    figure.draw_without_rendering()
    width, height = figure.axes[0].get_window_extent().size / figure.dpi  # inches
    assert 0.2 < height < 9 and 0.2 < width < 7


def test_labels_without_room_are_left_out_and_ticks_show_whose_the_others_are():
    ax = plot_heads(maps(1, 200, 200), [f"token{i}" for i in range(200)]).axes[0]
    for axis in (ax.xaxis, ax.yaxis):
        texts, places = ticks(axis), axis.get_ticklocs().tolist()
        assert texts[0] == "token0" and 20 < len(texts) < 60
        assert texts == [f"token{place}" for place in places]
        assert axis.get_major_ticks()[0].tick1line.get_markersize() > 0
    few = plot_heads(maps(1, 20, 20), list("abcdefghijklmnopqrst")).axes[0].yaxis
    assert len(ticks(few)) == 20 and few.get_major_ticks()[0].tick1line.get_markersize() == 0


@pytest.mark.parametrize(("h", "T"), [(1, 9), (3, 1), (3, 9)])
def test_no_title_is_cut(h, T):
    figure = plot_heads(maps(h, T, T), ["a"] * T, titles=["head"] * h)
    figure.draw_without_rendering()
    assert figure.get_tightbbox().y1 <= figure.get_figheight()


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
