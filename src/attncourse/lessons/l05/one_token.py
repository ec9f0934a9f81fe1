"""Both norms of one token by hand."""

from typing import Any

import torch
import torch.nn.functional as F

from attncourse.checking.exercise import Mistake, exercise
from attncourse.checking.functions import check_rows
from attncourse.checking.on_page import Numbers
from attndoctor.verdict import Verdict

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
        whole=True,
    ),
    Mistake(
        "distances without their sign",
        torch.stack([BY_HAND[0].abs(), BY_HAND[1]]),
        "First row: a number below the mean stays below it. Keep the sign of its distance.",
    ),
    Mistake(
        "no mean subtracted",
        torch.stack([TOKEN / TOKEN.std(correction=0), BY_HAND[1]]),
        "First row: you divided by the standard deviation, but the mean is still in the numbers.",
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


@exercise(
    mistakes=BY_HAND_MISTAKES,
    page=Numbers(
        right=BY_HAND,
        labels={norm: [f"column {i}" for i in range(4)] for norm in ("LayerNorm", "RMSNorm")},
        tolerance=2e-3,
        rows_apart=True,
    ),
)
def by_hand(answer: Any) -> Verdict:
    """Check LayerNorm and RMSNorm of [2, 4, 4, 6] (no eps, gain 1, bias 0), two rows of four."""
    return check_rows(
        answer,
        BY_HAND,
        BY_HAND_MISTAKES,
        rows=[
            (
                4,
                "The first row isn't right: write down the mean, the four distances from it, the "
                "mean of their squares, its root. Then divide.",
            ),
            (
                4,
                "The second row isn't right: write down the four squares, their mean, its root. "
                "Then divide.",
            ),
        ],
        tolerance=2e-3,
        praise="Mean and spread for LayerNorm, size alone for RMSNorm.",
    )
