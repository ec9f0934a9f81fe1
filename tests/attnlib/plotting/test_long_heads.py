"""Maps of long sequences: what is drawn where, and what is refused."""

import pytest
import torch
from tools.figure_reading import drawn, hatched, images, legend, panels

from attnlib.heatmap import attention_heatmap, attention_window
from attnlib.plotting import plot_long_heads

T = 1000
ALL = range(T)


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
    def test_queries_that_may_look_nowhere_are_hatched(self, q, limits):
        figure = plot_long_heads(attention_heatmap(q, q, grid=10, **limits), ALL, ALL)
        for ax in panels(figure):
            assert hatched(ax) == [(-0.5, T / 2 - 0.5)]
            nothing = drawn(ax.images[0]) == -1
            assert nothing[:5].all() and not nothing[5:].any()
        assert legend(figure) == ["hatched: may look nowhere"]

    def test_each_map_is_hatched_where_its_own_queries_are_fully_masked(self):
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

    def test_no_weight_in_a_window_is_not_taken_for_a_fully_masked_query(self):
        weights = torch.tensor([[0.0, 0.0], [0.5, 0.2]])  # the first may look elsewhere
        figure = plot_long_heads(weights, range(7, 9), range(2), window=True)
        (ax,) = panels(figure)
        assert hatched(ax) == [] and legend(figure) == []
        torch.testing.assert_close(drawn(ax.images[0]), weights.double())

    def test_nothing_is_explained_that_is_not_there(self, q):
        assert legend(plot_long_heads(attention_heatmap(q, q), ALL, ALL)) == []


BAD = {
    "sums": ("maps", lambda m: 100 * m, ValueError, ["maps", "100.0", "mass"]),
    "small sums": ("maps", lambda m: m / 20, ValueError, ["maps", "0.05", "window=True"]),
    "one sum": ("maps", lambda m: m.index_fill(2, torch.tensor(7), 0.03), ValueError,
        ["row 7 of map 0", "1.5"]),
    "negative": ("maps", lambda m: -m, ValueError, ["maps", "negative", "scores"]),
    "NaN": ("maps", lambda m: m * torch.nan, ValueError, ["maps", "finite"]),
    "infinity": ("maps", lambda m: m / 0, ValueError, ["maps", "finite"]),
    "integers": ("maps", lambda m: m.int(), TypeError, ["maps", "int32"]),
    "no tensor": ("maps", lambda m: m.tolist(), TypeError, ["maps", "list"]),
    "a row": ("maps", lambda m: m[0, 0, 0], ValueError, ["maps", "[n, m]", "[50]"]),
    "five dimensions": ("maps", lambda m: m[None], ValueError, ["maps", "[1, 1, 3, 50, 50]"]),
    "a batch": ("maps", lambda m: m.expand(2, -1, -1, -1), ValueError, ["maps", "[2, 3, "]),
    "nothing": ("maps", lambda m: m[:, :0], ValueError, ["maps", "[1, 0, 50, 50]"]),
    "a number": ("rows", lambda m: T, TypeError, ["rows", "range"]),
    "steps": ("keys", lambda m: range(0, T, 2), ValueError, ["keys", "steps"]),
    "few tokens": ("keys", lambda m: range(9), ValueError, ["keys", "50", "9 cells"]),
    "other cells": ("rows", lambda m: range(60), ValueError, ["rows", "50", "30 cells"]),
    "a window of cells": ("window", lambda m: True, ValueError, ["rows", "50", "1000 cells"]),
    "titles": ("titles", lambda m: ["a"], ValueError, ["titles", "3", "1"]),
    "colors": ("colors_of", lambda m: [0], ValueError, ["colors_of", "3", "1"]),
    "not causal": ("causal", lambda m: True, ValueError, ["causal", "maps", "row 0 of map 0"]),
    "causal as a number": ("causal", lambda m: 1, TypeError, ["causal", "True or False", "int"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, q):
    argument, change, error, words = BAD[name]
    maps = attention_heatmap(q, q, grid=50)
    good = {"maps": maps, "rows": ALL, "keys": ALL}
    plot_long_heads(**good)
    with pytest.raises(error) as caught:
        plot_long_heads(**{**good, argument: change(maps)})
    assert all(word in str(caught.value) for word in words), caught.value


def test_half_precision_sums_as_well_as_it_can(q):
    plot_long_heads(attention_heatmap(q, q).bfloat16(), ALL, ALL)
