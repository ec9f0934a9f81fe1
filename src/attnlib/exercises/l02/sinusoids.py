"""The vector of a position, and a dot product of two that needs no table."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, check_values
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

BASE = 10_000.0
WIDTH = 4  # of the vectors that are multiplied by hand
PAIRS = ((7, 7), (40, 42), (1000, 1002))


def _hands(angles: Tensor) -> Tensor:
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


def _pe(p: int, d: int) -> Tensor:
    return _hands(p / BASE ** (torch.arange(0, d, 2) / d))


def _with_own_exponents(p: int, d: int) -> Tensor:
    angles = p / BASE ** (torch.arange(d) / d)
    return torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos())


def _halves(p: int, d: int) -> Tensor:
    angles = p / BASE ** (torch.arange(0, d, 2) / d)
    return torch.cat([angles.sin(), angles.cos()])


def _clocks(d: int, angle_of: Callable[[int], float]) -> Tensor:
    """Return the hands of all clocks in Python's own numbers, of 64 bits."""
    angles = [angle_of(i) for i in range(d // 2)]
    return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])


def _with_places_for_clocks(p: int, d: int) -> Tensor:
    angles = p / BASE ** (2 * torch.arange(d) / d)
    return torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos())


PE_MISTAKES = (
    Mistake(
        lambda p, d: _pe(p, d).view(-1, 2).flip(1).flatten(),
        "Sine and cosine are exchanged: at position 0 the vector begins 0, 1.",
    ),
    Mistake(
        _halves,
        "All sines stand first, then all cosines. (Some programs do so.) Here a clock's sine and "
        "cosine stand side by side.",
    ),
    Mistake(
        lambda p, d: _hands(p / BASE ** (torch.arange(d // 2) / d)),
        "Your clocks don't become slow enough. Clock i divides by 10000 to the power 2i / d; you "
        "left out the 2.",
    ),
    Mistake(
        lambda p, d: _hands(p / BASE ** (2 * torch.arange(0, d, 2) / d)),
        "Your clocks become slow too soon. In 2i / d, i counts *clocks*: 0, 1, 2. The steps of "
        "arange(0, d, 2) are 2i already.",
    ),
    Mistake(
        _with_places_for_clocks,
        "You took the place of a number for i. Numbers 2i and 2i + 1 stand for clock i: of place "
        "5, i is 2.",
    ),
    Mistake(
        lambda p, d: _clocks(d, lambda i: p / BASE**2 * i / d),
        "Python takes the power first: 10000 ** 2 * i / d is 10000² times i, divided by d. Put "
        "parentheses around the exponent.",
    ),
    Mistake(
        lambda p, d: _clocks(d, lambda i: p),
        "All your clocks turn equally fast. Does i come into the exponent? (If you divide by //, "
        "2i // d is always 0.)",
    ),
    Mistake(
        _with_own_exponents,
        "A sine and the cosine behind it belong to one clock, so they share an angle. Yours have "
        "two.",
    ),
    Mistake(
        lambda p, d: _hands(p * BASE ** (torch.arange(0, d, 2) / d)),
        "Your clocks become quicker. Divide by the power of 10000.",
    ),
    Mistake(
        lambda p, d: _clocks(d, lambda i: p * BASE ** (2 * i / d)),
        "Your clocks become quicker and quicker. The power of 10000 belongs below the line.",
    ),
    Mistake(
        lambda p, d: _hands(torch.deg2rad(p / BASE ** (torch.arange(0, d, 2) / d))),
        "You take the angles for degrees. They are radians: the first clock turns once in 6.28 "
        "tokens.",
    ),
    Mistake(
        lambda p, d: _pe(p + 1, d),
        "That is the vector of the next position. Positions count from 0, where all hands point "
        "up.",
    ),
)


@exercise(mistakes=PE_MISTAKES)
def pe(answer: Any) -> Verdict:
    """Check `pe(p, d)`: the sinusoidal vector of one position, [d]."""
    return check_function(
        answer,
        _pe,
        [(0, 4), (1, 4), (3, 4), (7, 6), (50, 10)],
        PE_MISTAKES,
        output_names=["the vector"],
        tolerance=1e-4,
        praise="Right at five positions and three widths.",
    )


def _products(of_pair: Callable[[int, int], float]) -> Tensor:
    return torch.tensor([of_pair(p, q) for p, q in PAIRS], dtype=torch.float64)


def _from_distance(p: float, q: float) -> float:
    return math.cos(q - p) + math.cos((q - p) / 100)


DOT_PRODUCTS = _products(_from_distance)
DOT_MISTAKES = (
    Mistake(
        _products(lambda p, q: math.cos(q - p)),
        "That is the first clock alone. With d = 4 there are two: add the slow one's cosine.",
    ),
    Mistake(
        _products(lambda p, q: 2 * math.cos(q - p)),
        "Both of your clocks turn equally fast. The second one turns a hundred times more slowly.",
    ),
    Mistake(
        _products(lambda p, q: math.cos(q - p) + math.cos((q - p) / 10)),
        "The first clock is right. The second turns by 1 / 10000^(2/4) per token, and the root of "
        "10000 is 100.",
    ),
    Mistake(
        _products(lambda p, q: _from_distance(math.radians(p), math.radians(q))),
        "Your calculator takes the angles for degrees. Switch it to radians.",
    ),
    Mistake(
        _products(lambda p, q: math.sin(q - p) + math.sin((q - p) / 100)),
        "You took sines of the distance. sin a sin b + cos a cos b is the *cosine* of a - b.",
    ),
    Mistake(
        _products(lambda p, q: math.cos(q + p) + math.cos((q + p) / 100)),
        "You took the cosine of the sum. sin a sin b + cos a cos b is the cosine of a - b.",
    ),
    Mistake(
        DOT_PRODUCTS / 2,
        "You divided by the lengths, which gives the cosine. The dot product itself was asked for.",
    ),
)


@exercise(
    mistakes=DOT_MISTAKES,
    page=Numbers(
        right=DOT_PRODUCTS,
        labels=[f"PE({p}) · PE({q})" for p, q in PAIRS],
        tolerance=5e-3,
    ),
)
def dot_products(answer: Any) -> Verdict:
    """Check three dot products of sinusoidal vectors of width 4."""
    return check_values(
        answer,
        DOT_PRODUCTS,
        DOT_MISTAKES,
        tolerance=5e-3,
        praise="Two of them are equal: the distance is. And no vector was ever written down.",
        otherwise="Of each pair only the distance counts. The first clock gives the cosine of it, "
        "the second the cosine of a hundredth of it. Add both.",
    )
