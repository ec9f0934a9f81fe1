"""MaskPainter's Python side: its state, the mask that it hands over, its refusals."""

import torch
from tools.refusing import refusals

from attncourse.widgets import MaskPainter
from attnlib import causal_mask

TOKENS = ["The", "cat", "sat"]
Q = torch.ones(3, 8)


def painter(tokens=TOKENS, q=Q, k=Q, **options):
    return MaskPainter(tokens, q, k, **options)


def test_it_is_meant_to_be_causal_if_it_starts_so_or_as_is_said():
    assert painter(mask=causal_mask(3)).meant_causal
    assert painter().mask == [True] * 9 and not painter().meant_causal
    assert painter(meant_causal=True).meant_causal


def test_a_painted_mask_goes_into_attnlib_with_rows_as_queries():
    mask = torch.tensor([[True, False, False], [True, True, False], [False, False, False]])
    assert torch.equal(painter(mask=mask).mask_tensor(), mask)
    widget = painter()
    widget.set_state({"mask": mask.flatten().tolist()})
    assert torch.equal(widget.mask_tensor(), mask)


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        painter: {
            "tokens": ["a cat"], "mask": [[True], torch.ones(3, 3)], "origin": [0],
            "meant_causal": [1], "puzzle": [None],
        },
    },
    ValueError: {
        painter: {
            "tokens": [["a"] * 17], "q": [Q[:2]], "k": [Q[:, :4], Q / 0],
            "mask": [causal_mask(4)],
        },
    },
})  # fmt: skip
