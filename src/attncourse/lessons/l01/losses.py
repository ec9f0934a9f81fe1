"""What guesses cost: from counts, of a bigram model, of models that cut texts differently."""

import math

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Choice, Numbers, exercise
from attncourse.checking.functions import check_choice, check_function, check_numbers
from attncourse.training import bigram_loss as loss_of

AFTER_MM, THEN_A = 168, 72  # in the list of 32,033 names
SHARE = THEN_A / AFTER_MM
CHANCE = torch.tensor([SHARE, -math.log(SHARE)], dtype=torch.float64)


def _pair(share: float, cost: float) -> torch.Tensor:
    return torch.tensor([share, cost], dtype=torch.float64)


@exercise(
    page=Numbers(
        right=CHANCE, labels={"Probability": ["of a"], "Cost": ["in nats"]}, rows_apart=True
    )
)
def chance_from_counts(answer: object) -> CheckResult:
    """Check the probability of a after mm, and its cost in nats, [2]."""
    otherwise = [
        "The probability: of all times that mm was followed by something, how often by a? Not in "
        "percent: it lies between 0 and 1.",
        "The probability is right. Its cost is minus its natural logarithm.",
    ]
    praise = "A good guess: better than the 3.30 nats of one who knows nothing."
    return check_numbers(answer, chance_from_counts, otherwise=otherwise, praise=praise)


CASES = [
    (torch.tensor([[1, 1, 2], [0, 0, 5], [3, 0, 3]]),),
    (torch.tensor([[0, 8], [2, 6]]),),
    (torch.tensor([[4, 1, 0, 1], [0, 0, 0, 0], [2, 0, 7, 1], [1, 3, 0, 2]]),),
]


def _shares(counts: Tensor, dim: int) -> Tensor:
    return counts.double() / counts.double().sum(dim, keepdim=True).clamp(min=1)


def _mean_cost(counts: Tensor, shares: Tensor) -> Tensor:
    return -torch.special.xlogy(counts.double(), shares).sum() / counts.sum()


@exercise()
def bigram_loss(answer: object) -> CheckResult:
    """Check `bigram_loss(counts)`: mean -ln share of the pairs counted, [V, V] -> nats."""
    praise = "Shares within each row, and every pair paid for as often as it came."
    return check_function(
        answer, loss_of, CASES, bigram_loss.mistakes, output_names=["the loss"], praise=praise
    )


LOSSES = {"letters": (1.9, 1.0), "merges": (3.1, 2.1)}  # nats per token, letters per token
READINGS = {
    "letters": "The one with letters: its loss is lower.",
    "merges": "The one with merges: it pays less per letter.",
    "vocabulary": "Divide each loss by ln V of its vocabulary; the smaller quotient wins.",
    "never": "Losses over different tokens can't be compared.",
}


@exercise(page=Choice(READINGS))
def fair_comparison(answer: object) -> CheckResult:
    """Check which of two models with different tokens guesses better."""
    (letters, _), (loss, length) = LOSSES["letters"], LOSSES["merges"]
    praise = (
        f"{loss} / {length} = {loss / length:.2f} nats per letter, and the other pays {letters}."
    )
    return check_choice(answer, "merges", fair_comparison, praise)
