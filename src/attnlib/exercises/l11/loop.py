"""The heads' loop of a GPT in plain Python, for all tokens at once."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise

Function = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, int], Tensor]


def token_by_token(
    x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, num_heads: int
) -> Tensor:
    """Return what the heads add to tokens x [T, d], one after the other, with growing lists."""
    keys, values, added = [], [], []
    for token in x:
        q = W_q @ token
        keys.append(W_k @ token)
        values.append(W_v @ token)
        found = []
        for of_head in torch.arange(len(q)).chunk(num_heads):
            scores = torch.stack([q[of_head] @ key[of_head] for key in keys])
            weights = (scores / math.sqrt(len(of_head))).softmax(0)
            found.append(weights @ torch.stack([value[of_head] for value in values]))
        added.append(W_o @ torch.cat(found))
    return torch.stack(added)


def _at_once(
    *,
    causal: bool = True,
    mask_by_zero: bool = False,
    scores_by_zero: bool = False,
    ahead: bool = False,
    strict: bool = False,
    scale: Callable[[int, int], float] = lambda d, h: math.sqrt(d // h),
    axis: int = -1,
    view: bool = False,
    merge_view: bool = False,
    turned: bool = False,
    out: bool = True,
    out_turned: bool = False,
    one_head: bool = False,
    interleaved: bool = False,
) -> Function:
    """Make the function for all tokens at once, possibly with a mistake."""

    def attend(
        x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, num_heads: int
    ) -> Tensor:
        (T, d), h = x.shape, 1 if one_head else num_heads

        def split(W: Tensor) -> Tensor:
            y = x @ (W if turned else W.T)
            if view:
                return y.reshape(h, T, -1)
            if interleaved:
                return y.unflatten(-1, (-1, h)).permute(2, 0, 1)
            return y.unflatten(-1, (h, -1)).transpose(0, 1)  # [T, d] -> [h, T, d_k]

        q, k, v = (split(W) for W in (W_q, W_k, W_v))
        scores = q @ k.mT / scale(d, h)
        allowed = torch.ones(T, T).tril(-1 if strict else 0).bool()
        if ahead:
            allowed = allowed.T
        if scores_by_zero:
            scores = scores * allowed
        elif causal and not mask_by_zero:
            scores = scores.masked_fill(~allowed, -math.inf)
        weights = scores.softmax(axis)
        if mask_by_zero:
            weights = weights * allowed
        heads = weights @ v
        joined = heads.reshape(T, d) if merge_view else heads.transpose(0, 1).reshape(T, d)
        return joined @ (W_o if out_turned else W_o.T) if out else joined

    return attend


LOOP_MISTAKES = (
    Mistake(
        _at_once(causal=False),
        "Only the last token comes out right: the others look ahead. In the loop the lists held "
        "nothing of the future yet. All at once, it is there, and a mask must hide it.",
    ),
    Mistake(
        _at_once(mask_by_zero=True),
        "You put the future's weights to 0 behind the softmax, so that rows no longer sum to 1. "
        "Mask the scores, with minus infinity.",
    ),
    Mistake(
        _at_once(scores_by_zero=True),
        "You put the future's scores to 0, and the softmax makes a weight above 0 of that. Minus "
        "infinity is what it turns into 0.",
    ),
    Mistake(
        _at_once(ahead=True),
        "Your mask is turned around: tokens see themselves and what comes later. What comes later "
        "is to be hidden.",
    ),
    Mistake(
        _at_once(strict=True),
        "Your tokens don't see themselves, so the first has nobody to look at, and comes out as "
        "nan. In the loop a token's own key is in the list before the heads look.",
    ),
    Mistake(
        _at_once(scale=lambda d, h: math.sqrt(d)),
        "You divide by the root of d. The loop divides by the root of a head's width, d / h.",
    ),
    Mistake(
        _at_once(scale=lambda d, h: d / h),
        "You divide the scores by d_k. The loop divides by its square root.",
    ),
    Mistake(
        _at_once(scale=lambda d, h: 1.0),
        "The scores aren't divided by the root of d_k.",
    ),
    Mistake(
        _at_once(axis=-2),
        "Your softmax runs over the queries. A token shares its attention among keys: the last "
        "axis.",
    ),
    Mistake(
        _at_once(view=True, merge_view=True),
        "Cutting [T, d] as [h, T, d_k] at once mixes tokens with numbers. Cut d first, then move "
        "the heads' axis.",
    ),
    Mistake(
        _at_once(merge_view=True),
        "The heads are right, but joined without moving their axis back: [h, T, d_k] must become "
        "[T, h, d_k] before it becomes [T, d].",
    ),
    Mistake(
        _at_once(interleaved=True),
        "You dealt the numbers out to the heads one by one. In the loop a head has a slice: d_k "
        "neighbors.",
    ),
    Mistake(
        _at_once(one_head=True),
        "That is a single head of width d. Each head has its own slice, its own scores and its own "
        "softmax.",
    ),
    Mistake(
        _at_once(turned=True),
        "You multiplied x @ W. Row i of W makes number i, as in the loop's `linear`, so it takes "
        "x @ W.T.",
    ),
    Mistake(
        _at_once(turned=True, out_turned=True),
        "You multiplied x @ W throughout. Row i of W makes number i, as in the loop's `linear`: "
        "all four take x @ W.T.",
    ),
    Mistake(
        _at_once(out_turned=True),
        "The heads are right. W_o is the wrong way round: it takes W_o.T, as the others do.",
    ),
    Mistake(
        _at_once(out=False),
        "This is what the heads found, side by side. The loop's last line sends it through W_o.",
    ),
)


@exercise(mistakes=LOOP_MISTAKES)
def loop_at_once(answer: Function) -> Verdict:
    """Check `heads_at_once(x, W_q, W_k, W_v, W_o, num_heads)`: tokens [T, d] -> what is added.

    Matrices are [d, d] with a row per number that they make, as the plain loop and `nn.Linear` have
    them. What is wanted is what the loop returns, token by token.
    """
    cases = [
        (torch.randn(T, d), *torch.randn(4, d, d) / d**0.5, h)
        for T, d, h in ((5, 12, 3), (7, 10, 2))
    ]
    return check_function(
        answer,
        token_by_token,
        cases,
        LOOP_MISTAKES,
        output_names=["what the heads add"],
        praise="One token after the other, or all at once behind a mask: the same numbers.",
    )
