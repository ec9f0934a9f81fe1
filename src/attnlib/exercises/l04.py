"""Checks of L04, Multi-Head Attention."""

import math
from collections.abc import Callable, Collection
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from attnlib.attention import MultiHeadAttention, merge_heads, split_heads
from attnlib.exercises._checking import (
    Exercise,
    Mistake,
    Verdict,
    check_function,
    check_values,
    keeps_random_state,
)

# --- one head by hand ---------------------------------------------------------------------------

_X = torch.tensor([[1.0, 0, 1, 0], [0, 0, 0, 2]])
_W_Q = torch.tensor([[0.0, 1], [1, 0], [1, 0], [0, 1]])
_W_K = torch.tensor([[0.0, 1], [1, 1], [0, 0], [1, 0]])
_W_V = torch.tensor([[0.0, 1], [1, 1], [0, 2], [1, 0]])


def _six_numbers(scale: float = math.sqrt(2), axis: int = -1, transpose: bool = True) -> Tensor:
    """The two rows of weights and token 0's output, possibly with a mistake."""
    q, k, v = _X @ _W_Q, _X @ _W_K, _X @ _W_V
    scores = q @ (k.T if transpose else k) / scale
    weights = scores.softmax(axis)
    return torch.cat([weights.flatten(), (weights @ v)[0]])


_HEAD_BY_HAND = (
    Mistake(
        "forgot the scale",
        _six_numbers(scale=1.0),
        "The softmax was taken of the raw scores: divide them by sqrt(d_k) first.",
    ),
    Mistake(
        "divided by sqrt(d_model)",
        _six_numbers(scale=2.0),
        "You divided by sqrt(d_model). The head is only d_k = 2 numbers wide.",
    ),
    Mistake(
        "divided by d_k",
        _six_numbers(scale=2.0**2),
        "The scores came out too small: divide by the square root of the head's width, once.",
    ),
    Mistake(
        "softmax over the wrong axis",
        _six_numbers(axis=0),
        "Your columns sum to 1. Each query, that is each row, must hand out a total of 1.",
    ),
    Mistake(
        "forgot the transpose",
        _six_numbers(transpose=False),
        "The scores look like Q K. Score i, j is row i of Q times *row* j of K, which is Q K^T.",
    ),
    Mistake(
        "used the raw tokens as values",
        torch.cat([_six_numbers()[:4], (_six_numbers()[:4].view(2, 2) @ _X)[0, :2]]),
        "The weights are right. The output mixes the rows of V, not the rows of X.",
    ),
)


def head_by_hand(answer: Any) -> Verdict:
    """Check six numbers: weights row 0, weights row 1, then the output of token 0."""
    return check_values(
        answer,
        _six_numbers(),
        _HEAD_BY_HAND,
        praise="Both rows sum to 1, and the output is a mix of the two value rows.",
        otherwise="Write Q, K and V down first (two rows of two numbers each), then the four "
        "scores. Does each pair of weights sum to 1?",
    )


# --- mending a module ---------------------------------------------------------------------------

_BUGS = {
    "the split": "The split still mixes tokens with features: view to [B, T, h, d_k] first, then "
    "swap T and h.",
    "the scale": "The scale is still that of the whole model; each head is only d_k wide.",
    "the softmax": "The softmax still runs over the queries; the weights of one query must sum "
    "to 1.",
    "the merge": "The heads are still merged in the wrong order: swap T and h back before "
    "flattening.",
}


