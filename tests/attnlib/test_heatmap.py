"""Heatmaps of long sequences against the dense map, pooled."""

import math
from functools import partial
from itertools import pairwise
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import F64
from tools.refusing import refusals

from attnlib import padding_mask
from attnlib.heatmap import attention_heatmap, cell_edges

DTYPES = [F64, F64, F64, torch.float32, torch.bfloat16, torch.float16]


def dense(q, k, *, causal=False, key_mask=None):
    """The whole map in float64, rows that may look nowhere 0."""
    q, k = q.double(), k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    allowed = torch.ones_like(scores, dtype=torch.bool)
    if causal:
        allowed = allowed.tril()
    if key_mask is not None:
        allowed = allowed & key_mask[:, None, None]
    return scores.masked_fill(~allowed, -math.inf).softmax(-1).nan_to_num(0.0)


def pooled(weights, grid):
    """Cells of a dense map, one by one."""
    rows, columns = (cell_edges(T, grid) for T in weights.shape[-2:])
    maps = weights.new_zeros(*weights.shape[:2], len(rows) - 1, len(columns) - 1)
    for i, (top, bottom) in enumerate(pairwise(rows)):
        for j, (left, right) in enumerate(pairwise(columns)):
            block = weights[..., top:bottom, left:right]
            seeing = (weights[..., top:bottom, :].sum(-1) > 0).sum(-1).clamp_min(1)
            maps[..., i, j] = block.sum((-2, -1)) / seeing
    return maps


@st.composite
def cases(draw):
    """Queries, keys and limits: ragged, rectangular, causal, padded, all masked, sharp, coarse."""
    T_q, T_k = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    causal = draw(st.booleans())
    T_k = T_q if causal else T_k
    B, h_kv, sharing, d_k = draw(st.tuples(*[st.integers(1, 2)] * 3, st.integers(1, 5)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    sharpness = draw(st.sampled_from([0.1, 1.0, 30.0])) ** 0.5
    q, k = (
        torch.randn(B, h, T, d_k, generator=generator, dtype=F64) * sharpness
        for h, T in ((h_kv * sharing, T_q), (h_kv, T_k))
    )
    lengths = draw(st.none() | st.lists(st.integers(0, T_k), min_size=B, max_size=B))
    key_mask = None if lengths is None else padding_mask(torch.tensor(lengths), T_k)
    if key_mask is not None and draw(st.booleans()):
        key_mask = key_mask.flip(1)  # padding on the left: with causal, rows without a key
    dtype, learns = draw(st.sampled_from(DTYPES)), draw(st.booleans())
    q, k = (x.to(dtype).requires_grad_(learns) for x in (q, k))
    return q, k, {"causal": causal, "key_mask": key_mask}


# Strips and tiles so small that maps cross their borders.
@mock.patch("attnlib.heatmap.STRIP", 7)
@mock.patch("attnlib.heatmap._strip.TILE", 11)
@given(cases(), st.integers(1, 45), st.booleans())
def test_cells_are_those_of_the_dense_map(case, grid, autocast):
    q, k, limits = case
    # All that is made on the way is made where q is, and in the precision that it should have.
    with torch.device("meta"), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = attention_heatmap(q, k, grid=grid, **limits)
    expected = pooled(dense(q.detach(), k.detach(), **limits), grid)
    tolerance = {"atol": 1e-12, "rtol": 1e-9} if q.dtype == F64 else {"atol": 1e-4, "rtol": 1e-4}
    assert found.dtype == torch.promote_types(q.dtype, torch.float32) and not found.requires_grad
    torch.testing.assert_close(found.double(), expected, **tolerance)


def test_scores_far_below_zero_beside_masked_keys():
    # A tile without a key must not count as a score of 0, or all real ones would vanish.
    q = torch.full((1, 1, 3, 1), -800.0, dtype=F64)
    k = torch.ones(1, 1, 2000, 1, dtype=F64)
    key_mask = torch.arange(2000)[None] >= 1500
    found = attention_heatmap(q, k, grid=4, key_mask=key_mask)
    torch.testing.assert_close(found[0, 0, :, -1], torch.ones(3, dtype=F64))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused_unless_masked(value):
    q = torch.randn(1, 1, 6, 2)
    k = q.clone()
    k[0, 0, 2] = value
    key_mask = torch.arange(6)[None] != 2
    assert attention_heatmap(q, k, key_mask=key_mask).isfinite().all()
    with pytest.raises(ValueError, match="finite"):
        attention_heatmap(q, k)


def test_edges():
    for T, grid, edges in (
        (10, 4, [0, 3, 6, 9, 10]),
        (3, 256, [0, 1, 2, 3]),
        (8, 4, range(0, 9, 2)),
    ):
        assert cell_edges(T, grid) == list(edges)


def pool(q=(2, 4, 5, 3), k=(2, 2, 5, 3), **options):
    q, k = (torch.randn(x) if isinstance(x, tuple) else x for x in (q, k))
    return attention_heatmap(q, k, **options)


test_what_does_not_fit_is_refused = refusals({
    TypeError: {
        pool: {
            "q": [torch.zeros(2, 4, 5, 3).int()], "k": [torch.randn(2, 2, 5, 3).double()],
            "grid": [2.0], "causal": [torch.ones(5, 5).bool()], "key_mask": [torch.ones(2, 5)],
        },
    },
    ValueError: {
        pool: {
            "q": [(4, 5, 3)], "k": [(2, 2, 0, 3), (2, 2, 5, 4), (2, 3, 5, 3), (2, 0, 5, 3)],
            "grid": [0, (2, 2, 2), (2, 0)], "key_mask": [torch.ones(2, 4).bool()],
        },
        partial(pool, k=(2, 2, 5, 0)): {"q": [(2, 4, 5, 0)]},  # heads without numbers
        partial(pool, k=(2, 2, 6, 3)): {"causal": [True]},
    },
})  # fmt: skip
