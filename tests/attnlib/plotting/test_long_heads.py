"""Maps of long sequences: which tokens a cell has, its number, and what is hatched and blank."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.figure_reading import drawn, hatched, legend, panels, titles

from attnlib import palette
from attnlib.heatmap import attention_heatmap
from attnlib.plotting import plot_long_heads
from attnlib.plotting.page import phone_copy


@settings(max_examples=25)
@given(
    st.integers(1, 3), st.sampled_from([(10, 10, 4, 4), (12, 12, 5, 3), (30, 12, 30, 6)]),
    st.booleans(), st.integers(0, 3), st.booleans(),
)  # fmt: skip
def test_a_map_reads_as_it_was_computed(h, sizes, causal, masked, half):
    T_q, T_k, rows, columns = sizes
    causal = causal and T_q == T_k
    q, k = torch.randn(1, h, T_q, 4), torch.randn(1, h, T_k, 4)
    key_mask = torch.arange(T_k)[None] >= 2 * masked  # then the first queries may look nowhere
    if not causal and masked == 3:
        key_mask[:] = False
    maps = attention_heatmap(q, k, grid=(rows, columns), causal=causal, key_mask=key_mask)
    n, m = maps.shape[2:]
    height, width = math.ceil(T_q / n), math.ceil(T_k / m)
    given = maps.bfloat16() if half else maps
    figure = plot_long_heads(given, range(T_q), range(T_k), causal=causal)

    blind = maps[0].sum(-1) == 0
    later = (torch.arange(m) * width > torch.arange(1, n + 1)[:, None] * height - 1) & causal
    assert titles(figure) == ([f"head {i + 1}" for i in range(h)] if h > 1 else [])
    for i, ax in enumerate(panels(figure)):
        wanted = given[0, i].double().masked_fill(blind[i, :, None] | later, -1)
        torch.testing.assert_close(drawn(ax.images[0]).double(), wanted)
        # In tokens, the first on top; the last cells may be smaller than the others.
        assert ax.images[0].get_extent() == [-0.5, m * width - 0.5, n * height - 0.5, -0.5]
        assert ax.get_xlim() == (-0.5, T_k - 0.5) and ax.get_ylim() == (T_q - 0.5, -0.5)
        first = blind[i].int().tolist()
        assert hatched(ax) == [(-0.5, height * sum(first) - 0.5)] * any(first)
    meanings = ["hatched"] * bool(blind.any()) + ["blank"] * bool(later.any())
    assert [text.split(":")[0] for text in legend(figure)] == meanings


def test_hatches_are_a_head_s_own_cells_are_counted_where_they_lie_and_shades_show_little():
    maps = torch.eye(6).repeat(2, 1, 1)
    maps[0, [0, 3, 4]] = 0
    first, second = panels(plot_long_heads(maps, range(12), range(12)))  # cells of 2 tokens
    assert [one.title.get_color() for one in (first, second)] == palette.HEAD_COLORS[:2]
    assert hatched(first) == [(-0.5, 1.5), (5.5, 9.5)] and hatched(second) == []
    figure = plot_long_heads(torch.eye(3), range(200, 206), range(194, 200), titles=["sharp"])
    (ax,) = panels(figure)
    assert ax.get_title() == "sharp"
    assert ax.images[0].get_extent() == [193.5, 199.5, 205.5, 199.5]
    norm = ax.images[0].norm
    assert norm(1.0) == 1 and norm(0.0) == 0 and norm(1 / 256) > 0.15


@pytest.mark.parametrize(("T_q", "T_k", "shape"), [(3, 3000, 0.6), (3000, 3, 1.5), (400, 400, 1)])
def test_few_queries_or_few_keys_can_still_be_seen(T_q, T_k, shape):
    q, k = torch.randn(1, 1, T_q, 4), torch.randn(1, 1, T_k, 4)
    figure = plot_long_heads(attention_heatmap(q, k), range(T_q), range(T_k))
    for drawing in (figure, phone_copy(figure)):
        drawing.canvas.draw()
        (ax,) = panels(drawing)
        width, height = ax.get_window_extent().size / drawing.dpi  # inches
        assert width > 1 and height / width == pytest.approx(shape)
