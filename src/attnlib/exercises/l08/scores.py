"""A score by which a head may be called a previous-token head."""

from collections.abc import Callable

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise


def _score(weights: Tensor) -> Tensor:
    """Return the mean weight on the token before, one number per head: [B, h, T, T] -> [h]."""
    return weights.diagonal(-1, -2, -1).mean((0, 2))


def _is_largest(weights: Tensor) -> Tensor:
    """Return how often the token before has the largest weight: [B, h, T, T] -> [h]."""
    before = torch.arange(weights.shape[-1] - 1)
    return (weights[:, :, 1:].argmax(-1) == before).float().mean((0, 2))


PREVIOUS_MISTAKES = (
    Mistake(
        lambda weights: weights.diagonal(1, -2, -1).mean((0, 2)),
        "This is the weight on the token *after*. Rows are queries: of row i you want the column "
        "i - 1.",
    ),
    Mistake(
        lambda weights: weights.diagonal(0, -2, -1).mean((0, 2)),
        "This is the weight on the token itself, on the main diagonal. The diagonal that you want "
        "lies one below.",
    ),
    Mistake(
        lambda weights: weights.diagonal(-1, -2, -1).sum(-1).mean(0) / weights.shape[-1],
        "You divide by T rows. The first token has no token before it, so T - 1 rows count: a "
        "perfect head must score 1.",
    ),
    Mistake(
        lambda weights: weights.roll(1, -1).diagonal(0, -2, -1).mean((0, 2)),
        "Row 0 has no token before it: its column -1 is the *last* one. Begin with row 1.",
    ),
    Mistake(
        lambda weights: weights.diagonal(-1).mean((0, 2)),
        "`diagonal` takes the first two axes, here B and h, unless it is told dim1 and dim2. Rows "
        "and columns are the last two.",
    ),
    Mistake(
        lambda weights: weights.diagonal(-1, -2, -1).sum(-1).mean(0),
        "You added up the weights. Take their mean, so that a perfect head scores 1, however long "
        "the text is.",
    ),
    Mistake(
        lambda weights: weights.diagonal(-1, -2, -1).mean(-1),
        "You return a score for each sample and head, [B, h]. Take the mean over the samples, too.",
    ),
    Mistake(
        lambda weights: weights.diagonal(-1, -2, -1).mean(),
        "You return one number for all heads together. Which head is it, then? One score per head "
        "was wanted: [h].",
    ),
    Mistake(
        lambda weights: weights.diagonal(-1, -2, -1).mean((1, 2)),
        "You took the mean over the heads, and kept the samples. The axes are [B, h, T, T].",
    ),
    Mistake(
        _is_largest,
        "You count in how many rows the token before has the *largest* weight. That is a fair "
        "score, too, but asked for is the mean weight.",
    ),
)


def _cases() -> list[tuple[Tensor]]:
    perfect = torch.eye(4).roll(1, 0)  # row i looks at i - 1, the first one around the corner
    even = torch.full((4, 4), 0.25)
    return [
        (torch.stack([perfect, even, perfect.T])[None],),  # [1, 3, 4, 4]
        ((2 * torch.randn(2, 3, 5, 5)).softmax(-1),),
        (torch.randn(3, 4, 2, 2).softmax(-1),),
    ]


@exercise(mistakes=PREVIOUS_MISTAKES)
def previous_token(answer: Callable) -> Verdict:
    """Check `previous_token_score(weights)`: [B, h, T, T] -> [h], the mean weight one back."""
    return check_function(
        answer,
        _score,
        _cases(),
        PREVIOUS_MISTAKES,
        output_names=["the scores"],
        praise="A perfect previous-token head scores 1, an even one 1/T, one that looks ahead 0.",
    )
