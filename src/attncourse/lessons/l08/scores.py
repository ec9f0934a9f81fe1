"""A score by which a head may be called a previous-token head."""

from collections.abc import Callable

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, read_mistakes


def _score(weights: Tensor) -> Tensor:
    """Return the mean weight on the token before, one number per head: [B, h, T, T] -> [h]."""
    return weights.diagonal(-1, -2, -1).mean((0, 2))


MISTAKES = read_mistakes("previous_token", globals())


def _cases() -> list[tuple[Tensor]]:
    perfect = torch.eye(4).roll(1, 0)  # row i looks at i - 1, the first one around the corner
    even = torch.full((4, 4), 0.25)
    return [
        (torch.stack([perfect, even, perfect.T])[None],),  # [1, 3, 4, 4]
        ((2 * torch.randn(2, 3, 5, 5)).softmax(-1),),
        (torch.randn(3, 4, 2, 2).softmax(-1),),
    ]


@exercise(mistakes=MISTAKES)
def previous_token(answer: Callable) -> CheckResult:
    """Check `previous_token_score(weights)`: [B, h, T, T] -> [h], the mean weight one back."""
    praise = "A perfect previous-token head scores 1, an even one 1/T, one that looks ahead 0."
    return check_function(
        answer, _score, _cases(), MISTAKES, output_names=["the scores"], praise=praise
    )
