"""Maps of heads show the weights that they were given, and say what blank and hatched cells are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.figure_reading import drawn, hatched, legend, panels, ticks, written_in

from attnlib import palette, plotting
from attnlib.weight_checks import require_attention


@settings(max_examples=25)
@given(
    st.sampled_from([(1, 2, 3), (2, 3, 4), (3, 4, 2), (5, 1, 3)]), st.sampled_from([None, 2, 3, 4]),
    st.booleans(), st.sampled_from([torch.float64, torch.float32, torch.bfloat16]), st.booleans(),
)  # fmt: skip
def test_a_map_reads_as_it_was_given(sizes, mask_dims, any_blind, dtype, batch):
    h, T_q, T_k = sizes
    allowed = torch.rand(h if mask_dims == 4 else 1, T_q, T_k) < 0.7
    if mask_dims is None:
        allowed[:] = True
    mask = {None: None, 2: allowed[0], 3: allowed, 4: allowed[None]}[mask_dims]
    allowed = allowed.expand(h, T_q, T_k)
    weights = torch.randn(h, T_q, T_k, dtype=torch.float64).masked_fill(~allowed, -1e9)
    weights = (weights.softmax(-1) * allowed).to(dtype)
    if any_blind:
        weights[-1, 0] = 0
    blind = weights.sum(-1, keepdim=True) == 0
    wanted = weights.double().masked_fill(~allowed | blind, -1)
    queries, keys = list("wxyz")[:T_q], list("abcd")[:T_k]
    given = weights[0] if h == 1 else weights[None] if batch else weights
    figure = plotting.plot_heads(given, queries, key_tokens=keys, mask=mask, numbers=True)

    maps = panels(figure)
    assert len(maps) == h
    for i, ax in enumerate(maps):
        shown = drawn(ax.images[0])
        torch.testing.assert_close(shown, wanted[i], rtol=0, atol=0, check_dtype=False)
        assert ax.images[0].get_clim() == (0, 1)
        assert hatched(ax) == [(q - 0.5, q + 0.5) for q in blind[i, :, 0].nonzero()[:, 0].tolist()]
        drawn_cells = (wanted[i] >= 0).nonzero().tolist()
        numbers = {(q, k): f"{weights[i, q, k].double():.2f}" for q, k in drawn_cells}
        assert written_in(ax) == numbers
        assert ax.get_title() == (f"head {i + 1}" if h > 1 else "")
        assert ax.title.get_color() == (palette.head_color(i) if h > 1 else palette.INK)
        first = i % ax.get_gridspec().ncols == 0
        assert (ticks(ax.xaxis), ticks(ax.yaxis)) == (keys, queries if first else [])
        assert all(spine.get_visible() for spine in ax.spines.values()) == (not allowed.all())
    meanings = ["hatched"] * bool(blind.any()) + ["blank"] * (not allowed.all())
    assert [text.split(":")[0] for text in legend(figure)] == meanings
    of_one = maps[0].yaxis.label, maps[0].xaxis.label
    y, x = of_one if h == 1 else (figure._supylabel, figure._supxlabel)
    assert "query" in y.get_text() and "key" in x.get_text()
    assert (y.get_color(), x.get_color()) == (palette.QUERY_COLOR, palette.KEY_COLOR)


def test_titles_have_the_heads_colors_and_keys_the_queries_labels():
    weights = torch.eye(2).repeat(2, 1, 1)
    maps = panels(plotting.plot_heads(weights, ["$a$", "$"], colors_of=[3, None]))
    assert [ax.title.get_color() for ax in maps] == [palette.head_color(3), palette.INK]
    assert ticks(maps[0].xaxis) == ticks(maps[0].yaxis) == [r"\$a\$", r"\$"]


@pytest.mark.parametrize(("dtype", "off"), [(torch.float32, 3e-4), (torch.bfloat16, 4e-2)])
def test_the_tolerance_of_row_sums_fits_the_dtype(dtype, off):
    row = torch.tensor([[0.5, 0.5]])
    require_attention(row.to(dtype))
    with pytest.raises(ValueError, match="sum to 1"):
        require_attention((row + off).to(dtype))