def _with_bugs(bugs: Collection[str]) -> Callable[..., Tensor]:
    """Multi-head attention with plain matrices (x @ W) and the bugs that are named."""

    def attend(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
        B, T, d = x.shape
        if "the split" in bugs:
            q, k, v = ((x @ W).view(B, h, T, d // h) for W in (W_q, W_k, W_v))
        else:
            q, k, v = (split_heads(x @ W, h) for W in (W_q, W_k, W_v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d if "the scale" in bugs else d // h)
        heads = scores.softmax(-2 if "the softmax" in bugs else -1) @ v
        return (heads.reshape(B, T, d) if "the merge" in bugs else merge_heads(heads)) @ W_o

    return attend


def _hint(bugs: Collection[str]) -> str:
    if len(bugs) == 1:
        return _BUGS[next(iter(bugs))]
    if len(bugs) == len(_BUGS):
        return "All four bugs are still there. Ask of each line: which axis is this, and how wide?"
    return f"{len(bugs)} bugs are left. Look again at {', '.join(bugs)}."


_MENDED = tuple(
    Mistake(" and ".join(bugs), _with_bugs(bugs), _hint(bugs))
    for count in range(1, len(_BUGS) + 1)
    for bugs in combinations(_BUGS, count)
)


def _module_cases() -> list[tuple[Any, ...]]:
    """Random inputs whose sizes all differ, so that no two axes can be confused unnoticed."""
    cases = []
    for B, T, h, d_k in ((2, 5, 3, 4), (3, 4, 2, 5), (1, 6, 4, 2)):
        d = h * d_k
        matrices = [torch.randn(d, d) / math.sqrt(d) for _ in range(4)]
        cases.append((2 * torch.randn(B, T, d), *matrices, h))
    return cases


@keeps_random_state
def mended(answer: Any) -> Verdict:
    """Check the repaired function `attend(x, W_q, W_k, W_v, W_o, num_heads)`."""
    return check_function(
        answer,
        _with_bugs(()),
        _module_cases(),
        _MENDED,
        output_names=["the output"],
        praise="All four bugs are gone, on inputs where B, T, h and d_k all differ.",
    )


# --- splitting and merging ----------------------------------------------------------------------

_SPLIT = (
    Mistake(
        "view only",
        lambda x, h: x.reshape(x.shape[0], h, x.shape[1], x.shape[2] // h),
        "The shape is right, but head 1 holds the first tokens instead of every token's first "
        "numbers: go over [B, T, h, d_k].",
    ),
    Mistake(
        "no transpose",
        lambda x, h: x.unflatten(-1, (h, -1)),
        "You stopped at [B, T, h, d_k]. Swap the axes T and h, so that each head is one matrix "
        "[T, d_k].",
    ),
    Mistake(
        "every h-th number",
        lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
        "Each head got every h-th number. Heads are neighbors: head 1 takes the first d_k "
        "numbers of each token.",
    ),
    Mistake(
        "keys' layout",
        lambda x, h: x.unflatten(-1, (h, -1)).permute(0, 2, 3, 1),
        "The last two axes are swapped: a head is [T, d_k], one row a token.",
    ),
)


def _split_cases() -> list[tuple[Any, ...]]:
    sizes = ((2, 5, 3, 4), (3, 4, 2, 5), (1, 7, 4, 2))
    return [(torch.randn(B, T, h * d_k), h) for B, T, h, d_k in sizes]


@keeps_random_state
def split(answer: Any) -> Verdict:
    """Check `split(x, num_heads)`: [B, T, d] -> [B, h, T, d_k]."""
    return check_function(
        answer,
        split_heads,
        _split_cases(),
        _SPLIT,
        output_names=["the split tensor"],
        praise="Head i holds numbers i * d_k to (i + 1) * d_k of every token.",
    )


_MERGE = (
    Mistake(
        "no transpose back",
        lambda x: x.reshape(x.shape[0], x.shape[2], -1),
        "The shape is right, but tokens and heads are mixed: swap h and T back before you flatten.",
    ),
    Mistake(
        "features outside",
        lambda x: x.permute(0, 2, 3, 1).flatten(2),
        "The heads' numbers are interleaved. All d_k numbers of head 1 come first, then head 2's.",
    ),
    Mistake(
        "not flattened",
        lambda x: x.transpose(1, 2),
        "You stopped at [B, T, h, d_k]. Make h and d_k one axis again.",
    ),
)


@keeps_random_state
def merge(answer: Any) -> Verdict:
    """Check `merge(x)`: [B, h, T, d_k] -> [B, T, d]."""
    return check_function(
        answer,
        merge_heads,
        [(split_heads(x, h),) for x, h in _split_cases()],
        _MERGE,
        output_names=["the merged tensor"],
        praise="Merging undoes splitting exactly.",
    )


# --- the output as a sum over heads -------------------------------------------------------------


def _blocks(heads: Tensor, W_o: Tensor) -> list[Tensor]:
    """Each head's addition to the output: its own d_k rows of W_o."""
    d_k = heads.shape[-1]
    return [heads[:, i] @ W_o[i * d_k : (i + 1) * d_k] for i in range(heads.shape[1])]


def _column_blocks(heads: Tensor, W_o: Tensor) -> list[Tensor]:
    d_k = heads.shape[-1]
    return [heads[:, i] @ W_o[:, i * d_k : (i + 1) * d_k].T for i in range(heads.shape[1])]


_SUM_OVER_HEADS = (
    Mistake(
        "bias in every head",
        lambda heads, W_o, b_o: sum(part + b_o for part in _blocks(heads, W_o)),
        "The bias went in once a head. It belongs to the sum, not to the heads.",
    ),
    Mistake(
        "no bias",
        lambda heads, W_o, b_o: sum(_blocks(heads, W_o)),
        "The heads' contributions are right; the bias is missing.",
    ),
    Mistake(
        "mean",
        lambda heads, W_o, b_o: sum(_blocks(heads, W_o)) / heads.shape[1] + b_o,
        "You averaged the heads. Nothing is divided by h: contributions add.",
    ),
    Mistake(
        "columns instead of rows",
        lambda heads, W_o, b_o: sum(_column_blocks(heads, W_o)) + b_o,
        "You took the head's columns of W_o. With row vectors (x @ W) a head meets its d_k rows.",
    ),
    Mistake(
        "same block for every head",
        lambda heads, W_o, b_o: (heads @ W_o[: heads.shape[-1]]).sum(1) + b_o,
        "Every head used the first block of W_o. Head i meets rows i * d_k to (i + 1) * d_k.",
    ),
)  # fmt: skip


@keeps_random_state
def sum_over_heads(answer: Any) -> Verdict:
    """Check `output(heads, W_o, b_o)` for heads [B, h, T, d_k], W_o [d, d], b_o [d]."""
    cases = []
    for B, T, h, d_k in ((2, 5, 3, 4), (3, 4, 2, 5)):
        d = h * d_k
        cases.append((torch.randn(B, h, T, d_k), torch.randn(d, d), torch.randn(d)))
    return check_function(
        answer,
        lambda heads, W_o, b_o: merge_heads(heads) @ W_o + b_o,
        cases,
        _SUM_OVER_HEADS,
        output_names=["the output"],
        tolerance=1e-4,
        praise="No concatenation, the same output: heads add.",
    )


# --- weights of another library -----------------------------------------------------------------


def _loader(order: str = "qkv", *, biases: bool = True, transpose: bool = False, out: bool = True):
    """Make a loader that copies a torch module's weights, possibly with a mistake."""

    def load(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
        ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
        targets = {"q": ours.W_q, "k": ours.W_k, "v": ours.W_v}
        with torch.no_grad():
            for i, name in enumerate(order):
                rows = slice(i * theirs.embed_dim, (i + 1) * theirs.embed_dim)
                block = theirs.in_proj_weight[rows]
                targets[name].weight.copy_(block.T if transpose else block)
                if biases:
                    targets[name].bias.copy_(theirs.in_proj_bias[rows])
            if out:
                ours.W_o.weight.copy_(theirs.out_proj.weight)
                ours.W_o.bias.copy_(theirs.out_proj.bias)
        return ours

    return load


def _outputs_of(load: Callable) -> Callable:
    """Turn a loader into what its module computes, which is what can be compared."""

    def outputs(theirs: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor] | None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # whatever wasn't copied is then the same in every loader
            ours = load(theirs)
        return None if ours is None else ours(x, need_weights=True)

    return outputs


_LOADED = (
    Mistake(
        "queries and keys swapped",
        _loader("kqv"),
        "Queries and keys are swapped: the packed matrix holds q, then k, then v.",
    ),
    Mistake(
        "order v, k, q",
        _loader("vkq"),
        "The blocks went to the wrong projections: the first d rows belong to the queries.",
    ),
    Mistake(
        "no biases",
        _loader(biases=False),
        "The matrices are right; in_proj_bias wasn't copied to the three projections.",
    ),
    Mistake(
        "transposed",
        _loader(transpose=True),
        "The blocks are transposed. Both libraries keep nn.Linear's layout [out, in], "
        "so nothing needs turning. (A square matrix doesn't complain when you turn it.)",
    ),
    Mistake(
        "no output projection",
        _loader(out=False),
        "The weights agree, the output doesn't: out_proj wasn't copied to W_o.",
    ),
)


@keeps_random_state
def loaded(answer: Any) -> Verdict:
    """Check `load(theirs)`, which returns an attnlib module with a torch module's weights."""
    cases = []
    for h, d in ((3, 12), (2, 10)):
        theirs = nn.MultiheadAttention(d, h, batch_first=True)
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
        cases.append((theirs, torch.randn(2, 5, d)))

    def reference(theirs: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
        return theirs(x, x, x, average_attn_weights=False)

    return check_function(
        answer,
        reference,
        cases,
        _LOADED,
        output_names=["the output of your module", "the weights of your module"],
        as_function=_outputs_of,
        praise="Output and every head's weights equal those of nn.MultiheadAttention.",
    )


# --- what a head reads --------------------------------------------------------------------------


def _gradient(head: int, heads_of: Callable, x: Tensor, select: bool = True) -> Tensor:
    x = x.clone().requires_grad_()
    heads = heads_of(x)
    # Squares: a plain sum can have gradient 0 where positive and negative effects cancel.
    target = heads[:, head] if select else heads
    return torch.autograd.grad(target.pow(2).sum(), x)[0]


def _reads(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    return (_gradient(head, heads_of, x) != 0).flatten(0, 1).any(0)


_READS = (
    Mistake(
        "assumed a slice",
        lambda head, heads_of, x: (
            torch.arange(x.shape[-1]) // heads_of(x).shape[-1] == head
        ),
        "You assumed a slice. Measure instead: ask autograd what moves the head's output.",
    ),
    Mistake(
        "all heads at once",
        lambda head, heads_of, x: (
            (_gradient(head, heads_of, x, select=False) != 0).flatten(0, 1).any(0)
        ),
        "You found everything even where a head is cut off from the rest. Take the gradient of "
        "heads[:, head] alone, not of all heads together.",
    ),
    Mistake(
        "gradients themselves",
        lambda head, heads_of, x: _gradient(head, heads_of, x),
        "You returned the gradient [B, T, d]. Wanted is one answer an input number: "
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


@keeps_random_state
def reads(answer: Any) -> Verdict:
    """Check `reads(head, heads_of, x)`: which of the d input numbers head `head` depends on.

    `heads_of(x)` returns the heads' outputs [B, h, T, d_k]; wanted is a boolean tensor [d].
    """
    cases = []
    for make in (_real_heads, _sliced_heads):
        for h, d_k in ((3, 4), (4, 2)):
            cases.append((h - 2, make(h, h * d_k), torch.randn(2, 5, h * d_k)))
    return check_function(
        answer,
        _reads,
        cases,
        _READS,
        output_names=["your answer"],
        praise="All of the embedding for real heads, one slice for the impostor.",
    )


EXERCISES = {
    "head_by_hand": Exercise(head_by_hand, _HEAD_BY_HAND),
    "mended": Exercise(mended, _MENDED),
    "split": Exercise(split, _SPLIT),
    "merge": Exercise(merge, _MERGE),
    "sum_over_heads": Exercise(sum_over_heads, _SUM_OVER_HEADS),
    "loaded": Exercise(loaded, _LOADED),
    "reads": Exercise(reads, _READS),
}
