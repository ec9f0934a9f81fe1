"""Three rows of weights under a causal mask, on paper."""

import math
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

EXPONENTIALS = torch.tensor([[1, 3, 9], [3, 1, 5], [1, 2, 1]], dtype=torch.float64)  # of the scores
PAST = torch.ones(3, 3, dtype=torch.bool).tril()
LABELS = {f"Token {i}": [f"to {j}" for j in range(3)] for i in range(3)}


def _weights(allowed: Tensor = PAST, dim: int = -1) -> Tensor:
    weights = EXPONENTIALS.log().masked_fill(~allowed, -math.inf).softmax(dim)
    return weights.nan_to_num(0.0)  # a row that may look nowhere


RIGHT = _weights()
ROW_MISTAKES = (
    Mistake(
        _weights(torch.ones_like(PAST)),
        "These rows look to the right. Strike out what stands above the diagonal first: token 0 "
        "has one score left, token 1 two.",
    ),
    Mistake(
        _weights(torch.ones_like(PAST)) * PAST,
        "You divided by the sum of *all* exponentials of the row, and struck out weights "
        "afterward. A forbidden score must be gone before the sum is taken.",
    ),
    Mistake(
        EXPONENTIALS.masked_fill(~PAST, 1.0) / EXPONENTIALS.masked_fill(~PAST, 1.0).sum(-1, True),
        "A forbidden score became 0, and e to the power 0 is 1: it still gets a share. The score "
        "that gets none is minus infinity.",
    ),
    Mistake(
        _weights(PAST.T),
        "This is the other triangle: your tokens look at themselves and to the right. Rows look, "
        "and they look to the left.",
    ),
    Mistake(
        _weights(PAST.tril(-1)),
        "The diagonal is allowed as well: a token may look at itself.",
        whole=True,
    ),
    Mistake(
        EXPONENTIALS.log() * PAST,
        "These are the scores that are left. Weights are their softmax, row by row.",
        whole=True,
    ),
    Mistake(
        _weights(dim=0),
        "Your columns sum to 1. Each *row* is divided by its own sum: rows are those who look.",
    ),
    Mistake(
        EXPONENTIALS * PAST,
        "These are the exponentials that are left. Divide each row by its sum.",
    ),
)


@exercise(mistakes=ROW_MISTAKES, page=Numbers(right=RIGHT, labels=LABELS, rows_apart=True))
def causal_rows(answer: Any) -> Verdict:
    """Check the weights of three tokens under a causal mask, [3, 3]."""
    return check_rows(
        answer,
        RIGHT,
        ROW_MISTAKES,
        rows=[
            (3, "Token 0 may look at one token. What is the softmax of a single score?"),
            (3, "Token 1 may look at tokens 0 and 1, whose exponentials are 3 and 1."),
            (3, "Token 2 may look at all three: the exponentials are 1, 2 and 1."),
        ],
        praise="Each row shares out the whole of its attention among what it may see.",
    )
