"""The check of the attention function that a reader of L03 writes."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnlib.attention import scaled_dot_product_attention
from attnlib.exercises._checking import (
    Mistake,
    Verdict,
    check_function,
    keeps_random_state,
)

# What a mistake replaces is one step of this; each step gets what it needs.
Step = Callable[..., Tensor]


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def _masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores.softmax(-1)
    return scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    score: Step = _scores,
    weigh: Step = _masked_softmax,
) -> tuple[Tensor, Tensor]:
    weights = weigh(score(q, k), mask)
    return weights @ v, weights


def _with_score(score: Step) -> Callable:
    return partial(_attend, score=score)


def _with_weights(weigh: Step) -> Callable:
    return partial(_attend, weigh=weigh)


def _with_mask(weigh: Step) -> Callable:
    """A mistake that shows only where there is a mask."""
    return _with_weights(
        lambda scores, mask: scores.softmax(-1) if mask is None else weigh(scores, mask)
    )


def _only_output(*arguments: Any) -> Tensor:
    return _attend(*arguments)[0]


def _swapped(*arguments: Any) -> tuple[Tensor, Tensor]:
    return _attend(*arguments)[::-1]


def _mixed_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
    return _attend(q, k, k, mask)


# The stages are checked one after the other, so that a wrong scale gets its hint before anything
# is said about masks.
_FORMULA = (
    Mistake(
        "forgot the scale",
        _with_score(lambda q, k: q @ k.transpose(-2, -1)),
        "The scale is missing: divide the dot products by sqrt(d_k) before the softmax.",
    ),
    Mistake(
        "divided by d_k",
        _with_score(lambda q, k: _scores(q, k) / math.sqrt(q.shape[-1])),
        "You divided by d_k itself. Divide by its square root.",
    ),
    Mistake(
        "divided by sqrt(T)",
        _with_score(lambda q, k: q @ k.transpose(-2, -1) / math.sqrt(k.shape[-2])),
        "You divided by the root of the number of tokens. The scale comes from the width of a "
        "query: the last axis.",
    ),
    Mistake(
        "multiplied by sqrt(d_k)",
        _with_score(lambda q, k: q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])),
        "You multiplied by sqrt(d_k). Wider queries give larger dot products; the scale takes "
        "that back.",
    ),
    Mistake(
        "forgot the transpose",
        _with_score(lambda q, k: q @ k / math.sqrt(q.shape[-1])),
        "Q @ K doesn't fit: score i, j is row i of Q times *row* j of K. Transpose the last two "
        "axes of K.",
    ),
    Mistake(
        "transposed axes 0 and 1",
        _with_score(lambda q, k: q @ k.transpose(0, 1) / math.sqrt(q.shape[-1])),
        "You transposed the first axes of K (as K.T does too). That fits a single sequence; with a "
        "batch and heads in front, count the axes from the end.",
    ),
    Mistake(
        "transposed axes 1 and 2",
        _with_score(lambda q, k: q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])),
        "You transposed axes 1 and 2 of K. That fits [B, T, d_k] alone; count the axes from the "
        "end, so that any number of axes may stand in front.",
    ),
    Mistake(
        "softmax over the queries",
        _with_weights(lambda scores, mask: scores.softmax(-2)),
        "Your columns sum to 1. Each query, that is each row, must hand out a total of 1.",
    ),
    Mistake(
        "softmax over axis 1",
        _with_weights(lambda scores, mask: scores.softmax(1)),
        "You took the softmax over axis 1. That is the keys only if nothing stands in front: count "
        "from the end.",
    ),
    Mistake(
        "no softmax",
        _with_weights(lambda scores, mask: scores),
        "The scores are used as weights. The softmax is missing.",
    ),
    Mistake(
        "returned only the output",
        _only_output,
        "The output is right, but two things are wanted: return output, weights. (PyTorch's own "
        "function returns the output alone, and unpacking it would split the batch.)",
    ),
    Mistake(
        "returned the weights first",
        _swapped,
        "Both results are right, in the wrong order: first the output, then the weights.",
    ),
    Mistake(
        "mixed the keys",
        _mixed_keys,
        "The weights are right, but you mixed the rows of K. What is handed over are the values.",
    ),
)

_MASK = (
    Mistake(
        "ignored the mask",
        _with_weights(lambda scores, mask: scores.softmax(-1)),
        "Right without a mask. With one, it has no effect yet.",
    ),
    Mistake(
        "mask inverted",
        _with_mask(lambda scores, mask: _masked_softmax(scores, ~mask)),
        "Your mask works the wrong way round: True means that a query *may* look.",
    ),
    Mistake(
        "mask after the softmax",
        _with_mask(lambda scores, mask: scores.softmax(-1) * mask),
        "You masked the weights. The rest of the row then no longer sums to 1: mask the scores, "
        "before the softmax.",
    ),
    Mistake(
        "filled with 0",
        _with_mask(lambda scores, mask: scores.masked_fill(~mask, 0.0).softmax(-1)),
        "You set forbidden scores to 0, but e to the power 0 is 1: they still get a share. Which "
        "score has the exponential 0?",
    ),
    Mistake(
        "mask added",
        _with_mask(lambda scores, mask: (scores + mask).softmax(-1)),
        "Adding True and False adds 1 and 0, which blocks nothing. Fill the forbidden scores.",
    ),
)

_BLIND = (
    Mistake(
        "NaN where nothing may be seen",
        _with_mask(lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(-1)),
        "Right wherever a query may look at something. A row with no allowed key becomes 0 / 0, "
        "not a number: its weights should be 0.",
    ),
    Mistake(
        "everything where nothing may be seen",
        _with_mask(lambda scores, mask: scores.masked_fill(~mask, -1e9).softmax(-1)),
        "A query that may look nowhere shares its attention equally among forbidden keys, as a "
        "row of equal scores does, however low they are. Its weights should be 0.",
    ),
)

ATTENTION_MISTAKES = (*_FORMULA, *_MASK, *_BLIND)


def _inputs(masked: bool, blind: bool) -> list[tuple[Tensor, ...]]:
    """About twenty shapes: no, one or two axes in front, and sizes that all differ."""
    cases = []
    for front in ((), (2,), (3,), (2, 3), (5, 2)):
        for T_q, T_k, d_k, d_v in ((4, 6, 8, 7), (7, 9, 4, 11), (6, 5, 10, 3)):
            cases.append(_case(front, T_q, T_k, d_k, d_v, masked, blind))
    # T_k = d_k, where a forgotten transpose raises no error, and a single key.
    cases.append(_case((2, 3), 4, 5, 5, 7, masked, blind))
    cases.append(_case((3,), 4, 1, 2, 5, masked, blind))
    return cases


def _case(
    front: tuple[int, ...], T_q: int, T_k: int, d_k: int, d_v: int, masked: bool, blind: bool
) -> tuple[Tensor, ...]:
    q, k, v = (torch.randn(*front, *s) for s in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    if not masked:
        return q, k, v
    mask = torch.rand(T_q, T_k) < 0.6
    mask[torch.arange(T_q), torch.randint(T_k, (T_q,))] = True  # everybody may look somewhere
    if blind:
        mask[T_q // 2] = False  # but this one
    return q, k, v, mask


@keeps_random_state
def attention(answer: Any) -> Verdict:
    """Check `attention(Q, K, V, mask=None)`, which returns the output and the weights."""
    for mistakes, inputs in (
        (_FORMULA, _inputs(masked=False, blind=False)),
        (_MASK, _inputs(masked=True, blind=False)),
        (_BLIND, _inputs(masked=True, blind=True)),
    ):
        verdict = check_function(
            answer,
            scaled_dot_product_attention,
            inputs,
            mistakes,
            output_names=["the output", "the weights"],
            praise=f"The same as attnlib's on {3 * len(inputs)} random inputs: without a mask, "
            "with one, and with a query that may look nowhere.",
        )
        if not verdict:
            return verdict
    return verdict
