"""MaskPainter's Python side: its state, the mask that it hands over, its refusals."""

import numpy as np
import pytest
import torch
from tools.refusing import refusals

from attncourse.widgets import MaskPainter
from attnlib import causal_mask, scaled_dot_product_attention

TOKENS = ["The", "cat", "sat", "down"]
Q = torch.ones(4, 8)


def painter(T=4, d=6, **options):
    return MaskPainter([f"t{i}" for i in range(T)], torch.randn(T, d), torch.randn(T, d), **options)


def test_state_holds_the_tensors_as_float32_bytes():
    q, k = torch.randn(4, 6, dtype=torch.float64), torch.randn(6, 4).T
    widget = MaskPainter(TOKENS, q, k, origin="random")
    assert (widget.tokens, widget.T, widget.d, widget.origin) == (TOKENS, 4, 6, "random")
    for state, given in ((widget.q, q), (widget.k, k)):
        decoded = np.frombuffer(state, "<f4").reshape(4, 6)
        assert np.array_equal(decoded, given.float().numpy())


def test_it_is_meant_to_be_causal_if_it_starts_so_or_as_is_said():
    assert painter(mask=causal_mask(4)).meant_causal
    assert painter().mask == [True] * 16 and not painter().meant_causal
    assert painter(meant_causal=True).meant_causal
    assert not painter(mask=causal_mask(4), meant_causal=False).meant_causal


@pytest.mark.parametrize("T", [1, 2, 7, 16])
def test_the_mask_comes_back_as_it_was_given(T):
    mask = torch.rand(T, T) < 0.5
    given = painter(T, mask=mask).mask_tensor()
    assert given.dtype == torch.bool and torch.equal(given, mask)


def test_a_painted_mask_goes_into_attnlib_with_rows_as_queries():
    widget = painter(T=3)
    widget.set_state({"mask": [True, False, False, True, True, False, False, False, False]})
    q, k, v = torch.randn(3, 3, 6)
    output, weights = scaled_dot_product_attention(q, k, v, widget.mask_tensor())
    assert weights[0].tolist() == [1, 0, 0] and weights[1, 2] == 0
    assert (output[2] == 0).all()


def given(tokens=TOKENS, q=Q, k=Q, **options):
    return MaskPainter(tokens, q, k, **options)


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            given: {
                "tokens": ["a cat"], "mask": [[True], torch.ones(4, 4)], "origin": [0],
                "meant_causal": [1], "puzzle": [None],
            },
        },
        ValueError: {
            given: {
                "tokens": [["a"] * 17], "q": [Q[:3]], "k": [Q[:, :4], Q / 0],
                "mask": [torch.ones(3, 4, dtype=torch.bool)],
            },
        },
    }
)  # fmt: skip
