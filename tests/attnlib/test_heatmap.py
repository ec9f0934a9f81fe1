"""Heatmaps of long sequences against the dense map, pooled; windows against a piece of it."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import F64

from attnlib import padding_mask
from attnlib.heatmap import attention_heatmap, attention_window, cell_edges


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
    """Queries, keys and limits: ragged, rectangular, causal, padded, all masked, sharp."""
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
    return q, k, {"causal": causal, "key_mask": key_mask}


@pytest.fixture
def small_tiles(monkeypatch):
    """Strips and tiles so small that every test crosses their borders."""
    monkeypatch.setattr("attnlib.heatmap.STRIP", 7)
    monkeypatch.setattr("attnlib.heatmap._strip.TILE", 11)


@pytest.mark.usefixtures("small_tiles")
class TestInSmallTiles:
    @given(cases(), st.integers(1, 45))
    def test_every_cell_equals_the_dense_map(self, case, grid):
        q, k, limits = case
        with torch.device("meta"):  # all that is made on the way is made where q is
            found = attention_heatmap(q, k, grid=grid, **limits)
        expected = pooled(dense(q, k, **limits), grid)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-9)

    @given(cases(), st.data())
    def test_a_window_is_a_piece_of_the_map(self, case, data):
        q, k, limits = case
        ranges = []
        for T in (q.shape[2], k.shape[2]):
            start = data.draw(st.integers(0, T - 1))
            ranges.append(range(start, data.draw(st.integers(start + 1, T))))
        rows, keys = ranges
        with torch.device("meta"):
            found = attention_window(q, k, rows, keys, **limits)
        expected = dense(q, k, **limits)[..., rows.start : rows.stop, keys.start : keys.stop]
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-9)


def test_in_tiles_of_full_size():
    torch.manual_seed(1)
    q, k = torch.randn(1, 4, 1300, 8, dtype=F64) * 3, torch.randn(1, 2, 1300, 8, dtype=F64)
    for causal in (True, False):
        found = attention_heatmap(q, k, grid=20, causal=causal)
        expected = pooled(dense(q, k, causal=causal), 20)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_in_lower_precision(dtype):
    q, k = (torch.randn(1, 2, 300, 16).to(dtype) for _ in range(2))
    found = attention_heatmap(q, k, grid=20)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), pooled(dense(q, k), 20), atol=1e-5, rtol=0)


def test_scores_far_below_zero_beside_masked_keys():
    # A tile without a key must not count as a score of 0, or all real ones would vanish.
    q = torch.full((1, 1, 3, 1), -800.0, dtype=F64)
    k = torch.ones(1, 1, 2000, 1, dtype=F64)
    key_mask = torch.arange(2000)[None] >= 1500
    found = attention_heatmap(q, k, grid=4, key_mask=key_mask)
    torch.testing.assert_close(found[0, 0, :, -1], torch.ones(3, dtype=F64))


def test_autocast_changes_nothing():
    q = 3 * torch.randn(1, 1, 60, 8)
    expected = attention_heatmap(q, q, grid=7), attention_window(q, q, range(9), range(60))
    with torch.autocast("cpu", torch.bfloat16):
        found = attention_heatmap(q, q, grid=7), attention_window(q, q, range(9), range(60))
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_a_window_of_scores_far_below_zero():
    q, k = torch.full((1, 1, 2, 1), -800.0), torch.ones(1, 1, 2000, 1)
    found = attention_window(q, k, range(2), range(4))
    torch.testing.assert_close(found, torch.full((1, 1, 2, 4), 1 / 2000))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused_unless_masked(value):
    q = torch.randn(1, 1, 6, 2)
    k = q.clone()
    k[0, 0, 2] = value
    key_mask = torch.arange(6)[None] != 2
    assert attention_heatmap(q, k, key_mask=key_mask).isfinite().all()
    for wrong in (
        lambda: attention_heatmap(q, k), lambda: attention_window(q, k, range(2), range(2)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="finite"):
            wrong()


def test_no_gradient_is_recorded():
    q = torch.randn(1, 1, 5, 2, requires_grad=True)
    assert not attention_heatmap(q, q).requires_grad
    assert not attention_window(q, q, range(2), range(3)).requires_grad


@pytest.mark.parametrize(
    ("T", "grid", "edges"),
    [(10, 4, [0, 3, 6, 9, 10]), (3, 256, [0, 1, 2, 3]), (8, 4, [0, 2, 4, 6, 8]), (5, 1, [0, 5])],
)
def test_edges(T, grid, edges):
    assert cell_edges(T, grid) == edges


def call(q=(2, 4, 5, 3), k=(2, 2, 5, 3), **options):
    q, k = (torch.randn(x) if isinstance(x, tuple) else x for x in (q, k))
    return attention_heatmap(q, k, **options)


def window(rows, keys=range(2)):
    x = torch.randn(1, 1, 5, 3)
    return attention_window(x, x, rows, keys)


BAD = {
    "three dimensions": (lambda: call(q=(4, 5, 3)), ValueError, ["q", "[B, h, T, d_k]"]),
    "integers": (lambda: call(q=torch.zeros(2, 4, 5, 3).int()), TypeError, ["q", "int32"]),
    "no tokens": (lambda: call(k=(2, 2, 0, 3)), ValueError, ["k", "token"]),
    "other width": (lambda: call(k=(2, 2, 5, 4)), ValueError, ["k", "width", "[2, 2, 5, 4]"]),
    "heads that don't divide": (lambda: call(k=(2, 3, 5, 3)), ValueError, ["k", "divisor"]),
    "other dtype": (lambda: call(k=torch.randn(2, 2, 5, 3).double()), TypeError, ["k", "float64"]),
    "grid of none": (lambda: call(grid=0), ValueError, ["grid", "at least 1"]),
    "grid of three": (lambda: call(grid=(2, 2, 2)), ValueError, ["grid", "(rows, columns)"]),
    "a grid's columns": (lambda: call(grid=(2, 0)), ValueError, ["grid's columns", "at least 1"]),
    "no key heads": (lambda: call(k=(2, 0, 5, 3)), ValueError, ["k", "divisor"]),
    "heads without numbers": (lambda: call(q=(2, 4, 5, 0), k=(2, 2, 5, 0)), ValueError,
        ["q", "at least one number", "[2, 4, 5, 0]"]),
    "causal as a mask": (lambda: call(causal=torch.ones(5, 5).bool()), TypeError,
        ["causal", "True or False", "Tensor"]),
    "grid as float": (lambda: call(grid=2.0), TypeError, ["grid", "float"]),
    "causal rectangle": (lambda: call(k=(2, 2, 6, 3), causal=True), ValueError,
        ["causal", "T_k=6"]),
    "short key mask": (lambda: call(key_mask=torch.ones(2, 4).bool()), ValueError, ["key_mask"]),
    "float key mask": (lambda: call(key_mask=torch.ones(2, 5)), TypeError, ["key_mask", "boolean"]),
    "a slice": (lambda: window(slice(0, 2)), TypeError, ["rows", "range"]),
    "past the end": (lambda: window(range(4, 6)), ValueError, ["rows", "0 to 5"]),
    "empty": (lambda: window(range(2), range(3, 3)), ValueError, ["keys"]),
    "steps": (lambda: window(range(0, 4, 2)), ValueError, ["rows", "steps of 1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    wrong, error, words = BAD[name]
    with pytest.raises(error) as caught:
        wrong()
    assert all(word in str(caught.value) for word in words), caught.value
