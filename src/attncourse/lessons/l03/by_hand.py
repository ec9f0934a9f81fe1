"""On paper: a row of attention with its output, and how far values reach along a direction."""

import math

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, exercise, from_museum, read_mistakes
from attncourse.checking.functions import check_numbers
from attndoctor.museum.scale import SCALE_TWICE

_DOT_PRODUCTS = torch.tensor([0.0, 2 * math.log(2), 2 * math.log(5)], dtype=torch.float64)
_VALUES = torch.tensor([8.0, 16.0, 24.0], dtype=torch.float64)
_SCORES = _DOT_PRODUCTS / 2  # d_k = 4


def _row_and_output(weights: Tensor, output: float | None = None) -> Tensor:
    output = (weights @ _VALUES).item() if output is None else output
    return torch.cat([weights, weights.new_tensor([output])])


_WEIGHTS = _SCORES.softmax(0)
_OVERLOOKED = _SCORES.exp() * (_SCORES > 0)

# Their order is part of the mark by which a reader's browser knows the exercise again.
_FIRST, *_OTHERS = read_mistakes("softmax_row", globals())


@exercise(
    mistakes=(
        _FIRST,
        from_museum(SCALE_TWICE, _row_and_output((_DOT_PRODUCTS / 4).softmax(0))),
        *_OTHERS,
    ),
    page=Numbers(
        right=_row_and_output(_WEIGHTS),
        labels={"The weights": ["key 0", "key 1", "key 2"], "The output": ["one number"]},
        tolerance=2e-3,
        rows_apart=True,
    ),
)
def softmax_row(answer: object) -> CheckResult:
    """Check four numbers: the three weights of a row, then its output."""
    otherwise = [
        "Go step by step: dot product / sqrt(d_k), then e to that power (a whole number each "
        "time), then each one's share of the sum.",
        "The weights are right, the output isn't: weight times value, and add all three.",
    ]
    praise = "The weights sum to 1, and the output lies between the smallest and the largest value."
    return check_numbers(answer, softmax_row, otherwise=otherwise, praise=praise)


_CORNERS = torch.tensor([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0], [3.0, 3.0]], dtype=torch.float64)
_ALONG = torch.tensor([1.0, 1.0], dtype=torch.float64)


def _reaches(along: Tensor, average: float | None = None) -> Tensor:
    """How far three values and a target lie, and then the farthest of all averages."""
    average = along[:3].max().item() if average is None else average
    return torch.cat([along, along.new_tensor([average])])


_REACHES = _reaches(_CORNERS @ _ALONG)

_TOLERANCE = 1e-2  # two decimals of a distance are enough to know it by


@exercise(
    page=Numbers(
        right=_REACHES,
        labels={
            "The values": ["[0, 0]", "[4, 1]", "[1, 3]"],
            "The target": ["[3, 3]"],
            "An average of the values": ["at most"],
        },
        tolerance=_TOLERANCE,
        rows_apart=True,
    )
)
def reach(answer: object) -> CheckResult:
    """Check how far three values, a target and any average of the values lie along [1, 1]."""
    otherwise = [
        "At least one of the values isn't right. How far a point lies along [1, 1] is their dot "
        "product: its two numbers, added.",
        "The values are right, the target isn't: its two numbers, added.",
        "The dot products are right. An average lies between the things that it averages, along "
        "any direction: so what is the most that it can be?",
    ]
    praise = (
        "The target lies farther than any average of the values: no weights reach it. (With keys "
        "the same thought solves the puzzle at the top: the key of *was* is an average of other "
        "keys, so its score never lies above all of theirs.)"
    )
    return check_numbers(answer, reach, otherwise=otherwise, praise=praise)
