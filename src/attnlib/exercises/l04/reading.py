"""What a head reads of each token: all of it, or a slice."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.functional import split_heads


def _gradient(heads: Tensor, x: Tensor) -> Tensor:
    # Squares: a plain sum can have gradient 0 where positive and negative effects cancel.
    return torch.autograd.grad(heads.pow(2).sum(), x)[0]


def _of_head(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return _gradient(heads_of(x)[:, head], x)


def _reads(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    return (_of_head(head, heads_of, x) != 0).flatten(0, 1).any(0)


def _of_all_heads(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return (_gradient(heads_of(x), x) != 0).flatten(0, 1).any(0)


def _of_a_sample(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return (_gradient(heads_of(x)[head], x) != 0).flatten(0, 1).any(0)


def _of_a_token(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return (_gradient(heads_of(x)[:, :, head], x) != 0).flatten(0, 1).any(0)


def _of_a_plain_sum(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(heads_of(x)[:, head].sum(), x)
    return (gradient != 0).flatten(0, 1).any(0)


_NO_BOOLEANS = Mistake(
    "zeros and ones",
    lambda head, heads_of, x: _reads(head, heads_of, x).float(),
    "The right places, but True and False are wanted: compare with 0, by !=.",
)
READS_MISTAKES = (
    Mistake(
        "heads counted from 1",
        lambda head, heads_of, x: _reads(head - 1, heads_of, x),
        "This is what the head before it reads: `head` counts from 0, so take heads[:, head].",
    ),
    Mistake(
        "assumed a slice",
        lambda head, heads_of, x: (
            torch.arange(x.shape[-1]) // heads_of(x).shape[-1] == head
        ),
        "You assumed a slice. Measure instead: ask autograd what moves the head's output.",
    ),
    Mistake(
        "everything",
        lambda head, heads_of, x: torch.ones(x.shape[-1], dtype=torch.bool),
        "You say that a head reads everything. Not every impostor does: measure it.",
    ),
    Mistake(
        "all heads at once",
        _of_all_heads,
        "You found everything even where a head is cut off from the rest. Take the gradient of "
        "heads[:, head] alone, not of all heads together.",
    ),
    Mistake(
        "a sample instead of a head",
        _of_a_sample,
        "heads[head] is a sample: the first axis is the batch. Take heads[:, head].",
    ),
    Mistake(
        "a token instead of a head",
        _of_a_token,
        "heads[:, :, head] is a token: its axes are batch, head, token. Take heads[:, head].",
    ),
    Mistake(
        "a plain sum",
        _of_a_plain_sum,
        "You took the gradient of a plain sum. A number may raise one number of the head's output "
        "and lower another by as much: the sum doesn't move, the output does. Square before you "
        "add up.",
    ),
    Mistake(
        "only what raises it",
        lambda head, heads_of, x: (_of_head(head, heads_of, x) > 0).flatten(0, 1).any(0),
        "You count positive gradients only. What lowers the output is read as well: compare by !=.",
    ),
    Mistake(
        "all instead of any",
        lambda head, heads_of, x: (_of_head(head, heads_of, x) != 0).flatten(0, 1).all(0),
        "You ask whether *every* token's number matters. Some heads look at one token alone; one "
        "is enough: any, not all.",
    ),
    Mistake(
        "the first token alone",
        lambda head, heads_of, x: _of_head(head, heads_of, x)[0, 0] != 0,
        "You looked at the first token alone. A head may read another one: any sample, any token.",
    ),
    Mistake(
        "places",
        lambda head, heads_of, x: _reads(head, heads_of, x).nonzero().squeeze(1),
        "You list the places of the numbers that are read. Wanted is True or False for each of "
        "them.",
    ),
    Mistake(
        "gradients themselves",
        _of_head,
        "You returned the gradient [B, T, d]. Wanted is one answer per input number: "
        "is it non-zero for any sample and token?",
    ),
)  # fmt: skip


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


@exercise(mistakes=(*READS_MISTAKES, _NO_BOOLEANS))
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
        READS_MISTAKES,
        output_names=["your answer"],
        praise="All of the embedding for real heads, one slice for one impostor, and for the other "
        "the half that it reads.",
    )
    if verdict and torch.as_tensor(answer(*cases[0])).dtype != torch.bool:
        return not_yet(_NO_BOOLEANS.hint)
    return verdict
