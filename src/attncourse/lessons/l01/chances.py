"""A chance from counts, and what it costs."""

import math
from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

AFTER_MM, THEN_A = 168, 72  # in the list of 32,033 names
SHARE = THEN_A / AFTER_MM
RIGHT = torch.tensor([SHARE, -math.log(SHARE)], dtype=torch.float64)


def _pair(share: float, cost: float) -> torch.Tensor:
    return torch.tensor([share, cost], dtype=torch.float64)


MISTAKES = read_mistakes("chance_from_counts", globals())
PAGE = Numbers(right=RIGHT, labels={"Probability": ["of a"], "Cost": ["in nats"]}, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def chance_from_counts(answer: Any) -> CheckResult:
    """Check the probability of a after mm, and its cost in nats, [2]."""
    otherwise = [
        "The probability: of all times that mm was followed by something, how often by a? Not in "
        "percent: it lies between 0 and 1.",
        "The probability is right. Its cost is minus its natural logarithm.",
    ]
    praise = "A good guess: better than the 3.30 nats of one who knows nothing."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
