"""Mending a multi-head attention that has four bugs."""

import math
from collections.abc import Callable, Collection
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.museum import attend
from attnlib.museum._steps import Steps
from attnlib.museum.heads import HEADS_OF_ONE_TOKEN, MERGE, VIEW
from attnlib.museum.scale import SQRT_D_MODEL
from attnlib.museum.scores import SOFTMAX_OVER_QUERIES

_BUGS = {
    "the split": VIEW,
    "the scale": SQRT_D_MODEL,
    "the softmax": SOFTMAX_OVER_QUERIES,
    "the merge": MERGE,
}


def _with_steps(replaced: dict[str, Any]) -> Callable[..., Tensor]:
    """Multi-head attention with plain matrices (x @ W), in which some steps are replaced."""
    steps = Steps(**replaced)

    def mend(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
        q, k, v = (steps.split(x @ W, h) for W in (W_q, W_k, W_v))
        return steps.merge(attend(q, k, v, **replaced)[0]) @ W_o

    return mend


def _with_bugs(bugs: Collection[str]) -> Callable[..., Tensor]:
    return _with_steps({name: step for bug in bugs for name, step in _BUGS[bug].steps.items()})


def _hint(bugs: Collection[str]) -> str:
    if len(bugs) == 1:
        return _BUGS[next(iter(bugs))].hint
    if len(bugs) == len(_BUGS):
        return "All four bugs are still there. Ask of each line: which axis is this, and how wide?"
    return f"{len(bugs)} bugs are left. Look again at {', '.join(bugs)}."


def _merge_with_a_transpose(heads: Tensor) -> Tensor:
    """Undo a transpose that the split didn't make."""
    B, T, h, d_k = heads.shape
    return heads.transpose(1, 2).reshape(B, T, h * d_k)


MENDED_MISTAKES = (
    *(
        Mistake(" and ".join(bugs), _with_bugs(bugs), _hint(bugs))
        for count in range(1, len(_BUGS) + 1)
        for bugs in combinations(_BUGS, count)
    ),
    Mistake(
        "split without its transpose",
        _with_steps(HEADS_OF_ONE_TOKEN.steps | {"merge": _merge_with_a_transpose}),
        "The view is right, but its axes T and h aren't swapped yet: as it is, the scores compare "
        "the heads of one token instead of the tokens of one head.",
    ),
    Mistake(
        "split without its transpose, nor the merge",
        _with_steps(HEADS_OF_ONE_TOKEN.steps),
        "Scale and softmax are right. The scores compare the heads of one token, though: a "
        "transpose is missing after the view, and then one before the merge.",
    ),
)


def _module_cases() -> list[tuple[Any, ...]]:
    """Random inputs whose sizes all differ, so that no two axes can be confused unnoticed."""
    cases = []
    for B, T, h, d_k in ((2, 5, 3, 4), (3, 4, 2, 5), (1, 6, 4, 2)):
        d = h * d_k
        matrices = [torch.randn(d, d) / math.sqrt(d) for _ in range(4)]
        cases.append((2 * torch.randn(B, T, d), *matrices, h))
    return cases


@exercise(mistakes=MENDED_MISTAKES)
def mended(answer: Any) -> Verdict:
    """Check the repaired function `attend(x, W_q, W_k, W_v, W_o, num_heads)`."""
    return check_function(
        answer,
        _with_bugs(()),
        _module_cases(),
        MENDED_MISTAKES,
        output_names=["the output"],
        praise="All four bugs are gone, on inputs where B, T, h and d_k all differ.",
    )
