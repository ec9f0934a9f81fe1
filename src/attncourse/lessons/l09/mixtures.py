"""What a linear readout says of mixtures with fixed weights: three of them decide the fourth."""

from typing import Any

import torch

from attncourse.checking.exercise import Mistake, exercise
from attncourse.checking.functions import check_rows
from attncourse.checking.on_page import Numbers
from attndoctor.verdict import Verdict

# The logit of 7 minus the logit of 3, by what the first and the second box hold.
DIFFERENCES = {(3, 3): -2.0, (7, 7): 4.0, (7, 3): 2.5}
RIGHT = torch.tensor([-0.5, 0.75, 0.25], dtype=torch.float64)
FIELDS = {
    "The difference with 3 in the first box and 7 in the second": ["logits"],
    "The first box's share of the weight": ["share"],
    "The second box's share": ["share"],
}


def _with(difference: float = -0.5, first: float = 0.75, second: float = 0.25) -> torch.Tensor:
    return torch.tensor([difference, first, second], dtype=torch.float64)


MIXTURE_MISTAKES = (
    Mistake(
        "mirrored",
        _with(difference=-2.5),
        "You took the opposite of 2.5. Exchanging the digits doesn't exchange the signs: the other "
        "boxes' part stays. Start at (3, 3), and put a 7 into one box at a time.",
    ),
    Mistake(
        "order ignored",
        _with(difference=2.5),
        "The same digits, but not the same mixture: the boxes have different weights.",
    ),
    Mistake(
        "halfway",
        _with(difference=1),
        "This is halfway between (3, 3) and (7, 7): so it would be if both boxes had the same "
        "weight. What did the 7 in the first box alone change?",
    ),
    Mistake(
        "differences divided",
        _with(first=2.5 / 4, second=1.5 / 4),
        "You divided the logits. The other boxes' part must go first: compare *changes* from "
        "(3, 3), that by one 7 with that by both.",
    ),
    Mistake(
        "boxes exchanged",
        _with(first=0.25, second=0.75),
        "These are shares of the wrong boxes: which one got its 7 in (7, 3)?",
    ),
    Mistake(
        "percents",
        _with(first=75, second=25),
        "These are percents. Write shares: 0.5 for a half.",
    ),
    Mistake(
        "half each",
        _with(first=0.5, second=0.5),
        "With half each, a 7 in the first box would have brought half of the way from -2 to 4. It "
        "brought more.",
    ),
)


@exercise(
    mistakes=MIXTURE_MISTAKES,
    page=Numbers(right=RIGHT, labels=FIELDS, rows_apart=True),
)
def fourth_content(answer: Any) -> Verdict:
    """Check a fourth logit difference and the two boxes' shares of their weight: three numbers."""
    return check_rows(
        answer,
        RIGHT,
        MIXTURE_MISTAKES,
        rows=[
            (1, "The difference: from (3, 3) to (7, 7) it grows by what both boxes bring. How much "
                "of it does the first box's 7 bring? What is left for the second box?"),
            (1, "The first box's share: what its 7 changes, as a part of what both change."),
            (1, "The second box's share: what the first one doesn't have of the two."),
        ],
        praise="The order -2, -0.5, 2.5, 4 is that of the proof. It makes this readout right about "
        "the first box, and would be wrong for the second.",
    )  # fmt: skip
