"""Masks: their orientation, their shapes' meaning, and how they combine."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import causal_mask, padding_mask
from attnlib.masks import AttentionMask, combine_masks

CPU = torch.device("cpu")


@given(st.integers(1, 9))
def test_causal_mask_looks_left_and_at_itself(T):
    mask = causal_mask(T)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j <= i for j in range(T)] for i in range(T)]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int32, torch.uint64])
def test_padding_mask_takes_all_whole_numbers(dtype):
    lengths = torch.tensor([2, 0, 7], dtype=dtype)
    assert torch.equal(padding_mask(lengths, 7), padding_mask(lengths.long(), 7))
    with pytest.raises(ValueError, match="between 0 and T=6"):
        padding_mask(lengths, 6)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_padding_mask_marks_the_real_tokens(lengths):
    mask = padding_mask(torch.tensor(lengths), 7)
    assert mask.tolist() == [[j < length for j in range(7)] for length in lengths]


def test_nothing_to_limit_is_no_mask():
    assert combine_masks((2, 3, 4, 5), CPU) is None


def test_everything_combines():
    B, h, T = 2, 3, 4
    mask = torch.rand(B, T, T) < 0.7
    key_mask = padding_mask(torch.tensor([2, 4]), T)
    combined = combine_masks((B, h, T, T), CPU, mask=mask, key_mask=key_mask, causal=True)
    for b in range(B):
        for head in range(h):
            for i in range(T):
                for j in range(T):
                    expected = mask[b, i, j] and key_mask[b, j] and j <= i
                    assert combined.expand(B, h, T, T)[b, head, i, j] == expected


def test_masks_stay_as_small_as_they_come():
    # Broadcasting is left to the softmax: no [B, h, T_q, T_k] copy of a small mask.
    assert combine_masks((8, 16, 4, 4), CPU, mask=causal_mask(4)).shape == (4, 4)
    key_mask = torch.ones(8, 4, dtype=torch.bool)
    assert combine_masks((8, 16, 4, 4), CPU, key_mask=key_mask).shape == (8, 1, 1, 4)


@pytest.mark.parametrize(
    "shape", [(3, 4), (2, 3, 4), (1, 1, 3, 4), (2, 1, 3, 4), (2, 5, 3, 4), (1, 5, 1, 4)]
)
def test_shapes_that_fit(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    assert combine_masks((2, 5, 3, 4), CPU, mask=mask).broadcast_to(2, 5, 3, 4).all()


@pytest.mark.parametrize(
    "shape", [(4,), (4, 3), (1, 4), (5, 3, 4), (10, 3, 4), (1, 3, 4), (2, 4), (2, 5, 4, 3)]
)
def test_shapes_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="mask must have"):
        combine_masks((2, 5, 3, 4), CPU, mask=torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("biased", [True, False])
def test_kernels_never_get_an_empty_row(biased):
    # Kernels differ in what they make of a row that may look nowhere; so they never get one.
    q, mask = torch.randn(2, 3, 4, 5), torch.rand(2, 3, 4, 4) < 0.5
    mask[0, 1, 2] = False
    bias = torch.randn(1, 3, 4, 4) if biased else None
    attn_mask, fully_masked, _ = AttentionMask.of(q, q, mask=mask, score_bias=bias)
    allowed = attn_mask if attn_mask.dtype == torch.bool else attn_mask.isfinite()
    assert allowed.any(-1).all()
    assert torch.equal(fully_masked, ~mask.any(-1, keepdim=True))
    seeing = ~fully_masked.expand_as(mask)
    assert torch.equal(allowed[seeing], mask[seeing])


def test_causality_alone_needs_no_mask():
    q = torch.randn(2, 3, 4, 5)
    assert AttentionMask.of(q, q, causal=True) == AttentionMask(is_causal=True)
    one = AttentionMask.of(q[:, :, :1], q, causal=True, past=3)  # it may look everywhere
    assert one == AttentionMask()
