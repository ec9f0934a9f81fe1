"""The heads' loop of a GPT in plain Python, for all tokens at once."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, read_mistakes

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


MISTAKES = read_mistakes("loop_at_once", globals())


@exercise(mistakes=MISTAKES)
def loop_at_once(answer: Function) -> CheckResult:
    """Check `heads_at_once(x, W_q, W_k, W_v, W_o, num_heads)`: tokens [T, d] -> what is added.

    Matrices are [d, d] with a row per number that they make, as the plain loop and `nn.Linear` have
    them. What is wanted is what the loop returns, token by token.
    """
    cases = [
        (torch.randn(T, d), *torch.randn(4, d, d) / d**0.5, h)
        for T, d, h in ((5, 12, 3), (7, 10, 2))
    ]
    praise = "One token after the other, or all at once behind a mask: the same numbers."
    return check_function(
        answer, token_by_token, cases, MISTAKES, output_names=["what the heads add"], praise=praise
    )
