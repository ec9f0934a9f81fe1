"""Three rows of weights under a causal mask, on paper."""

import math
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

EXPONENTIALS = torch.tensor([[1, 3, 9], [3, 1, 5], [1, 2, 1]], dtype=torch.float64)  # of the scores
PAST = torch.ones(3, 3, dtype=torch.bool).tril()
LABELS = {f"Token {i}": [f"to {j}" for j in range(3)] for i in range(3)}


def _weights(allowed: Tensor = PAST, dim: int = -1) -> Tensor:
    weights = EXPONENTIALS.log().masked_fill(~allowed, -math.inf).softmax(dim)
    return weights.nan_to_num(0.0)  # a row that may look nowhere


RIGHT = _weights()
MISTAKES = read_mistakes("causal_rows", globals())
PAGE = Numbers(right=RIGHT, labels=LABELS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def causal_rows(answer: Any) -> CheckResult:
    """Check the weights of three tokens under a causal mask, [3, 3]."""
    otherwise = [
        "Token 0 may look at one token. What is the softmax of a single score?",
        "Token 1 may look at tokens 0 and 1, whose exponentials are 3 and 1.",
        "Token 2 may look at all three: the exponentials are 1, 2 and 1.",
    ]
    praise = "Each row shares out the whole of its attention among what it may see."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
