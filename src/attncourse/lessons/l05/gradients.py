"""The gradient that a layer hands down, without a skip and with one."""

from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

W = torch.tensor([[0.5, 0.0], [1.0, -1.0]], dtype=torch.float64)
FROM_ABOVE = torch.ones(2, dtype=torch.float64)
BELOW = FROM_ABOVE @ W.T
THROUGH = torch.stack([BELOW, FROM_ABOVE + BELOW])

MISTAKES = read_mistakes("through", globals())
PAGE = Numbers(
    right=THROUGH,
    labels={row: ["column 0", "column 1"] for row in ("Without the skip", "With the skip")},
    rows_apart=True,
)


@exercise(mistakes=MISTAKES, page=PAGE)
def through(answer: Any) -> CheckResult:
    """Check the gradients below x W and below x + x W for g = [1, 1]: two rows of two numbers."""
    otherwise = [
        "Without the skip: multiply [1, 1] with each row of W and add up. That is what the layer "
        "hands down.",
        "The first row is right, the second isn't. With the skip, add the gradient itself to what "
        "the layer hands down.",
    ]
    praise = "The skip hands the gradient down as it came, whatever the layer does with it."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
