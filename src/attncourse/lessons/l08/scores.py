"""The score of a previous-token head, and a head's accuracy beside that of a fixed offset."""

from itertools import product
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, exercise
from attncourse.checking.calling import call
from attncourse.checking.functions import check_function, check_numbers
from attncourse.checking.numbers import as_tensor


def _score(weights: Tensor) -> Tensor:
    """Return the mean weight on the token before, one number per head: [B, h, T, T] -> [h]."""
    return weights.diagonal(-1, -2, -1).mean((0, 2))


def _cases() -> list[tuple[Tensor]]:
    perfect = torch.eye(4).roll(1, 0)  # row i looks at i - 1, the first one around the corner
    even = torch.full((4, 4), 0.25)
    return [
        (torch.stack([perfect, even, perfect.T])[None],),  # [1, 3, 4, 4]
        ((2 * torch.randn(2, 3, 5, 5)).softmax(-1),),
        (torch.randn(3, 4, 2, 2).softmax(-1),),
    ]


def _miscounted(answer: Any, T: int = 4) -> str:
    """Return a look, alone in a map, that the answer counts as none or as more or less than one."""
    for row, column in product(range(T), repeat=2):
        look = torch.zeros(1, 1, T, T)
        look[..., row, column] = 1
        score = as_tensor(call(answer, (look,)).outputs)
        if score is None or score.numel() != 1:
            return ""
        if abs(score.item() - _score(look).item()) > 1e-5:
            what = f"one of {T - 1} looks one back" if column == row - 1 else "no look one back"
            return (
                f"If of {T} tokens token {row} alone looks, with weight 1 at token {column}, your "
                f"score is {score.item():.2f}. That is {what}."
            )
    return ""


@exercise()
def previous_token(answer: object) -> CheckResult:
    """Check `previous_token_score(weights)`: [B, h, T, T] -> [h], the mean weight one back."""
    praise = "A perfect previous-token head scores 1, an even one 1/T, one that looks ahead 0."
    return check_function(
        answer,
        _score,
        _cases(),
        previous_token.mistakes,
        output_names=["the scores"],
        otherwise=_miscounted,
        praise=praise,
    )


# Places counted from 0: who asks, the true partner, and where the head has its largest weight.
LOOKS = (
    (5, 3, 3), (8, 6, 5), (4, 2, 2), (9, 6, 6), (7, 5, 5), (6, 3, 3), (10, 8, 8), (3, 1, 1),
)  # fmt: skip
RIGHT = torch.tensor([-2.0, 0.75, 0.875, 0.125], dtype=torch.float64)
FIELDS = {
    "The best fixed offset": ["places"],
    "How often it is right": ["share"],
    "How often the head is right": ["share"],
    "The head's gain": ["share"],
}


def _with(**changes: float) -> torch.Tensor:
    """Return the right numbers with others in some rows."""
    numbers = RIGHT.clone()
    for row, number in changes.items():
        numbers[("offset", "baseline", "head", "gain").index(row)] = number
    return numbers


@exercise(page=Numbers(right=RIGHT, labels=FIELDS, rows_apart=True))
def offset_gain(answer: object) -> CheckResult:
    """Check best offset, its accuracy, a head's accuracy and the gain: four numbers."""
    otherwise = [
        "The offset: subtract, for each word, its place from its partner's, and take the "
        "difference that comes most often.",
        "The offset's accuracy: for how many of the eight words is the partner at just "
        "that distance?",
        "The head's accuracy: for how many of the eight words is its largest weight on the true "
        "partner?",
        "The gain: the head's accuracy minus that of the offset.",
    ]
    praise = "The head beats the baseline by one word in eight. On so few words that is nothing."
    return check_numbers(answer, offset_gain, otherwise=otherwise, praise=praise)
