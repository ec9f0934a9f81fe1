"""Both norms of one token by hand."""

from typing import Any

import torch
import torch.nn.functional as F

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

TOKEN = torch.tensor([2.0, 4.0, 4.0, 6.0], dtype=torch.float64)
BY_HAND = torch.stack([F.layer_norm(TOKEN, (4,), eps=0), F.rms_norm(TOKEN, (4,), eps=0)])
CENTERED = TOKEN - TOKEN.mean()

MISTAKES = read_mistakes("by_hand", globals())
PAGE = Numbers(
    right=BY_HAND,
    labels={norm: [f"column {i}" for i in range(4)] for norm in ("LayerNorm", "RMSNorm")},
    tolerance=2e-3,
    rows_apart=True,
)


@exercise(mistakes=MISTAKES, page=PAGE)
def by_hand(answer: Any) -> CheckResult:
    """Check LayerNorm and RMSNorm of [2, 4, 4, 6] (no eps, gain 1, bias 0), two rows of four."""
    otherwise = [
        "The first row isn't right: write down the mean, the four distances from it, the mean of "
        "their squares, its root. Then divide.",
        "The second row isn't right: write down the four squares, their mean, its root. Then "
        "divide.",
    ]
    praise = "Mean and spread for LayerNorm, size alone for RMSNorm."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
