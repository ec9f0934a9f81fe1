"""A head's accuracy, and what a fixed offset would reach."""

from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

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


MISTAKES = read_mistakes("offset_gain", globals())
PAGE = Numbers(right=RIGHT, labels=FIELDS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def offset_gain(answer: Any) -> CheckResult:
    """Check best offset, its accuracy, a head's accuracy and the gain: four numbers."""
    otherwise = [
        "The offset: subtract, for each word, the asking place from its partner's, and take the "
        "difference that comes most often.",
        "The offset's accuracy: for how many of the eight words does the partner stand at just "
        "that distance?",
        "The head's accuracy: for how many of the eight words is its largest weight on the true "
        "partner?",
        "The gain: the head's accuracy minus that of the offset.",
    ]
    praise = "The head beats a dumb rule by one word in eight. On so few words that is nothing."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
