"""On paper: a row of attention with its output, and how far values reach along a direction."""

import math
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise, from_museum
from attnlib.exercises._on_page import Numbers
from attnlib.museum.scale import SCALE_TWICE

_DOT_PRODUCTS = torch.tensor([0.0, 2 * math.log(2), 2 * math.log(5)], dtype=torch.float64)
_VALUES = torch.tensor([8.0, 16.0, 24.0], dtype=torch.float64)
_SCORES = _DOT_PRODUCTS / 2  # d_k = 4


def _row_and_output(weights: Tensor, output: float | None = None) -> Tensor:
    output = (weights @ _VALUES).item() if output is None else output
    return torch.cat([weights, weights.new_tensor([output])])


_WEIGHTS = _SCORES.softmax(0)
_OVERLOOKED = _SCORES.exp() * (_SCORES > 0)

ROW_MISTAKES = (
    Mistake(
        _row_and_output(_DOT_PRODUCTS.softmax(0)),
        "These are the weights of the raw dot products. The queries are d_k = 4 numbers wide: "
        "divide by the square root of that first.",
    ),
    from_museum(SCALE_TWICE, _row_and_output((_DOT_PRODUCTS / 4).softmax(0))),
    Mistake(
        _row_and_output(_SCORES / _SCORES.sum()),
        "You divided the scores by their sum. Take e to the power of each score first.",
    ),
    Mistake(
        _row_and_output(_OVERLOOKED / _OVERLOOKED.sum()),
        "Key 0 gets a share as well: e to the power 0 is 1, not 0.",
    ),
    Mistake(
        _row_and_output(_SCORES.exp()),
        "The exponentials are right, but weights are shares: divide by their sum.",
    ),
    Mistake(
        _row_and_output(100 * _WEIGHTS, (_WEIGHTS @ _VALUES).item()),
        "The weights are right, in percent. Give them as shares of 1: a half is 0.5.",
    ),
    Mistake(
        _row_and_output(_WEIGHTS.flip(0)),
        "The three weights are there, but turned around: key 0's comes first.",
    ),
    Mistake(
        _row_and_output(torch.tensor([0.0, 0.0, 1.0]).double()),
        "You gave everything to the best key. The softmax leaves the others a share.",
    ),
    Mistake(
        _row_and_output(_WEIGHTS, _VALUES.mean().item()),
        "The weights are right. The output is their *weighted* average of the values; yours "
        "counts all three alike.",
    ),
    Mistake(
        _row_and_output(_WEIGHTS, _VALUES.sum().item()),
        "The weights are right. In the output, each value counts only with its weight.",
    ),
    Mistake(
        _row_and_output(_WEIGHTS, _VALUES.max().item()),
        "The weights are right. The output isn't the value of the best key alone; the others "
        "count with their weights.",
    ),
    Mistake(
        _row_and_output(_WEIGHTS, (_SCORES.exp() @ _VALUES).item()),
        "The weights are right. For the output you mixed the values with the exponentials: take "
        "the weights.",
    ),
)


@exercise(
    mistakes=ROW_MISTAKES,
    page=Numbers(
        right=_row_and_output(_WEIGHTS),
        labels={"The weights": ["key 0", "key 1", "key 2"], "The output": ["one number"]},
        tolerance=2e-3,
        rows_apart=True,
    ),
)
def softmax_row(answer: Any) -> Verdict:
    """Check four numbers: the three weights of a row, then its output."""
    return check_rows(
        answer,
        _row_and_output(_WEIGHTS),
        ROW_MISTAKES,
        rows=[
            (
                3,
                "Go step by step: dot product / sqrt(d_k), then e to that power (a whole number "
                "each time), then each one's share of the sum.",
            ),
            (1, "The weights are right, the output isn't: weight times value, and add all three."),
        ],
        tolerance=2e-3,
        praise="The weights sum to 1, and the output lies between the smallest and the largest "
        "value.",
    )


_CORNERS = torch.tensor([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0], [3.0, 3.0]], dtype=torch.float64)
_ALONG = torch.tensor([1.0, 1.0], dtype=torch.float64)


def _reaches(along: Tensor, average: float | None = None) -> Tensor:
    """How far three values and a target lie, and then the farthest of all averages."""
    average = along[:3].max().item() if average is None else average
    return torch.cat([along, along.new_tensor([average])])


_REACHES = _reaches(_CORNERS @ _ALONG)

_TOLERANCE = 1e-2  # two decimals of a distance are enough to know it by

REACH_MISTAKES = (
    Mistake(
        _reaches(_CORNERS.norm(dim=1)),
        "These are lengths. What counts along a direction is the dot product with it: here the "
        "sum of both numbers.",
    ),
    Mistake(
        _reaches(_CORNERS.prod(1)),
        "You multiplied the two numbers of each point. Multiply each by the direction's number, "
        "and add up.",
    ),
    Mistake(
        _reaches(_CORNERS @ _ALONG / 2**0.5),
        "You divided by the length of the direction. That is right for distances, and not needed "
        "here: give the dot products themselves.",
    ),
    Mistake(
        _reaches(_CORNERS[:, 0]),
        "You read off the first numbers, which is how far along [1, 0]. The direction is [1, 1].",
    ),
    Mistake(
        _reaches(_CORNERS[:, 1]),
        "You read off the second numbers, which is how far along [0, 1]. The direction is [1, 1].",
    ),
    Mistake(
        _reaches(_CORNERS @ _ALONG, 3.0),
        "Your average counts all three values alike. Other weights reach farther: what if one "
        "value gets nearly all of them?",
    ),
    Mistake(
        _reaches(_CORNERS @ _ALONG, 9.0),
        "You added the values up. The weights of an average sum to 1, so a value can get more only "
        "if others get less.",
    ),
    Mistake(
        _reaches(_CORNERS @ _ALONG, 6.0),
        "That is how far the target lies. How far do the values come, however they are weighted?",
    ),
)


@exercise(
    mistakes=REACH_MISTAKES,
    page=Numbers(
        right=_REACHES,
        labels={
            "The values": ["[0, 0]", "[4, 1]", "[1, 3]"],
            "The target": ["[3, 3]"],
            "An average of the values": ["at most"],
        },
        tolerance=_TOLERANCE,
        rows_apart=True,
    ),
)
def reach(answer: Any) -> Verdict:
    """Check how far three values, a target and any average of the values lie along [1, 1]."""
    return check_rows(
        answer,
        _REACHES,
        REACH_MISTAKES,
        rows=[
            (
                3,
                "One of the values at least isn't right. How far a point lies along [1, 1] is "
                "their dot product: its two numbers, added.",
            ),
            (1, "The values are right, the target isn't: its two numbers, added."),
            (
                1,
                "The dot products are right. An average lies between the things that it averages, "
                "along any direction: so what is the most that it can be?",
            ),
        ],
        tolerance=_TOLERANCE,
        praise="The target lies farther than any average of the values: no weights reach it. (With "
        "keys the same thought solves the puzzle at the top: the key of *was* is an average of "
        "other keys, so its score never lies above all of theirs.)",
    )
