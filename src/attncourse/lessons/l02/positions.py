"""The vectors of positions and their dot products, sinusoidal ones and rotary ones."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, exercise
from attncourse.checking.functions import check_function, check_numbers

BASE = 10_000.0
WIDTH = 4  # of the vectors that are multiplied by hand
PAIRS = ((7, 7), (40, 42), (1000, 1002))


def _hands(angles: Tensor) -> Tensor:
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


def _pe(p: int, d: int) -> Tensor:
    return _hands(p / BASE ** (torch.arange(0, d, 2) / d))


def _clocks(d: int, angle_of: Callable[[int], float]) -> Tensor:
    """Return the hands of all clocks in numbers of 64 bits: at large angles 32 give other sines."""
    angles = [angle_of(i) for i in range(d // 2)]
    return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])


@exercise()
def pe(answer: object) -> CheckResult:
    """Check `pe(n, d)`: the sinusoidal vector of one position, [d]."""
    praise = "Right at five positions and three widths."
    return check_function(
        answer,
        _pe,
        [(0, 4), (1, 4), (3, 4), (7, 6), (50, 10)],
        pe.mistakes,
        output_names=["the vector"],
        tolerance=1e-4,
        praise=praise,
    )


def _products(of_pair: Callable[[int, int], float]) -> Tensor:
    return torch.tensor([of_pair(p, q) for p, q in PAIRS], dtype=torch.float64)


def _from_distance(p: float, q: float) -> float:
    return math.cos(q - p) + math.cos((q - p) / 100)


DOT_PRODUCTS = _products(_from_distance)


@exercise(page=Numbers(DOT_PRODUCTS, [f"PE({p}) · PE({q})" for p, q in PAIRS], tolerance=5e-3))
def dot_products(answer: object) -> CheckResult:
    """Check three dot products of sinusoidal vectors of width 4."""
    otherwise = [
        "Only the distance of each pair counts. The first clock gives its cosine, the second "
        "the cosine of a hundredth of it. Add both. (The cosine of 2 is negative.)",
    ]
    praise = "Two of them are equal, as their distances are. And you wrote no vector down."
    return check_numbers(answer, dot_products, otherwise=otherwise, praise=praise)


QUERY, KEY = (3.0, 1.0), (1.0, -2.0)
PLACES, LATER = (2, 5), (12, 15)  # of query and key
Pair = tuple[float, float]


def turned(pair: Pair, quarters: int) -> Pair:
    """Turn a pair of numbers by a number of quarters, counterclockwise."""
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
TURNS = _answer(*_TURNED)


@exercise(
    page=Numbers(
        right=TURNS,
        labels={
            "The query at 2": ["first", "second"],
            "The key at 5": ["first", "second"],
            "Their score": ["at 2 and 5"],
            "And elsewhere": ["at 12 and 15"],
        },
        rows_apart=True,
    )
)
def quarter_turns(answer: object) -> CheckResult:
    """Check a turned query, a turned key, their score, and their score ten places later."""
    otherwise = [
        "The query isn't right: two quarter turns are a half turn, which changes signs.",
        "The query is right, the key isn't: five quarter turns end where one ends.",
        "The pairs are right, the score isn't: number times number, and add both.",
        "The last score isn't right. How far apart are query and key now?",
    ]
    praise = "The scores are equal, since the distances are."
    return check_numbers(answer, quarter_turns, otherwise=otherwise, praise=praise)
