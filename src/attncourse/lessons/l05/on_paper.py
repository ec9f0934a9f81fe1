"""By hand: both norms of a token, and the gradient below a layer, with and without a skip."""

import torch
import torch.nn.functional as F

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise

TOKEN = torch.tensor([2.0, 4.0, 4.0, 6.0], dtype=torch.float64)
BY_HAND = torch.stack([F.layer_norm(TOKEN, (4,), eps=0), F.rms_norm(TOKEN, (4,), eps=0)])
CENTERED = TOKEN - TOKEN.mean()


@exercise(
    page=Numbers(
        right=BY_HAND,
        labels={norm: [f"column {i}" for i in range(4)] for norm in ("LayerNorm", "RMSNorm")},
        tolerance=2e-3,
        rows_apart=True,
    )
)
def by_hand(answer: object) -> CheckResult:
    """Check LayerNorm and RMSNorm of [2, 4, 4, 6] (no eps, gain 1, bias 0), two rows of four."""
    otherwise = [
        "The first row isn't right: write down the mean, the four distances from it, the mean of "
        "their squares, its root. Then divide.",
        "The second row isn't right: write down the four squares, their mean, its root. Then "
        "divide.",
    ]
    praise = "Mean and spread for LayerNorm, size alone for RMSNorm."
    return check_numbers(answer, by_hand, otherwise=otherwise, praise=praise)


W = torch.tensor([[0.5, 0.0], [1.0, -1.0]], dtype=torch.float64)
FROM_ABOVE = torch.ones(2, dtype=torch.float64)
BELOW = FROM_ABOVE @ W.T
THROUGH = torch.stack([BELOW, FROM_ABOVE + BELOW])


@exercise(
    page=Numbers(
        right=THROUGH,
        labels={row: ["column 0", "column 1"] for row in ("Without the skip", "With the skip")},
        rows_apart=True,
    )
)
def through(answer: object) -> CheckResult:
    """Check the gradients below x W and below x + x W for g = [1, 1]: two rows of two numbers."""
    otherwise = [
        "Without the skip: multiply [1, 1] with each row of W and add up. That is what the layer "
        "hands down.",
        "The first row is right, the second isn't. With the skip, add the gradient itself to what "
        "the layer hands down.",
    ]
    praise = "The skip hands the gradient down as it came, whatever the layer does with it."
    return check_numbers(answer, through, otherwise=otherwise, praise=praise)
