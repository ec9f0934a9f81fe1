"""The lesson's small example by hand: head 2 on other tokens, and both heads on a single token."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, exercise, from_museum, read_mistakes
from attncourse.checking.functions import check_numbers
from attndoctor.museum.scale import NO_SCALE, SCALE_UPSIDE_DOWN
from attndoctor.museum.scores import SOFTMAX_OVER_QUERIES

# The lesson's two heads, each W_q, W_k and W_v [d, d_k]; and tokens [T, d].
_HEAD_1 = (
    torch.tensor([[1.0, 0], [0, 1], [0, 0], [1, 0]]),
    torch.tensor([[1.0, 1], [0, 1], [1, 0], [0, 1]]),
    torch.tensor([[1.0, 0], [0, 2], [1, 1], [0, 1]]),
)
_HEAD_2 = (
    torch.tensor([[0.0, 1], [1, 0], [1, 0], [0, 1]]),
    torch.tensor([[0.0, 1], [1, 1], [0, 0], [1, 0]]),
    torch.tensor([[0.0, 1], [1, 1], [0, 2], [1, 0]]),
)
_PAGE_TOKENS = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]])
# Their scores [[4, 3], [0, 3]] aren't symmetric: queries and keys can't change places unnoticed.
_EXERCISE_TOKENS = torch.tensor([[2.0, 0, 1, 0], [0, 1, 2, 0]])
_W_O = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 0, -1, 0], [0, 1, 0, -1]])  # the page's
_ONE_TOKEN = torch.tensor([1.0, 2, 3, 4])


def _six_numbers(
    scale: float = math.sqrt(2),
    axis: int = -1,
    transpose: bool = True,
    *,
    X: Tensor = _EXERCISE_TOKENS,
    matrices: tuple[Tensor, Tensor, Tensor] = _HEAD_2,
    token: int = 0,
    share: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """The two rows of weights and one token's output, possibly with a mistake."""
    q, k, v = (X @ W for W in matrices)
    scores = q @ (k.T if transpose else k) / scale
    weights = scores.softmax(axis) if share is None else share(scores)
    return torch.cat([weights.flatten(), (weights @ v)[token]])


def _with_output(mixed: Tensor, weights: Tensor | None = None) -> Tensor:
    """The right weights, and an output that mixes these rows, by other weights if given."""
    weights = _SIX_NUMBERS[:2] if weights is None else weights
    return torch.cat([_SIX_NUMBERS[:4], weights @ mixed])


_SIX_NUMBERS = _six_numbers()
_QUERIES, _KEYS, _VALUES = (_EXERCISE_TOKENS @ W for W in _HEAD_2)

# Their order is part of the mark by which a reader's browser knows the exercise again.
_BY_2, _BY_4, *_OTHERS = read_mistakes("head_by_hand", globals())


@exercise(
    mistakes=(
        from_museum(NO_SCALE, _six_numbers(scale=1.0)),
        _BY_2,
        _BY_4,
        from_museum(SCALE_UPSIDE_DOWN, _six_numbers(scale=1 / math.sqrt(2))),
        from_museum(SOFTMAX_OVER_QUERIES, _six_numbers(axis=0)),
        *_OTHERS,
    ),
    page=Numbers(
        right=_SIX_NUMBERS,
        labels={
            "Weights of token 0": ["on token 0", "on token 1"],
            "Weights of token 1": ["on token 0", "on token 1"],
            "Output of token 0": ["column 0", "column 1"],
        },
        rows_apart=True,
    ),
)
def head_by_hand(answer: object) -> CheckResult:
    """Check six numbers: weights row 0, weights row 1, then the output of token 0."""
    otherwise = [
        "Write Q, K and V down first (two rows of two numbers each), then the four scores. Does "
        "each pair of weights sum to 1?",
        "Token 0's weights are right, token 1's aren't. Its query is its own, the keys are the "
        "same.",
        "The weights are right, the output isn't: token 0's two weights, times the two rows of V, "
        "added.",
    ]
    praise = "Both rows sum to 1, and the output is a mix of the two value rows."
    return check_numbers(answer, head_by_hand, otherwise=otherwise, praise=praise)


def _joined(*matrices: Tensor) -> Tensor:
    """Return what a token becomes in each head, side by side."""
    return torch.cat([_ONE_TOKEN @ W for W in matrices])


_JOINED = _joined(_HEAD_1[2], _HEAD_2[2])


@exercise(
    page=Numbers(
        right=_JOINED,
        labels={f"Head {i}": ["column 0", "column 1"] for i in (1, 2)},
        rows_apart=True,
    )
)
def one_token(answer: object) -> CheckResult:
    """Check four numbers: what both heads return for a single token, joined."""
    otherwise = [
        "Head 1: how many scores does the token have? Take the softmax of that many, then "
        "mix the values.",
        "Head 1 is right, head 2 isn't: the same token, with its own W_v.",
    ]
    praise = "The weight is 1 whatever the query and the key are, so a head returns its value."
    return check_numbers(answer, one_token, otherwise=otherwise, praise=praise)
