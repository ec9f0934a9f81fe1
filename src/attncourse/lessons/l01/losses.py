"""The loss of a bigram model, from its counts."""

from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, read_mistakes
from attncourse.training import bigram_loss as loss_of

CASES = [
    (torch.tensor([[1, 1, 2], [0, 0, 5], [3, 0, 3]]),),
    (torch.tensor([[0, 8], [2, 6]]),),
    (torch.tensor([[4, 1, 0, 1], [0, 0, 0, 0], [2, 0, 7, 1], [1, 3, 0, 2]]),),
]


def _shares(counts: Tensor, dim: int) -> Tensor:
    return counts.double() / counts.double().sum(dim, keepdim=True).clamp(min=1)


def _mean_cost(counts: Tensor, shares: Tensor) -> Tensor:
    return -torch.special.xlogy(counts.double(), shares).sum() / counts.sum()


MISTAKES = read_mistakes("bigram_loss", globals())


@exercise(mistakes=MISTAKES)
def bigram_loss(answer: Any) -> CheckResult:
    """Check `bigram_loss(counts)`: mean -ln share of the pairs counted, [V, V] -> nats."""
    praise = "Shares within each row, and every pair paid as often as it came."
    return check_function(
        answer, loss_of, CASES, MISTAKES, output_names=["the loss"], praise=praise
    )
