"""A causal mask and padding in one mask, for each sequence of a batch."""

from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise
from attncourse.checking.calling import as_outputs, call, mentions
from attncourse.checking.functions import not_yet
from attnlib.masks import causal_mask


def _triangle(real: Tensor) -> Tensor:
    return causal_mask(real.shape[-1])


def _keys(real: Tensor) -> Tensor:
    return real[:, None, None, :]  # [B, T] -> [B, 1, 1, T]


def causal_among_real(real: Tensor) -> Tensor:
    """Return the mask [B, 1, T, T]: nobody looks ahead, and nobody looks at padding."""
    return _triangle(real) & _keys(real)


def _as_wide(mask: Tensor, real: Tensor) -> Tensor:
    """Return a mask with one map for each sequence."""
    (B, T) = real.shape
    return mask.expand(B, 1, T, T)


def _cases() -> list[tuple[Tensor]]:
    """Return padding on the right, on the left and between; of one batch B and T are equal."""
    rows = ["11100 11111", "0111 1111 0011", "1011 1101 1110 0001", "1"]
    return [
        (torch.tensor([[letter == "1" for letter in row] for row in batch.split()]),)
        for batch in rows
    ]


@exercise()
def causal_and_padding(answer: Any) -> CheckResult:
    """Check `may_look(real)`: real tokens [B, T] -> the boolean mask [B, 1, T, T]."""
    cases = _cases()
    praise = "Right with padding on either side, and with a single token."
    mistakes = causal_and_padding.mistakes
    result = check_function(
        answer, causal_among_real, cases, mistakes, output_names=["the mask"], praise=praise
    )
    (mask, *_) = as_outputs(call(answer, cases[0]).outputs)
    if result and torch.as_tensor(mask).dtype != torch.bool:
        return not_yet(causal_and_padding.hints["floats"])
    if result and mentions(answer, "causal_mask"):
        return not_yet(causal_and_padding.hints["ready_made"])
    if isinstance(mask, Tensor) and mask.is_floating_point() and mask.min() < -1:
        return not_yet(causal_and_padding.hints["numbers"])
    return result
