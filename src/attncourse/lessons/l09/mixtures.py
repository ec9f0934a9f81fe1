"""What a linear readout says of mixtures with fixed weights: three of them decide the fourth."""

from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

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


MISTAKES = read_mistakes("fourth_content", globals())
PAGE = Numbers(right=RIGHT, labels=FIELDS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def fourth_content(answer: Any) -> CheckResult:
    """Check a fourth logit difference and the two boxes' shares of their weight: three numbers."""
    otherwise = [
        "The difference: from (3, 3) to (7, 7) it grows by what both boxes bring. How much of it "
        "does the first box's 7 bring? What is left for the second box?",
        "The first box's share: what its 7 changes, as a part of what both change.",
        "The second box's share: what the first one doesn't have of the two.",
    ]
    praise = (
        "The order -2, -0.5, 2.5, 4 is that of the proof. It makes this readout right about the "
        "first box, and would be wrong for the second."
    )
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
