"""A chance from counts, and what it costs."""

import math
from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

AFTER_MM, THEN_A = 168, 72  # in the list of 32,033 names
SHARE = THEN_A / AFTER_MM
RIGHT = torch.tensor([SHARE, -math.log(SHARE)], dtype=torch.float64)


def _pair(share: float, cost: float) -> torch.Tensor:
    return torch.tensor([share, cost], dtype=torch.float64)


CHANCE_MISTAKES = (
    Mistake(
        _pair(THEN_A / 32033, -math.log(THEN_A / 32033)),
        "You divided by all names. *Given* that mm was read, only the 168 cases behind mm count.",
    ),
    Mistake(
        _pair(1 / 27, math.log(27)),
        "1/27 is what somebody says who knows no counts. Here they are known.",
    ),
    Mistake(
        _pair(1 - SHARE, -math.log(1 - SHARE)),
        "That is how likely it is that something *else* than a follows.",
    ),
    Mistake(
        _pair(THEN_A / (AFTER_MM - THEN_A), -math.log(THEN_A / (AFTER_MM - THEN_A))),
        "You divided the cases with a by those without. A probability divides by *all* cases.",
    ),
    Mistake(
        _pair(SHARE, -math.log2(SHARE)),
        "Your cost is in bits: a logarithm to base 2. For nats take the natural one, ln.",
    ),
    Mistake(
        _pair(SHARE, -math.log10(SHARE)),
        "Your logarithm has base 10. For nats take the natural one, ln (math.log in Python).",
    ),
    Mistake(
        _pair(SHARE, math.log(SHARE)),
        "The logarithm of a number below 1 is negative. The cost is *minus* it.",
    ),
    Mistake(
        _pair(SHARE, 1 - SHARE),
        "1 - p is how often something else comes. The cost is -ln p.",
    ),
)


@exercise(
    mistakes=CHANCE_MISTAKES,
    page=Numbers(
        right=RIGHT, labels={"Probability": ["of a"], "Cost": ["in nats"]}, rows_apart=True
    ),
)
def chance_from_counts(answer: Any) -> Verdict:
    """Check the probability of a behind mm, and its cost in nats, [2]."""
    return check_rows(
        answer,
        RIGHT,
        CHANCE_MISTAKES,
        rows=[
            (
                1,
                "The probability: of all times that mm was followed by something, how often by a? "
                "Not in percent: it lies between 0 and 1.",
            ),
            (1, "The probability is right. Its cost is minus its natural logarithm."),
        ],
        praise="A good guess: better than the 3.30 nats of one who knows nothing.",
    )
