"""What a head reads of each token: all of it, or a slice."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Mistake, exercise, read_mistakes
from attncourse.checking.functions import check_function, not_yet
from attnlib.functional import split_heads

# An answer in three steps: which outputs it looks at, what of them it takes the gradient of, and
# what it concludes; each rightly, or with a usual mistake.
_LOOKS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "right": lambda heads, head: heads[:, head],
    "heads_counted_from_1": lambda heads, head: heads[:, head - 1],
    "counted_beyond": lambda heads, head: heads[:, head + 1],
    "all_heads_at_once": lambda heads, head: heads,
    "sample_instead_of_a_head": lambda heads, head: heads[head],
    "token_instead_of_a_head": lambda heads, head: heads[:, :, head],
    "number_instead_of_a_head": lambda heads, head: heads[..., head],
    "one_output_alone": lambda heads, head: heads[:, head, -1],
}
_SIZES: dict[str, Callable[[Tensor], Tensor]] = {
    # Squares: a plain sum can have gradient 0 where positive and negative effects cancel.
    "right": lambda outputs: outputs.pow(2).sum(),
    "plain_sum": lambda outputs: outputs.sum(),
}
_CONCLUSIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "right": lambda gradient: (gradient != 0).flatten(0, 1).any(0),
    "only_what_raises_it": lambda gradient: (gradient > 0).flatten(0, 1).any(0),
    "added_up": lambda gradient: gradient.sum((0, 1)).abs() > 1e-6,
    "all_instead_of_any": lambda gradient: (gradient != 0).flatten(0, 1).all(0),
    "first_token_alone": lambda gradient: gradient[0, 0] != 0,
    "last_token_alone": lambda gradient: (gradient[:, -1] != 0).any(0),
    "places": lambda gradient: (gradient != 0).flatten(0, 1).any(0).nonzero().squeeze(1),
    "gradients_themselves": lambda gradient: gradient,
    "answer_per_token": lambda gradient: gradient != 0,
}


def _answer(look: str = "right", size: str = "right", conclusion: str = "right") -> Callable:
    """Return a function that finds out what a head reads, possibly with mistakes."""

    def reads(head: int, heads_of: Callable, x: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        measured = _SIZES[size](_LOOKS[look](heads_of(x), head))
        return _CONCLUSIONS[conclusion](torch.autograd.grad(measured, x)[0])

    return reads


_reads = _answer()


def _raises_on_average(size: str) -> Callable:
    """Return a function that asks whether the mean gradient is positive."""
    gradients = _answer(size=size, conclusion="gradients_themselves")
    return lambda head, heads_of, x: gradients(head, heads_of, x).mean((0, 1)) > 0


MISTAKES = read_mistakes("reads", globals())
[NO_BOOLEANS] = read_mistakes("no_booleans", globals())
_HINTS = {mistake.name: mistake.hint for mistake in MISTAKES}
# Several mistakes at once: the first one is named. And signs that are lost in another way.
_SEVERAL = tuple(
    Mistake(_answer(*steps), next(_HINTS[step] for step in steps if step != "right"))
    for steps in product(_LOOKS, _SIZES, _CONCLUSIONS)
    if steps.count("right") < 2
)
_OTHER_SIGNS = tuple(
    Mistake(_raises_on_average(size), _HINTS["only_what_raises_it"]) for size in _SIZES
)


def _sliced_heads(num_heads: int, d: int) -> Callable[[Tensor], Tensor]:
    """The impostor: each head's q, k, v are made from its own slice of the embedding alone."""
    d_k = d // num_heads
    matrices = torch.randn(3, num_heads, d_k, d_k)

    def heads_of(x: Tensor) -> Tensor:
        q, k, v = (split_heads(x, num_heads) @ W for W in matrices)
        return (q @ k.transpose(-2, -1) / math.sqrt(d_k)).softmax(-1) @ v

    return heads_of


def _real_heads(num_heads: int, d: int) -> Callable[[Tensor], Tensor]:
    matrices = torch.randn(3, d, d) / math.sqrt(d)

    def heads_of(x: Tensor) -> Tensor:
        q, k, v = (split_heads(x @ W, num_heads) for W in matrices)
        return (q @ k.transpose(-2, -1) / math.sqrt(d // num_heads)).softmax(-1) @ v

    return heads_of


def _half_heads(num_heads: int, d: int, lowers: float, token: int | None) -> Callable:
    """Another impostor: heads read half of the numbers, of each token or of one for all.

    A number adds 1 to one number of the output, and takes `lowers` from another. From token 1 they
    take token 2: what both have in common has no effect.
    """
    effects = torch.zeros(d, num_heads, d // num_heads)
    effects[: d // 2, :, 0 if token == -1 else -1], effects[: d // 2, :, 1] = 1, -lowers

    def heads_of(x: Tensor) -> Tensor:
        inner = torch.ones_like(x)
        inner[:, [0, -1], 1:] = 0  # what comes out at both ends knows the first number alone
        other = x[:, [2]] if token == 1 else 0
        read = x if token is None else (x[:, [token]] - other) * inner
        return torch.einsum("btd,dhk->bhtk", read, effects)

    return heads_of


@exercise(mistakes=(*MISTAKES, NO_BOOLEANS))
def reads(answer: Any) -> CheckResult:
    """Check `reads(head, heads_of, x)`: which of the d input numbers head `head` depends on.

    `heads_of(x)` returns the heads' outputs [B, h, T, d_k]; wanted is a boolean tensor [d].
    """
    cases = []
    for make in (_real_heads, _sliced_heads):
        for h, d_k in ((3, 4), (4, 2)):
            cases.append((h - 2, make(h, h * d_k), torch.randn(2, 5, h * d_k)))
    for lowers, token in ((1.0, None), (0.0, 0), (0.0, -1), (0.0, 1)):  # two effects cancel
        cases.append((2, _half_heads(3, 12, lowers, token), torch.randn(1, 5, 12)))
    cases.append((1, _real_heads(3, 12), torch.randn(1, 1, 12)))  # each gradient has one sign
    praise = (
        "All of the embedding for real heads, one slice for one impostor, and for the other the "
        "half that it reads."
    )
    result = check_function(
        answer,
        _reads,
        cases,
        (*MISTAKES, *_OTHER_SIGNS, *_SEVERAL),
        output_names=["your answer"],
        praise=praise,
    )
    if result and torch.as_tensor(answer(*cases[0])).dtype != torch.bool:
        return not_yet(NO_BOOLEANS.hint)
    return result
