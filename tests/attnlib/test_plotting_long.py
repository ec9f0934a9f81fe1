"""Figures of long maps: what is drawn where, and what is refused."""

import pytest
import torch

from attnlib.heatmap import attention_heatmap, attention_window
from attnlib.plotting import plot_long_heads

T = 1000


@pytest.fixture
def q():
    return 3 * torch.randn(1, 3, T, 8)


def images(figure):
    return [ax.images[0] for ax in figure.axes if ax.images]


def test_a_whole_map_is_counted_in_tokens(q):
    maps = attention_heatmap(q, q, grid=50)
    figure = plot_long_heads(maps, range(T), range(T))
    assert len(images(figure)) == 3
    for image, expected in zip(images(figure), maps[0], strict=True):
        assert image.get_extent() == [0, T, T, 0]  # row 0 on top
        torch.testing.assert_close(torch.tensor(image.get_array().filled()), expected.double())
    titles = [ax.get_title() for ax in figure.axes if ax.images]
    assert titles == ["head 1", "head 2", "head 3"]


def test_cells_at_the_end_may_be_smaller():
    q = torch.randn(1, 1, 10, 2)
    figure = plot_long_heads(attention_heatmap(q, q, grid=4), range(10), range(10))
    (ax, _) = figure.axes
    assert ax.images[0].get_extent() == [0, 12, 12, 0]  # 4 cells of 3 tokens ...
    assert ax.get_xlim() == (0, 10) and ax.get_ylim() == (10, 0)  # ... of which 10 are there


def test_a_window_is_counted_where_it_lies(q):
    rows, keys = range(200, 240), range(100, 180)
    figure = plot_long_heads(attention_window(q, q, rows, keys)[0, 0], rows, keys, titles=["sharp"])
    (image,) = images(figure)
    assert image.get_extent() == [100, 180, 240, 200]
    assert image.norm(1.0) == 1 and image.norm(1 / 256) > 0.15  # spread attention has shades


def test_queries_that_may_look_nowhere_are_blank(q):
    maps = attention_heatmap(q, q, grid=4, causal=True, key_mask=torch.arange(T)[None] >= T // 2)
    first, *_, last = images(plot_long_heads(maps[:, :1], range(T), range(T)))[0].get_array().mask
    assert first.all() and not last.any()


def test_it_is_drawn(q, tmp_path):
    figure = plot_long_heads(attention_heatmap(q, q, grid=20), range(T), range(T))
    figure.savefig(tmp_path / "maps.svg")
    assert "share of a query" in figure.axes[-1].get_ylabel()


BAD = {
    "sums": (lambda m: plot_long_heads(100 * m, range(T), range(T)), ValueError, ["maps", "mass"]),
    "negative": (lambda m: plot_long_heads(-m, range(T), range(T)), ValueError, ["maps", "mass"]),
    "NaN": (lambda m: plot_long_heads(m * torch.nan, range(T), range(T)), ValueError, ["finite"]),
    "a number": (lambda m: plot_long_heads(m, T, range(T)), TypeError, ["rows", "range"]),
    "few tokens": (lambda m: plot_long_heads(m, range(T), range(9)), ValueError, ["keys", "50"]),
    "titles": (lambda m: plot_long_heads(m, range(T), range(T), titles=["a"]), ValueError,
        ["titles", "3"]),
    "batch": (lambda m: plot_long_heads(m.expand(2, 3, 50, 50), range(T), range(T)), ValueError,
        ["[1, h"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, q):
    wrong, error, words = BAD[name]
    with pytest.raises(error) as caught:
        wrong(attention_heatmap(q, q, grid=50))
    assert all(word in str(caught.value) for word in words), caught.value
