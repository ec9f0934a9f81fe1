"""The formula of attention as a function, with and without a mask."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise, from_museum
from attnlib.functional import scaled_dot_product_attention
from attnlib.museum import Exhibit, attend, masks, rows, scale, scores

# A step of attention that a mistake replaces.
Step = Callable[..., Tensor]


def _from(exhibit: Exhibit) -> Mistake:
    return from_museum(exhibit, partial(attend, **exhibit.steps))


def _with_score(score: Step) -> Callable:
    return partial(attend, score=score)


def _scaled(q: Tensor, k: Tensor) -> Tensor:
    """Multiply queries by keys that are turned already, rightly or not."""
    return q @ k / math.sqrt(q.shape[-1])


def _only_output(*arguments: Any) -> Tensor:
    return attend(*arguments)[0]


def _swapped(*arguments: Any) -> tuple[Tensor, Tensor]:
    output, weights = attend(*arguments)
    return weights, output


def _inverted(fill: float) -> Callable:
    """Fill where the mask is True, which is what says "may look"."""
    return partial(attend, weigh=lambda scores, mask: scores.masked_fill(mask, fill).softmax(-1))


def _softmax_over(axis: int) -> Callable:
    return partial(
        attend,
        softmax=lambda scores: scores.softmax(axis),
        weigh=lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(axis),
    )


def _renormalized(repaired: float = math.nan) -> Callable:
    """Share out again what a mask has left of the weights; 0 / 0 may be repaired."""

    def weigh(scores: Tensor, mask: Tensor) -> Tensor:
        weights = scores.softmax(-1) * mask
        return (weights / weights.sum(-1, keepdim=True)).nan_to_num(repaired)

    return partial(attend, weigh=weigh)


def _exponentials(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    exponentials = scores.exp() if mask is None else scores.exp() * mask
    return exponentials / exponentials.sum(-1, keepdim=True)


def _filled(fill: float) -> Callable:
    return partial(attend, weigh=lambda scores, mask: scores.masked_fill(~mask, fill).softmax(-1))


def _filled_and_cut(fill: float) -> Callable:
    """Fill, and set what is left on forbidden keys to 0 after the softmax."""

    def weigh(scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, fill).softmax(-1) * mask

    return partial(attend, weigh=weigh)


def _added(number: float) -> Callable:
    return partial(attend, weigh=lambda scores, mask: (scores + number * ~mask).softmax(-1))


def _output_not_repaired(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
    if mask is None:
        return attend(q, k, v)
    output, weights = _filled(-math.inf)(q, k, v, mask)
    return output, weights.nan_to_num(0.0)


def _mixed_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
    return attend(q, k, k, mask)


def _scaled_by_tokens(axis_of: int) -> Callable:
    """Divide by the root of the number of queries (0) or keys (1)."""
    return _with_score(lambda *qk: qk[0] @ qk[1].mT / math.sqrt(qk[axis_of].shape[-2]))


# The stages are checked one after the other, so that a wrong scale gets its hint before anything
# is said about masks.
_TOKENS = Mistake(
    _scaled_by_tokens(1),
    "You divided by the root of the number of tokens. The scale comes from the width of a query: "
    "the last axis.",
)
_FORMULA = (
    _from(scale.NO_SCALE),
    _from(scale.SCALE_TWICE),
    _TOKENS,
    _from(scale.SCALE_UPSIDE_DOWN),
    _from(scale.HALVED),
    _from(scale.FLOORED),
    _from(scale.SCALE_AFTER_SOFTMAX),
    Mistake(
        lambda q, k, v, mask=None: attend(
            q, k, v, mask, score=lambda q, k: q @ k.mT / math.sqrt(v.shape[-1])
        ),
        "You divided by the root of the width of V. The dot products are made of queries and keys: "
        "take their width.",
    ),
    Mistake(
        _with_score(_scaled),
        "Q @ K doesn't fit: score i, j is row i of Q times *row* j of K. Transpose the last two "
        "axes of K.",
    ),
    _from(scores.RESHAPED_KEYS),
    Mistake(
        _with_score(lambda q, k: _scaled(q, k.transpose(0, 1))),
        "You transposed the first axes of K (as K.T does too). That fits a single sequence; with a "
        "batch and heads in front, count the axes from the end.",
    ),
    Mistake(
        _with_score(lambda q, k: _scaled(q, k.transpose(1, 2))),
        "You transposed axes 1 and 2 of K. That fits [B, T, d_k] alone; count the axes from the "
        "end, so that any number of axes may stand in front.",
    ),
    _from(scores.SOFTMAX_OVER_QUERIES),
    _from(scores.SOFTMAX_OVER_HEADS),
    Mistake(
        _softmax_over(0),
        "You took the softmax over axis 0, the first one. The keys are the last axis: -1.",
    ),
    Mistake(
        _softmax_over(2),
        "You took the softmax over axis 2. That is the keys for [B, T, d_k] alone: count from the "
        "end.",
    ),
    Mistake(
        _softmax_over(3),
        "You took the softmax over axis 3. That is there only if a batch and heads stand in front: "
        "count from the end.",
    ),
    Mistake(
        partial(attend, softmax=lambda scores: scores),
        "The scores are used as weights. The softmax is missing.",
    ),
    Mistake(
        _only_output,
        "The output is right, but return two things: output, weights. (PyTorch's own "
        "function returns the output alone, and unpacking it would split the batch.)",
    ),
    Mistake(
        _swapped,
        "Both results are right, in the wrong order: first the output, then the weights.",
    ),
    Mistake(
        lambda q, k, v, mask=None: (attend(q, k, v, mask)[0], _scaled(q, k.mT)),
        "The output is right, but the second result holds the scores. Return what the softmax made "
        "of them.",
    ),
    Mistake(
        _mixed_keys,
        "The weights are right, but you mixed the rows of K. What is handed over are the values.",
    ),
)
# Mistakes in other clothes, with the same hints.
_FORMULA_TOO = (replace(_TOKENS, answer=_scaled_by_tokens(0)),)

_MASK = (
    Mistake(
        partial(attend, weigh=lambda scores, mask: scores.softmax(-1)),
        "Right without a mask. With one, it has no effect yet.",
    ),
    _from(masks.INVERTED),
    Mistake(
        _inverted(-math.inf),
        "You fill where the mask is True, so it works the wrong way round: True means that a query "
        "*may* look. (A query that may look everywhere then has 0 / 0, not a number.)",
    ),
    Mistake(
        _inverted(-1e9),
        "You fill where the mask is True, which hides what a query *may* look at. It works the "
        "wrong way round: fill where the mask is False.",
    ),
    _from(masks.AFTER_SOFTMAX),
    _from(masks.FILLED_WITH_ZERO),
    _from(masks.ADDED),
)

_INFINITE = Mistake(
    _added(-math.inf),
    "You multiplied infinity by the mask, and 0 times infinity is not a number. Fill in minus "
    "infinity where the mask is False, by masked_fill or torch.where.",
)
_RENORMALIZED = Mistake(
    _renormalized(),
    "Nearly right: on paper, weights that are masked and divided by their sum are the same. But "
    "where a forbidden key scores far above the others (200, say), the softmax has rounded theirs "
    "to 0 already, and 0 / 0 or zeros are left. Mask the scores, before the softmax.",
)
_TOO_LITTLE = Mistake(
    _filled(-100.0),
    "The number in forbidden places isn't low enough: where scores are large, a forbidden key "
    "still gets the weight. Only minus infinity lies below every score.",
)
_BY_HAND = Mistake(
    partial(attend, softmax=_exponentials, weigh=_exponentials),
    "Right where scores are near each other. A thousand apart, exponentials are infinite or 0, and "
    "shares of them aren't numbers: mask the scores with minus infinity, and leave the rest to "
    "softmax, which subtracts the largest score of a row before.",
)
_FAR_APART = (_RENORMALIZED, _TOO_LITTLE, _BY_HAND)
_MASK_TOO = (replace(_TOO_LITTLE, answer=_filled(-10.0)),)
_FAR_APART_TOO = (
    replace(_RENORMALIZED, answer=_renormalized(0.0)),
    replace(_TOO_LITTLE, answer=_added(-100.0)),
    replace(_TOO_LITTLE, answer=_filled_and_cut(-100.0)),
)

_FULLY_MASKED = (
    _from(rows.NAN_ROWS),
    _from(rows.FINITE_MINIMUM),
    Mistake(
        _added(-1e4),
        "In a row that may look nowhere you add the same number to every score, and a softmax sees "
        "differences only: it looks as if nothing were forbidden. Its weights should be 0.",
    ),
    Mistake(
        _output_not_repaired,
        "The weights of a row that may look nowhere are 0 now, but its output is still made of the "
        "ones from before: mix the values when the weights are finished.",
    ),
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


@exercise(mistakes=(*_FORMULA, *_MASK, _INFINITE, *_FAR_APART, *_FULLY_MASKED))
def attention(answer: Any) -> Verdict:
    """Check `attention(Q, K, V, mask=None)`, which returns the output and the weights."""
    far_apart = _far_apart()
    stages = (
        ((*_FORMULA, *_FORMULA_TOO), _inputs(masked=False, fully_masked=False)),
        ((*_MASK, _INFINITE, *_MASK_TOO), _inputs(masked=True, fully_masked=False)),
        ((*_FAR_APART, *_FAR_APART_TOO), far_apart),
        (_FULLY_MASKED, _inputs(masked=True, fully_masked=True)),
    )
    asked = sum(len(inputs) for _, inputs in stages)
    for mistakes, inputs in stages:
        verdict = check_function(
            answer,
            scaled_dot_product_attention,
            inputs,
            mistakes,
            output_names=["the output", "the weights"],
            praise=f"The same as attnlib's on {asked} random inputs: without a mask, with one, "
            "with scores far apart, and with a query that may look nowhere.",
        )
        if not verdict:
            known = any(verdict.message == mistake.hint for mistake in mistakes)
            lost = inputs is far_apart and not known
            return not_yet(_BY_HAND.hint) if lost else verdict
    return verdict
