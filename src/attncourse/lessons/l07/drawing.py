"""From logits to the probabilities of the next token: temperature and top-k."""

import math

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, exercise
from attncourse.checking.functions import check_function, check_numbers

LOGITS = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64).log()


def probabilities(logits: Tensor, temperature: float, top_k: int) -> Tensor:
    """Return the probabilities [V] of softmax(logits / temperature) among the top_k likeliest."""
    kept = logits >= logits.topk(top_k).values[-1]
    return (logits / temperature).masked_fill(~kept, -math.inf).softmax(-1)


PLAIN, COLD, TOP = (
    probabilities(LOGITS, 1, 3),
    probabilities(LOGITS, 0.5, 3),
    probabilities(LOGITS, 1, 2),
)
RIGHT = torch.stack([PLAIN, COLD, TOP])
TITLES = ("Temperature 1", "Temperature 1/2", "Temperature 1, top-k 2")


def _with(
    plain: Tensor | None = None, cold: Tensor | None = None, top: Tensor | None = None
) -> Tensor:
    rows = zip((plain, cold, top), RIGHT, strict=True)
    return torch.stack([right if row is None else row for row, right in rows])


@exercise(
    page=Numbers(right=RIGHT, labels={title: ["a", "b", "c"] for title in TITLES}, rows_apart=True)
)
def probabilities_by_hand(answer: object) -> CheckResult:
    """Check three tokens' probabilities, for logits ln 1, ln 2, ln 4, in three ways: [3, 3]."""
    otherwise = [
        "Temperature 1: e to the power of ln 1, ln 2 and ln 4, each divided by their sum.",
        "Temperature 1/2: the logits become 0, ln 4 and ln 16. Then as in the first row.",
        "Top-k 2: the least likely token gets 0; the two others keep their ratio, and sum to 1.",
    ]
    praise = "A temperature keeps the order and all tokens; top-k keeps ratios and drops tokens."
    return check_numbers(answer, probabilities_by_hand, otherwise=otherwise, praise=praise)


def _cases() -> list[tuple[Tensor, float, int]]:
    """Return logits of some sizes and heights, with temperatures on both sides of 1."""
    kinds = ((7, 0.5, 3, 0), (9, 2.5, 5, -40), (5, 0.25, 1, 0), (6, 1.5, 6, 0))
    return [(torch.randn(V, dtype=torch.float64) + at, tau, k) for V, tau, k, at in kinds]


@exercise()
def next_probabilities(answer: object) -> CheckResult:
    """Check `probabilities(logits, temperature, top_k)`: [V] -> the next token's [V]."""
    praise = "That is what `generate` draws from, at every step."
    return check_function(
        answer,
        probabilities,
        _cases(),
        next_probabilities.mistakes,
        output_names=["the probabilities"],
        praise=praise,
    )
