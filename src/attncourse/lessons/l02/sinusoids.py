"""The vector of a position, and a dot product of two that needs no table."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, exercise, read_mistakes
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


PE_MISTAKES = read_mistakes("pe", globals())


@exercise(mistakes=PE_MISTAKES)
def pe(answer: Any) -> CheckResult:
    """Check `pe(n, d)`: the sinusoidal vector of one position, [d]."""
    praise = "Right at five positions and three widths."
    return check_function(
        answer,
        _pe,
        [(0, 4), (1, 4), (3, 4), (7, 6), (50, 10)],
        PE_MISTAKES,
        output_names=["the vector"],
        tolerance=1e-4,
        praise=praise,
    )


def _products(of_pair: Callable[[int, int], float]) -> Tensor:
    return torch.tensor([of_pair(p, q) for p, q in PAIRS], dtype=torch.float64)


def _from_distance(p: float, q: float) -> float:
    return math.cos(q - p) + math.cos((q - p) / 100)


DOT_PRODUCTS = _products(_from_distance)
DOT_MISTAKES = read_mistakes("dot_products", globals())
DOT_PAGE = Numbers(DOT_PRODUCTS, [f"PE({p}) · PE({q})" for p, q in PAIRS], tolerance=5e-3)


@exercise(mistakes=DOT_MISTAKES, page=DOT_PAGE)
def dot_products(answer: Any) -> CheckResult:
    """Check three dot products of sinusoidal vectors of width 4."""
    otherwise = [
        "Only the distance of each pair counts. The first clock gives its cosine, the second "
        "the cosine of a hundredth of it. Add both.",
    ]
    praise = "Two of them are equal, as their distances are. And you wrote no vector down."
    return check_numbers(answer, DOT_PAGE, DOT_MISTAKES, otherwise=otherwise, praise=praise)
