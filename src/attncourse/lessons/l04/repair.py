"""A multi-head attention that has four bugs: finding their lines, and mending it."""

import math
from collections.abc import Callable, Collection
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Lines, Mistake, exercise, from_museum, read_mistakes
from attncourse.checking.functions import check_function, check_lines, not_yet
from attncourse.checking.numbers import set_of_numbers
from attndoctor.museum import attend, heads, scale, scores
from attndoctor.museum.steps import Steps

_BUGS = {
    "the split": heads.VIEW,
    "the scale": scale.SQRT_D_MODEL,
    "the softmax": scores.SOFTMAX_OVER_QUERIES,
    "the merge": heads.MERGE,
}
_SCALES = (scale.NO_SCALE, scale.SCALE_TWICE, scale.SCALE_UPSIDE_DOWN)
_WEIGHTS = (scale.HALVED, scale.FLOORED, scale.SCALE_AFTER_SOFTMAX, scores.SOFTMAX_OVER_HEADS)


def _with_steps(replaced: dict[str, Any]) -> Callable[..., Tensor]:
    """Multi-head attention with plain matrices (x @ W), in which some steps are replaced."""
    steps = Steps(**replaced)

    def mend(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
        q, k, v = (steps.split(x @ W, h) for W in (W_q, W_k, W_v))
        return steps.merge(attend(q, k, v, **replaced)[0]) @ W_o

    return mend


def _steps_of(bugs: Collection[str]) -> dict[str, Any]:
    return {name: step for bug in bugs for name, step in _BUGS[bug].steps.items()}


def _with_bugs(bugs: Collection[str]) -> Callable[..., Tensor]:
    return _with_steps(_steps_of(bugs))


def _hint(bugs: Collection[str]) -> str:
    if len(bugs) == 1:
        return _BUGS[next(iter(bugs))].hint
    if len(bugs) == len(_BUGS):
        return "All four bugs are still there. Ask of each line: which axis is this, and how wide?"
    return f"{len(bugs)} bugs are left. Look again at {', '.join(bugs)}."


_ONE_TOKEN = heads.HEADS_OF_ONE_TOKEN.steps
# Line 10 mended, behind a view whose axes T and h still are where they were.
_REORDERED = {"merge": lambda parts: parts.transpose(1, 2).reshape(len(parts), parts.shape[1], -1)}
# Bugs beside a scale that was changed, and is still wrong.
_OTHER_SCALES = tuple(
    Mistake(_with_steps(_steps_of(bugs) | exhibit.steps), _hint(["the scale", *bugs]))
    for count in (1, 2, 3)
    for bugs in combinations([bug for bug in _BUGS if bug != "the scale"], count)
    for exhibit in _SCALES
)


def _module_cases() -> list[tuple[Any, ...]]:
    """Random inputs whose sizes all differ, so that no two axes can be confused unnoticed."""
    cases = []
    for B, T, h, d_k in ((2, 5, 3, 4), (3, 4, 2, 5), (1, 6, 4, 2)):
        d = h * d_k
        matrices = [torch.randn(d, d) / math.sqrt(d) for _ in range(4)]
        cases.append((2 * torch.randn(B, T, d), *matrices, h))
    return cases


@exercise(
    mistakes=(
        *(
            Mistake(_with_bugs(bugs), _hint(bugs))
            for count in range(1, len(_BUGS) + 1)
            for bugs in combinations(_BUGS, count)
        ),
        *read_mistakes("mended", globals()),
        *(from_museum(exhibit, _with_steps(exhibit.steps)) for exhibit in (*_SCALES, *_WEIGHTS)),
    )
)
def mended(answer: object) -> CheckResult:
    """Check the repaired function `attend(x, W_q, W_k, W_v, W_o, num_heads)`."""
    # Line 5 mended by half: q is [B, T, h, d_k] there.
    scaled: dict[str, Any] = {"score": lambda q, k: q @ k.mT / math.sqrt(q[0, 0].numel())}
    summed = _steps_of(["the softmax"])
    half_cut = (
        Mistake(
            _with_steps(_ONE_TOKEN | merge | left),
            f"{mended.hints['axes_not_swapped']} And look again at {lines}.",
        )
        for merge in ({}, _REORDERED)
        for lines, left in (
            ("line 7", scaled), ("line 8", summed), ("lines 7 and 8", scaled | summed),
        )
    )  # fmt: skip
    praise = "All four bugs are gone, on inputs where B, T, h and d_k all differ."
    return check_function(
        answer,
        _with_bugs(()),
        _module_cases(),
        (*mended.mistakes, *_OTHER_SCALES, *half_cut),
        output_names=["the output"],
        praise=praise,
    )


BUGGY_LISTING = """\
def attention(x, W_q, W_k, W_v, W_o, h):
    B, T, d = x.shape
    d_k = d // h
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    q, k, v = (t.view(B, h, T, d_k) for t in (q, k, v))
    scores = q @ k.transpose(-2, -1)
    scores = scores / math.sqrt(d)
    weights = scores.softmax(-2)
    heads = weights @ v
    joined = heads.reshape(B, T, d)
    return joined @ W_o"""

# What to ask of each line, counted from 1.
_BUGGY = {
    5: "whose numbers are neighbors in memory when the result of x @ W is cut?",
    7: "how wide is the query that was multiplied here?",
    8: "which axis are the queries, and which the keys?",
    10: "what are the axes of weights @ v, and in which order does reshape read them?",
}
_INNOCENT = {
    1: "Line 1 only names the arguments.",
    2: "Line 2 is right: the batch comes first.",
    3: "Line 3 is right: the heads share the width.",
    4: "Line 4 is right: each projection reads all of x, and is cut afterward.",
    6: "Line 6 is right: q @ k.T for every head needs the keys' last two axes swapped.",
    9: "Line 9 is right: each row of weights mixes the rows of v.",
    11: "Line 11 is right: row vectors meet W_o from the left.",
}


_FROM_0 = Mistake(
    [line - 1 for line in _BUGGY],
    "You count from 0, and are right about all four. Here the line with `def` is line 1.",
)


@exercise(
    mistakes=(
        *(Mistake([line, 7, 8, 10], hint) for line, hint in _INNOCENT.items()),
        _FROM_0,
    ),
    page=Lines(BUGGY_LISTING, pick=len(_BUGGY)),
)
def buggy_lines(answer: object) -> CheckResult:
    """Check the numbers of the lines of `BUGGY_LISTING` that hold a bug, counted from 1."""
    if set_of_numbers(answer) == set(_FROM_0.answer):
        return not_yet(_FROM_0.hint)
    praise = "Split, scale, softmax and merge: one line each, and no error anywhere."
    return check_lines(answer, _BUGGY, _INNOCENT, praise)
