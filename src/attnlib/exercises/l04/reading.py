"""What a head reads of each token: all of it, or a slice."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.functional import split_heads

# An answer in three steps: which outputs it looks at, what of them it takes the gradient of, and
# what it concludes; each rightly, or with a usual mistake.
_LOOKS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "right": lambda heads, head: heads[:, head],
    "heads counted from 1": lambda heads, head: heads[:, head - 1],
    "counted beyond": lambda heads, head: heads[:, head + 1],
    "all heads at once": lambda heads, head: heads,
    "a sample instead of a head": lambda heads, head: heads[head],
    "a token instead of a head": lambda heads, head: heads[:, :, head],
    "a number instead of a head": lambda heads, head: heads[..., head],
}
_SIZES: dict[str, Callable[[Tensor], Tensor]] = {
    # Squares: a plain sum can have gradient 0 where positive and negative effects cancel.
    "right": lambda outputs: outputs.pow(2).sum(),
    "a plain sum": lambda outputs: outputs.sum(),
}
_CONCLUSIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "right": lambda gradient: (gradient != 0).flatten(0, 1).any(0),
    "only what raises it": lambda gradient: (gradient > 0).flatten(0, 1).any(0),
    "all instead of any": lambda gradient: (gradient != 0).flatten(0, 1).all(0),
    "the first token alone": lambda gradient: gradient[0, 0] != 0,
    "places": lambda gradient: (gradient != 0).flatten(0, 1).any(0).nonzero().squeeze(1),
    "gradients themselves": lambda gradient: gradient,
    "an answer per token": lambda gradient: gradient != 0,
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
    gradients = _answer(size=size, conclusion="gradients themselves")
    return lambda head, heads_of, x: gradients(head, heads_of, x).mean((0, 1)) > 0


_NO_BOOLEANS = Mistake(
    lambda head, heads_of, x: _reads(head, heads_of, x).float(),
    "The right places, but return True and False: compare with 0, by !=.",
)
READS_MISTAKES = {
    "heads counted from 1": Mistake(
        _answer("heads counted from 1"),
        "This is what the head before it reads: `head` counts from 0, so take heads[:, head].",
    ),
    "counted beyond": Mistake(
        _answer("counted beyond"),
        "This is what the next head reads: `head` counts from 0 already, so nothing is added.",
    ),
    "assumed a slice": Mistake(
        lambda head, heads_of, x: (
            torch.arange(x.shape[-1]) // heads_of(x).shape[-1] == head
        ),
        "You assumed a slice. Measure instead: ask autograd what moves the head's output.",
    ),
    "everything": Mistake(
        lambda head, heads_of, x: torch.ones(x.shape[-1], dtype=torch.bool),
        "You say that a head reads everything. Not every impostor does: measure it.",
    ),
    "all heads at once": Mistake(
        _answer("all heads at once"),
        "You found everything even where a head is cut off from the rest. Take the gradient of "
        "heads[:, head] alone, not of all heads together.",
    ),
    "a sample instead of a head": Mistake(
        _answer("a sample instead of a head"),
        "heads[head] is a sample: the first axis is the batch. Take heads[:, head].",
    ),
    "a token instead of a head": Mistake(
        _answer("a token instead of a head"),
        "heads[:, :, head] is a token: its axes are batch, head, token. Take heads[:, head].",
    ),
    "a number instead of a head": Mistake(
        _answer("a number instead of a head"),
        "heads[..., head] is one number of every head: the last axis is the width of a head. Take "
        "heads[:, head].",
    ),
    "a plain sum": Mistake(
        _answer(size="a plain sum"),
        "You took the gradient of a plain sum. A number may raise one number of the head's output "
        "and lower another by as much: the sum doesn't move, the output does. Square before you "
        "add up.",
    ),
    "only what raises it": Mistake(
        _answer(conclusion="only what raises it"),
        "You count positive gradients only. What lowers the output is read as well: compare by !=.",
    ),
    "all instead of any": Mistake(
        _answer(conclusion="all instead of any"),
        "You ask whether *every* token's number matters. Some heads look at one token alone; one "
        "is enough: any, not all.",
    ),
    "the first token alone": Mistake(
        _answer(conclusion="the first token alone"),
        "You looked at the first token alone. A head may read another one: any sample, any token.",
    ),
    "places": Mistake(
        _answer(conclusion="places"),
        "You list the places of the numbers that are read. Return True or False for each number "
        "of the embedding.",
    ),
    "gradients themselves": Mistake(
        _answer(conclusion="gradients themselves"),
        "You returned the gradient [B, T, d]. Return one answer per input number: "
        "is it non-zero for any sample and token?",
    ),
    "an answer per token": Mistake(
        _answer(conclusion="an answer per token"),
        "You answer for every token by itself, [B, T, d]. Return one answer per number of the "
        "embedding: does it matter in any sample, for any token?",
    ),
}  # fmt: skip
# Several mistakes at once: the first one is told. And signs that are lost in another way.
_SEVERAL = tuple(
    Mistake(_answer(*steps), next(READS_MISTAKES[step].hint for step in steps if step != "right"))
    for steps in product(_LOOKS, _SIZES, _CONCLUSIONS)
    if steps.count("right") < 2
)
_OTHER_SIGNS = tuple(
    Mistake(_raises_on_average(size), READS_MISTAKES["only what raises it"].hint) for size in _SIZES
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

    Args:
        lowers: what a number takes away from one number of the output, if it adds 1 to another.
    """
    effects = torch.zeros(d, num_heads, d // num_heads)
    effects[: d // 2, :, 0], effects[: d // 2, :, 1] = 1, -lowers

    def heads_of(x: Tensor) -> Tensor:
        read = x if token is None else x[:, [token]].expand_as(x)
        return torch.einsum("btd,dhk->bhtk", read, effects)

    return heads_of


@exercise(mistakes=(*READS_MISTAKES.values(), _NO_BOOLEANS))
def reads(answer: Any) -> Verdict:
    """Check `reads(head, heads_of, x)`: which of the d input numbers head `head` depends on.

    `heads_of(x)` returns the heads' outputs [B, h, T, d_k]; wanted is a boolean tensor [d].
    """
    cases = []
    for make in (_real_heads, _sliced_heads):
        for h, d_k in ((3, 4), (4, 2)):
            cases.append((h - 2, make(h, h * d_k), torch.randn(2, 5, h * d_k)))
    for lowers, token in ((1.0, None), (0.0, 0), (0.0, -1)):  # two effects cancel in a sum
        cases.append((2, _half_heads(3, 12, lowers, token), torch.randn(2, 5, 12)))
    cases.append((1, _real_heads(3, 12), torch.randn(1, 1, 12)))  # each gradient has one sign
    verdict = check_function(
        answer,
        _reads,
        cases,
        (*READS_MISTAKES.values(), *_OTHER_SIGNS, *_SEVERAL),
        output_names=["your answer"],
        praise="All of the embedding for real heads, one slice for one impostor, and for the other "
        "the half that it reads.",
    )
    if verdict and torch.as_tensor(answer(*cases[0])).dtype != torch.bool:
        return not_yet(_NO_BOOLEANS.hint)
    return verdict
