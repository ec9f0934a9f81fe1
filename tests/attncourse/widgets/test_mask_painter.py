"""MaskPainter's Python side: its state, the mask that it hands over, its refusals."""

import numpy as np
import pytest
import torch
import traitlets

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


def test_without_a_mask_everybody_may_look_everywhere():
    assert painter().mask == [True] * 16


def test_it_is_meant_to_be_causal_if_it_starts_so_or_as_is_said():
    assert painter(mask=causal_mask(4)).meant_causal
    assert not painter().meant_causal
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


def test_what_a_reader_paints_is_observable():
    widget = painter(T=3)
    seen = []
    widget.observe(lambda change: seen.append(change["new"]), "mask")
    widget.mask = causal_mask(3).flatten().tolist()
    assert seen == [[True, False, False, True, True, False, True, True, True]]
    assert "mask" in widget.keys  # synced with the browser


@pytest.mark.parametrize("name", ["tokens", "q", "k", "T", "d", "origin", "puzzle"])
def test_what_describes_the_tensors_is_fixed(name):
    widget = painter()
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


def test_repr_is_short_and_the_same_in_each_run():
    assert repr(painter(mask=causal_mask(4))) == "MaskPainter(4 tokens, d=6, 10 looks allowed)"


FEW = torch.ones(3, 4, dtype=torch.bool)


@pytest.mark.parametrize(
    ("error", "message", "arguments", "options"),
    [
        (TypeError, r"tokens .* did you forget .split", ("a cat", Q, Q), {}),
        (ValueError, r"at most 16, got 17", (["a"] * 17, Q, Q), {}),
        (ValueError, r"q .* one row a token", (TOKENS[:3], Q, Q), {}),
        (ValueError, r"k must have the shape of q", (TOKENS, Q, Q[:, :4]), {}),
        (ValueError, r"k must be finite", (TOKENS, Q, Q / 0), {}),
        (TypeError, r"mask must be a torch.Tensor, got list", (TOKENS, Q, Q), {"mask": [True]}),
        (TypeError, r"mask must be boolean", (TOKENS, Q, Q), {"mask": torch.ones(4, 4)}),
        (ValueError, r"mask .* \[4, 4\], got \[3, 4\]", (TOKENS, Q, Q), {"mask": FEW}),
        (TypeError, r"origin must be a string", (TOKENS, Q, Q), {"origin": 0}),
        (TypeError, r"meant_causal must be True or", (TOKENS, Q, Q), {"meant_causal": 1}),
        (TypeError, r"puzzle must be True or", (TOKENS, Q, Q), {"puzzle": None}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, arguments, options):
    with pytest.raises(error, match=message):
        MaskPainter(*arguments, **options)
