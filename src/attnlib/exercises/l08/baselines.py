"""A head's accuracy, and what a fixed offset would reach."""

from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

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


GAIN_MISTAKES = (
    Mistake(
        _with(offset=2),
        "The partner stands *before* the word that asks: partner minus asking place is below 0.",
    ),
    Mistake(
        _with(offset=-2.25),
        "This is the mean distance. No head can look two and a quarter places back: which distance "
        "comes most often?",
    ),
    Mistake(
        _with(baseline=6, head=7, gain=1),
        "These are counts. Divide by the eight words that ask.",
    ),
    Mistake(
        _with(baseline=75, head=87.5, gain=12.5),
        "These are percents. Write shares: 0.5 for a half.",
    ),
    Mistake(
        _with(head=0.125, gain=-0.625),
        "This is how often the head is wrong. Count the words where its largest weight is on the "
        "true partner.",
    ),
    Mistake(
        _with(baseline=1 / 11, gain=0.875 - 1 / 11),
        "A head that looks anywhere is too weak a rival. The baseline is the best *fixed offset*: "
        "look two back, always, and count how often that hits.",
    ),
    Mistake(
        _with(gain=0.875),
        "That is the accuracy itself. The gain is what the head has beyond the fixed offset.",
    ),
    Mistake(
        _with(gain=0.875 / 0.75),
        "You divided. The gain is a difference: accuracy minus baseline.",
    ),
)


@exercise(
    mistakes=GAIN_MISTAKES,
    page=Numbers(right=RIGHT, labels=FIELDS, rows_apart=True),
)
def offset_gain(answer: Any) -> Verdict:
    """Check best offset, its accuracy, a head's accuracy and the gain: four numbers."""
    return check_rows(
        answer,
        RIGHT,
        GAIN_MISTAKES,
        rows=[
            (1, "The offset: subtract, for each word, the asking place from its partner's, and "
                "take the difference that comes most often."),
            (1, "The offset's accuracy: for how many of the eight words does the partner stand at "
                "just that distance?"),
            (1, "The head's accuracy: for how many of the eight words is its largest weight on the "
                "true partner?"),
            (1, "The gain: the head's accuracy minus that of the offset."),
        ],
        praise="The head beats a dumb rule by one word in eight. On so few words that is nothing.",
    )  # fmt: skip
