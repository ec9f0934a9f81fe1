"""Masks: which way they point, which shapes they take, and what kernels get of them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import causal_mask, padding_mask
from attnlib.masks import AttentionMask, combine_masks

CPU = torch.device("cpu")


@given(st.integers(1, 7), st.integers(0, 4))
def test_causal_masks_look_left_and_at_themselves(T, past):
    mask = causal_mask(T, past=past)
    assert mask.dtype == torch.bool and mask.device == CPU
    assert mask.tolist() == [[j <= past + i for j in range(past + T)] for i in range(T)]
    assert causal_mask(T, device="meta").is_meta


@given(
    st.lists(st.integers(0, 7), max_size=5),
    st.sampled_from([torch.uint8, torch.uint16, torch.int32, torch.int64, torch.uint64]),
)
def test_padding_masks_mark_the_real_tokens(lengths, dtype):
    lengths_given = torch.tensor(lengths, dtype=dtype)
    with torch.device("meta"):  # the mask is made where the lengths are
        mask = padding_mask(lengths_given, 7)
    assert mask.tolist() == [[j < length for j in range(7)] for length in lengths]


SCORES = {2: (3, 4), 3: (2, 3, 4), 4: (2, 5, 3, 4)}
FITTING = {
    2: [(3, 4)],
    3: [(3, 4), (2, 3, 4)],
    4: [(3, 4), (2, 3, 4), (1, 1, 3, 4), (2, 1, 3, 4), (2, 5, 3, 4), (1, 5, 1, 4), (1, 1, 3, 1)],
}
WRONG = [(), (4,), (3,), (4, 3), (1, 4), (3, 1), (2, 4), (5, 3, 4), (10, 3, 4), (1, 3, 4)]
WRONG += [(2, 3, 1), (3, 3, 4), (2, 5, 4, 3), (5, 2, 3, 4), (3, 5, 3, 4), (1, 1, 2, 5, 3, 4)]


@pytest.mark.parametrize("dims", SCORES)
def test_a_shape_fits_or_is_refused(dims):
    """Its number of dimensions alone says what it means, not sizes that happen to agree."""
    q, k = (torch.randn(*SCORES[dims][:-2], T, 6) for T in SCORES[dims][-2:])
    for shape in FITTING[dims]:
        mask = torch.rand(shape) < 0.5
        expected = mask[:, None] if len(shape) == 3 and dims == 4 else mask
        assert torch.equal(combine_masks(SCORES[dims], CPU, mask=mask), expected)
        if len(shape) != 3:
            AttentionMask.of(q, k, score_bias=torch.randn(shape))
    wrong = [*WRONG, *(shape for shape in FITTING[4] if shape not in FITTING[dims])]
    for shape in wrong:
        with pytest.raises(ValueError, match=r"^mask "):
            combine_masks(SCORES[dims], CPU, mask=torch.ones(shape, dtype=torch.bool))
    for shape in [*wrong, (2, 3, 4)]:
        with pytest.raises(ValueError, match=r"^score_bias "):
            AttentionMask.of(q, k, score_bias=torch.randn(shape))
    for shape in [(4,), (3,), (2, 3), (4, 2), (1, 4), (2, 1, 4)] + [(2, 4)] * (dims != 4):
        with pytest.raises(ValueError, match=r"^key_mask "):
            combine_masks(SCORES[dims], CPU, key_mask=torch.ones(shape, dtype=torch.bool))


def test_masks_stay_as_small_as_they_come_and_causality_alone_needs_none():
    """Broadcasting is left to the softmax: no [B, h, T_q, T_k] copy of a small mask."""
    assert combine_masks((8, 16, 4, 4), CPU) is None
    assert combine_masks((8, 16, 4, 4), CPU, causal=True).shape == (4, 4)
    key_mask = torch.ones(8, 4, dtype=torch.bool)
    assert combine_masks((8, 16, 4, 4), CPU, key_mask=key_mask).shape == (8, 1, 1, 4)
    q = torch.randn(2, 3, 4, 5)
    assert AttentionMask.of(q, q) == AttentionMask()
    assert AttentionMask.of(q, q, causal=True) == AttentionMask(is_causal=True)
    assert AttentionMask.of(q[:, :, :1], q, causal=True, past=3) == AttentionMask()
    assert AttentionMask.of(q[:, :, 2:], q, causal=True, past=2).attn_mask.shape == (2, 4)


@pytest.mark.parametrize("biased", [True, False])
def test_kernels_never_get_an_empty_row(biased):
    """Kernels differ in what they make of a row that may look nowhere."""
    q, mask = torch.randn(2, 3, 4, 5), torch.rand(2, 3, 4, 4) < 0.5
    mask[0, 1, 2] = False
    bias = torch.randn(1, 3, 4, 4).index_fill(2, torch.tensor([1]), -torch.inf) if biased else None
    attn_mask, fully_masked, _ = AttentionMask.of(q, q, mask=mask, score_bias=bias)
    mask = mask & (bias > -torch.inf) if biased else mask
    allowed = attn_mask.isfinite() if biased else attn_mask
    assert allowed.any(-1).all()
    assert torch.equal(fully_masked, ~mask.any(-1, keepdim=True))
    seeing = ~fully_masked.expand_as(mask)
    assert torch.equal(allowed[seeing], mask[seeing])
