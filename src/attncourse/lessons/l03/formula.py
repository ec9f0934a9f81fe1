"""The formula of attention as a function, with and without a mask."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Mistake, exercise, from_museum, read_mistakes
from attncourse.checking.functions import check_function, not_yet
from attndoctor.museum import Exhibit, attend, masks, rows, scale, scores
from attnlib.functional import scaled_dot_product_attention


def _from(exhibit: Exhibit) -> Mistake:
    return from_museum(exhibit, partial(attend, **exhibit.steps))


def _with(**steps: Any) -> Callable:
    """Return attention with other steps."""
    return partial(attend, **steps)


def _softmax_over(axis: int) -> Callable:
    return _with(
        softmax=lambda scores: scores.softmax(axis),
        weigh=lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(axis),
    )


def _shares(numbers: Tensor) -> Tensor:
    return numbers / numbers.sum(-1, keepdim=True)


# The stages are checked one after the other, so that a wrong scale gets its hint before anything
# is said about masks.
_FORMULA = (
    *map(_from, (scale.NO_SCALE, scale.SCALE_TWICE, scale.SCALE_UPSIDE_DOWN, scale.HALVED)),
    *map(_from, (scale.FLOORED, scale.SCALE_AFTER_SOFTMAX, scores.RESHAPED_KEYS)),
    *map(_from, (scores.SOFTMAX_OVER_QUERIES, scores.SOFTMAX_OVER_HEADS)),
    *read_mistakes("formula", globals()),
)
_MASKED = (
    *map(_from, (masks.INVERTED, masks.AFTER_SOFTMAX, masks.FILLED_WITH_ZERO, masks.ADDED)),
    *read_mistakes("masked", globals()),
)
_FAR_APART = read_mistakes("far_apart", globals())
_FULLY_MASKED = (
    *map(_from, (rows.NAN_ROWS, rows.FINITE_MINIMUM)),
    *read_mistakes("fully_masked", globals()),
)


def _inputs(masked: bool, fully_masked: bool) -> list[tuple[Tensor, ...]]:
    """About twenty shapes: no, one or two axes in front, and sizes that all differ."""
    cases = []
    for front in ((), (2,), (3,), (2, 3), (5, 2)):
        for T_q, T_k, d_k, d_v in ((4, 6, 8, 7), (7, 9, 4, 11), (6, 5, 10, 3)):
            cases.append(_case(front, T_q, T_k, d_k, d_v, masked, fully_masked))
    # T_k = d_k, where a forgotten transpose raises no error, and a single key.
    cases.append(_case((2, 3), 4, 5, 5, 7, masked, fully_masked))
    cases.append(_case((3,), 4, 1, 2, 5, masked, fully_masked))
    return cases


def _case(
    front: tuple[int, ...], T_q: int, T_k: int, d_k: int, d_v: int, masked: bool, fully_masked: bool
) -> tuple[Tensor, ...]:
    q, k, v = (torch.randn(*front, *s) for s in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    if not masked:
        return q, k, v
    mask = torch.rand(T_q, T_k) < 0.6
    mask[torch.arange(T_q), torch.randint(T_k, (T_q,))] = True  # everybody may look somewhere
    if fully_masked:
        mask[T_q // 2] = False  # but this one
    return q, k, v, mask


def _far_apart() -> list[tuple[Tensor, ...]]:
    """Scores a thousand apart: a forbidden key far above the others, and allowed ones far below."""
    cases: list[tuple[Tensor, ...]] = []
    for front in ((), (2,), (2, 3)):
        q, k, v, mask = _case(front, 4, 6, 8, 7, masked=True, fully_masked=False)
        q[..., 0], k[..., 0] = math.sqrt(8), 0.0
        loud, mask = k.clone(), mask.index_fill(1, torch.tensor([2]), False)
        loud[..., 2, 0] = 1000.0  # which comes to the score of every query with key 2
        mask[1:, 0] = mask[0, 2] = True
        low = k.index_fill(-1, torch.tensor([0]), -1000.0)
        cases += [(q, loud, v, mask), (q, low, v, torch.eye(4, 6).bool())]
    return cases


@exercise(mistakes=(*_FORMULA, *_MASKED, *_FAR_APART, *_FULLY_MASKED))
def attention(answer: object) -> CheckResult:
    """Check `attention(Q, K, V, mask=None)`, which returns the output and the weights."""
    far_apart = _far_apart()
    stages = (
        (_FORMULA, _inputs(masked=False, fully_masked=False)),
        ((*_MASKED, *_FAR_APART), _inputs(masked=True, fully_masked=False)),
        (_FAR_APART, far_apart),
        (_FULLY_MASKED, _inputs(masked=True, fully_masked=True)),
    )
    asked = sum(len(inputs) for _, inputs in stages)
    for mistakes, inputs in stages:
        praise = (
            f"The same as attnlib's on {asked} random inputs: without a mask, with one, "
            "with scores far apart, and with a query that may look nowhere."
        )
        result = check_function(
            answer,
            scaled_dot_product_attention,
            inputs,
            mistakes,
            output_names=["the output", "the weights"],
            praise=praise,
        )
        if not result:
            known = any(result.message == mistake.hint for mistake in mistakes)
            lost = inputs is far_apart and not known
            return not_yet(attention.hints["exponentials"]) if lost else result
    return result
