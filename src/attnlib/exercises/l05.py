"""Checks of lesson L05: norms by hand and in code, pre-norm, a diagnosis, and the identity."""

from typing import Any

import torch
import torch.nn.functional as F

from attnlib._verdict import Verdict
from attnlib.exercises._checking import Exercise, Mistake, as_tensor, correct, not_yet
from attnlib.exercises._l05_blocks import (
    IDENTITY_MISTAKES,
    PRE_NORM_MISTAKES,
    identity_at_start,
    pre_norm,
)
from attnlib.exercises._l05_norms import (
    LAYER_NORM_MISTAKES,
    RMS_NORM_MISTAKES,
    layer_norm,
    rms_norm,
)

# --- by hand -------------------------------------------------------------------------------------

TOKEN = torch.tensor([2.0, 4.0, 4.0, 6.0], dtype=torch.float64)
BY_HAND = torch.stack([F.layer_norm(TOKEN, (4,), eps=0), F.rms_norm(TOKEN, (4,), eps=0)])
CENTERED = TOKEN - TOKEN.mean()

BY_HAND_MISTAKES = (
    Mistake(
        "only centered",
        torch.stack([CENTERED, BY_HAND[1]]),
        "First row: the mean is gone, but you haven't divided by the standard deviation yet.",
    ),
    Mistake(
        "divided by the variance",
        torch.stack([CENTERED / TOKEN.var(correction=0), BY_HAND[1]]),
        "First row: you divided by the variance. LayerNorm divides by its square root.",
    ),
    Mistake(
        "unbiased variance",
        torch.stack([CENTERED / TOKEN.std(), BY_HAND[1]]),
        "First row: your variance divides the sum of squares by 3. Here it is the plain mean of "
        "the four squared distances.",
    ),
    Mistake(
        "rows swapped",
        BY_HAND.flip(0),
        "Both results are there, but in each other's place: LayerNorm comes first.",
    ),
    Mistake(
        "rms of the centered token",
        torch.stack([BY_HAND[0], BY_HAND[0]]),
        "Second row: RMSNorm subtracts nothing. Start again from 2, 4, 4, 6.",
    ),
    Mistake(
        "divided by the length",
        torch.stack([BY_HAND[0], TOKEN / TOKEN.norm()]),
        "Second row: you divided by the root of the sum of squares. The M in RMS is a mean.",
    ),
    Mistake(
        "no root",
        torch.stack([BY_HAND[0], TOKEN / TOKEN.square().mean()]),
        "Second row: you divided by the mean square. The R in RMS is a root.",
    ),
)


def by_hand(answer: Any) -> Verdict:
    """Check LayerNorm and RMSNorm of [2, 4, 4, 6] (no eps, gain 1, bias 0), two rows of four."""
    given = as_tensor(answer)
    if given is None or given.shape != BY_HAND.shape:
        return not_yet(
            "Two rows of four numbers are wanted: [LayerNorm, RMSNorm]. Is every ... replaced?"
        )
    if torch.allclose(given, BY_HAND, atol=2e-3):
        return correct("Mean and spread for LayerNorm, size alone for RMSNorm.")
    for mistake in BY_HAND_MISTAKES:
        if torch.allclose(given, mistake.answer, atol=2e-3):
            return not_yet(mistake.hint)
    if torch.allclose(given, BY_HAND, atol=6e-3):
        return not_yet("Very close. Three decimals are wanted.")
    wrong_rows = [i for i in (0, 1) if not torch.allclose(given[i], BY_HAND[i], atol=2e-3)]
    row = wrong_rows[0]
    for mistake in BY_HAND_MISTAKES:  # the other row may hold a mistake of its own
        if torch.allclose(given[row], mistake.answer[row], atol=2e-3):
            return not_yet(mistake.hint)
    wanted = (
        "write down the mean, the four distances from it, the mean of their squares, its root",
        "write down the four squares, their mean, its root",
    )
    return not_yet(f"The {('first', 'second')[row]} row isn't right: {wanted[row]}. Then divide.")


# --- a diagnosis ---------------------------------------------------------------------------------

DIAGNOSIS = {"A": "residual", "B": "norm", "C": "both"}
CHOICES = tuple(sorted(DIAGNOSIS.values()))

DIAGNOSIS_MISTAKES = (
    Mistake(
        "A lacks the norm",
        DIAGNOSIS | {"A": "norm"},
        "Log A: without a norm, sizes drift with depth, and the gradient with them. Is its first "
        "gradient far from 1?",
    ),
    Mistake(
        "A lacks both",
        DIAGNOSIS | {"A": "both"},
        "Log A: the loss looks as in log C, but compare the gradients at step 0. Something in A "
        "keeps the sizes healthy.",
    ),
    Mistake(
        "B lacks the residual",
        DIAGNOSIS | {"B": "residual"},
        "Log B: a loss of hundreds means huge outputs. Can that happen where a norm has the last "
        "word in each block?",
    ),
    Mistake(
        "B lacks both",
        DIAGNOSIS | {"B": "both"},
        "Log B: with neither part, each block shrinks what it gets. Here something has grown: what "
        "adds up and is never brought back to size?",
    ),
    Mistake(
        "C lacks the residual",
        DIAGNOSIS | {"C": "residual"},
        "Log C: the tokens are equal as without a residual, but look at the gradient at step 0. "
        "Would a norm let it get that small?",
    ),
    Mistake(
        "C lacks the norm",
        DIAGNOSIS | {"C": "norm"},
        "Log C: a residual carries the gradient past every block. Has anything carried this one?",
    ),
)


def diagnosis(answer: Any) -> Verdict:
    """Check which part each log's stack lacks: {"A": ..., "B": ..., "C": ...}."""
    if not isinstance(answer, dict) or set(answer) != set(DIAGNOSIS):
        return not_yet('A dictionary with the keys "A", "B" and "C" is wanted.')
    for log, missing in answer.items():
        if missing not in CHOICES:
            return not_yet(f"Log {log}: choose one of {', '.join(map(repr, CHOICES))}.")
    if answer == DIAGNOSIS:
        return correct("Loss, gradient and token cosine together tell the three apart.")
    for mistake in DIAGNOSIS_MISTAKES:
        wrong = next(log for log in DIAGNOSIS if mistake.answer[log] != DIAGNOSIS[log])
        if answer[wrong] == mistake.answer[wrong]:
            return not_yet(mistake.hint)
    raise AssertionError("every wrong choice has a hint")


EXERCISES = {
    "by_hand": Exercise(by_hand, BY_HAND_MISTAKES),
    "layer_norm": Exercise(layer_norm, LAYER_NORM_MISTAKES),
    "rms_norm": Exercise(rms_norm, RMS_NORM_MISTAKES),
    "pre_norm": Exercise(pre_norm, PRE_NORM_MISTAKES),
    "diagnosis": Exercise(diagnosis, DIAGNOSIS_MISTAKES),
    "identity_at_start": Exercise(identity_at_start, IDENTITY_MISTAKES),
}
