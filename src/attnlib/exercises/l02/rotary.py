"""Rotary positions on paper: a query and a key of one pair, turned by quarters."""

from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

QUERY, KEY = (3.0, 1.0), (2.0, -1.0)
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
ROTARY_MISTAKES = (
    Mistake(
        _answer(*_TURNED, 5.0),
        "The turned pairs are right. Multiply number by number and add up; mind the signs.",
    ),
    Mistake(
        _answer(*_TURNED, later=_score(turned(QUERY, 2), turned(KEY, 15))),
        "The first score is right. For the other places both have moved on by ten, so both are "
        "turned by as much more.",
    ),
    Mistake(
        _answer(turned(QUERY, -2), turned(KEY, -5)),
        "You turned clockwise. A quarter turn makes (-y, x) of (x, y).",
    ),
    Mistake(
        _answer(QUERY, KEY),
        "These are the pairs before they are turned: at position p a pair makes p quarter turns.",
        whole=True,
    ),
    Mistake(
        _answer(turned(QUERY, PLACES[1]), turned(KEY, PLACES[0])),
        "You turned the query by the key's position, and the key by the query's.",
        whole=True,
    ),
    Mistake(
        _answer(QUERY, turned(KEY, PLACES[1] - PLACES[0])),
        "The score comes out right, as only the distance counts. But the pairs that were asked for "
        "are those that the model computes: each turned by its own position.",
        whole=True,
    ),
)


@exercise(
    mistakes=ROTARY_MISTAKES,
    page=Numbers(
        right=RIGHT,
        labels={
            "The query at 2": ["first", "second"],
            "The key at 5": ["first", "second"],
            "Their score": ["at 2 and 5"],
            "And elsewhere": ["at 12 and 15"],
        },
        rows_apart=True,
    ),
)
def quarter_turns(answer: Any) -> Verdict:
    """Check a turned query, a turned key, their score, and their score ten places later."""
    return check_rows(
        answer,
        RIGHT,
        ROTARY_MISTAKES,
        rows=[
            (2, "The query isn't right: two quarter turns are a half turn, which changes signs."),
            (2, "The query is right, the key isn't: five quarter turns lead to where one does."),
            (1, "The pairs are right, the score isn't: number times number, and add both."),
            (1, "The last score isn't right. How far apart are query and key now?"),
        ],
        praise="The scores are equal, since the distance is.",
    )
