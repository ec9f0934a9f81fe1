"""A causal mask and padding in one mask, for each sequence of a batch."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._calling import call
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise


def _triangle(real: Tensor) -> Tensor:
    T = real.shape[-1]
    return torch.ones(T, T, dtype=torch.bool).tril()


def _keys(real: Tensor) -> Tensor:
    return real[:, None, None, :]  # [B, T] -> [B, 1, 1, T]


def causal_among_real(real: Tensor) -> Tensor:
    """Return the mask [B, 1, T, T]: nobody looks ahead, and nobody looks at padding."""
    return _triangle(real) & _keys(real)


def _as_wide(mask: Tensor, real: Tensor) -> Tensor:
    """Return a mask with one map for each sequence."""
    (B, T) = real.shape
    return mask.expand(B, 1, T, T)


FLOATS = Mistake(
    lambda real: causal_among_real(real).float(),
    "The mask holds numbers. PyTorch adds such a mask to the scores, where 1 and 0 forbid "
    "nothing. Return booleans.",
)
NUMBERS = Mistake(
    lambda real: torch.zeros(1).masked_fill(~causal_among_real(real), -math.inf),
    "These are numbers to be added to scores: 0, and minus infinity or a large negative number. A "
    "boolean mask was wanted: True = may look.",
)
MASK_MISTAKES = (
    NUMBERS,
    Mistake(
        lambda real: _triangle(real) & real[:, None, :, None],
        "You forbid padding to look. It should be forbidden to be looked at: the axis of the keys "
        "is the last one, real[:, None, None, :].",
    ),
    Mistake(
        lambda real: causal_among_real(real) & real[:, None, :, None],
        "Padding may not be looked at, which is right; and you also forbid it to look. That makes "
        "rows without any key, and nobody asked for them.",
    ),
    Mistake(
        lambda real: _as_wide(_triangle(real), real),
        "Nobody looks ahead, but padding is read like a word. Where does `real` come in?",
    ),
    Mistake(
        lambda real: _as_wide(_keys(real), real),
        "Padding is hidden, but tokens look ahead. Both must allow a look.",
    ),
    Mistake(
        lambda real: _triangle(real) | _keys(real),
        "A look is allowed in your mask if *either* rule allows it. Both must: &, not |.",
    ),
    Mistake(
        lambda real: ~causal_among_real(real),
        "Your mask says True where a look is forbidden. Here True means that it is allowed.",
    ),
    Mistake(
        lambda real: _triangle(real) & _keys(~real),
        "You took True in `real` for padding: your words are hidden, and the padding is read.",
    ),
    Mistake(
        lambda real: _triangle(real).mT & _keys(real),
        "Your tokens look to the right. Rows look, columns are looked at: tril, not triu.",
    ),
    Mistake(
        lambda real: _triangle(real).tril(-1) & _keys(real),
        "The diagonal is missing: a token may look at itself.",
    ),
    Mistake(
        lambda real: causal_among_real(real) | torch.eye(real.shape[1], dtype=torch.bool),
        "You let every token look at itself, padding too. That saves rows that may look nowhere, "
        "but then padding is read by itself. Nobody may look at it.",
    ),
    Mistake(
        lambda real: causal_among_real(real) | ~causal_among_real(real).any(-1, keepdim=True),
        "A row that may look nowhere sees everything in your mask, padding and what comes later. "
        "Leave it blind: nobody asked for more.",
    ),
    Mistake(
        lambda real: _triangle(real) & _keys(real.sort(1, descending=True).values),
        "You count the real tokens, and take the first so many for real. Padding may stand on the "
        "left and between them, too: `real` says where.",
    ),
    Mistake(
        lambda real: causal_among_real(real).mT,
        "Your mask lies on its side: its columns look and its rows are looked at. Here rows look.",
    ),
    Mistake(
        lambda real: torch.ones(real.shape[1], real.shape[1]).tril(1).bool() & _keys(real),
        "Each token sees the next one. The last diagonal that is allowed is the main one.",
    ),
    Mistake(
        lambda real: _triangle(real) & real[:, None, :],
        "The mask is right, but it is [B, T, T]. In front of scores [B, h, T, T] its B would meet "
        "the heads: give it an axis for them, [B, 1, T, T].",
    ),
)


def _cases() -> list[tuple[Tensor]]:
    """Return padding on the right, on the left and between; of one batch B and T are equal."""
    rows = ["11100 11111", "0111 1111 0011", "1011 1101 1110 0001", "1"]
    return [
        (torch.tensor([[letter == "1" for letter in row] for row in batch.split()]),)
        for batch in rows
    ]


@exercise(mistakes=(*MASK_MISTAKES, FLOATS))
def causal_and_padding(answer: Callable[..., Any]) -> Verdict:
    """Check `may_look(real)`: real tokens [B, T] -> the boolean mask [B, 1, T, T]."""
    cases = _cases()
    verdict = check_function(
        answer,
        causal_among_real,
        cases,
        MASK_MISTAKES,
        output_names=["the mask"],
        praise="Right with padding on either side, and with a single token.",
    )
    mask = call(answer, cases[0]).outputs
    if verdict and mask.dtype != torch.bool:
        return not_yet(FLOATS.hint)
    if isinstance(mask, Tensor) and mask.is_floating_point() and mask.min() < -1:
        return not_yet(NUMBERS.hint)
    return verdict
