"""The heads' loop of a GPT in plain Python, for all tokens at once."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise

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


def _past(scores: Tensor, diagonal: int = 0) -> Tensor:
    return torch.ones_like(scores).tril(diagonal).bool()


def _weights(scores: Tensor, allowed: Tensor, axis: int = -1) -> Tensor:
    return scores.masked_fill(~allowed, -math.inf).softmax(axis)


def _cut(y: Tensor, h: int) -> Tensor:
    return y.unflatten(-1, (h, -1)).transpose(0, 1)  # [T, d] -> [h, T, d_k]


def _product(x: Tensor, W: Tensor) -> Tensor:
    return x @ W.T


def _joined_in_place(heads: Tensor) -> Tensor:
    return heads.reshape(heads.shape[1], -1)


def _at_once(
    *,
    product: Callable[[Tensor, Tensor], Tensor] = _product,
    split: Callable[[Tensor, int], Tensor] = _cut,
    scale: Callable[[int, int], float] = lambda d, h: math.sqrt(d // h),
    weigh: Callable[[Tensor], Tensor] = lambda scores: _weights(scores, _past(scores)),
    merge: Callable[[Tensor], Tensor] = lambda heads: heads.transpose(0, 1).flatten(1),
    send: Callable[[Tensor, Tensor], Tensor] = _product,
) -> Function:
    """Make the function for all tokens at once; each of its steps may be a mistake."""

    def attend(
        x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, num_heads: int
    ) -> Tensor:
        q, k, v = (split(product(x, W), num_heads) for W in (W_q, W_k, W_v))
        weights = weigh(q @ k.mT / scale(x.shape[1], num_heads))
        return send(merge(weights @ v), W_o)

    return attend


@exercise()
def loop_at_once(answer: Function) -> CheckResult:
    """Check `heads_at_once(x, W_q, W_k, W_v, W_o, num_heads)`: tokens [T, d] -> what is added.

    Matrices are [d, d] with a row per number that they make, as the plain loop and `nn.Linear` have
    them. What is wanted is what the loop returns, token by token.
    """
    cases = [
        (torch.randn(T, d), *torch.randn(4, d, d) / d**0.5, h)
        for T, d, h in ((5, 12, 3), (7, 10, 2))
    ]
    praise = "One token after the other, or all at once with a mask: the same numbers."
    return check_function(
        answer,
        token_by_token,
        cases,
        loop_at_once.mistakes,
        output_names=["what the heads add"],
        praise=praise,
    )
