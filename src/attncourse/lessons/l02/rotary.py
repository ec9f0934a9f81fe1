"""Rotary positions on paper: a query and a key of one pair, turned by quarters."""

from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

QUERY, KEY = (3.0, 1.0), (1.0, -2.0)
PLACES, LATER = (2, 5), (12, 15)  # of query and key
Pair = tuple[float, float]


def turned(pair: Pair, quarters: int) -> Pair:
    """Turn a pair of numbers by so many quarters, counterclockwise."""
    x, y = pair
    for _ in range(quarters % 4):
        x, y = -y, x
    return x, y


def _score(query: Pair, key: Pair) -> float:
    return query[0] * key[0] + query[1] * key[1]


def _answer(
    query: Pair, key: Pair, score: float | None = None, later: float | None = None
) -> Tensor:
    score = _score(query, key) if score is None else score
    later = score if later is None else later
    return torch.tensor([*query, *key, score, later], dtype=torch.float64)


_TURNED = turned(QUERY, PLACES[0]), turned(KEY, PLACES[1])
RIGHT = _answer(*_TURNED)
MISTAKES = read_mistakes("quarter_turns", globals())
PAGE = Numbers(
    right=RIGHT,
    labels={
        "The query at 2": ["first", "second"],
        "The key at 5": ["first", "second"],
        "Their score": ["at 2 and 5"],
        "And elsewhere": ["at 12 and 15"],
    },
    rows_apart=True,
)


@exercise(mistakes=MISTAKES, page=PAGE)
def quarter_turns(answer: Any) -> CheckResult:
    """Check a turned query, a turned key, their score, and their score ten places later."""
    otherwise = [
        "The query isn't right: two quarter turns are a half turn, which changes signs.",
        "The query is right, the key isn't: five quarter turns end where one ends.",
        "The pairs are right, the score isn't: number times number, and add both.",
        "The last score isn't right. How far apart are query and key now?",
    ]
    praise = "The scores are equal, since the distances are."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
