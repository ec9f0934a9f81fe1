"""Cutting a tensor into heads, merging them, and adding the heads up."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlib._verdict import Verdict
from attnlib.exercises._calling import call
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise, from_museum
from attnlib.functional import merge_heads, split_heads
from attnlib.museum.heads import HEADS_OF_ONE_TOKEN, MERGE, VIEW

# --- splitting and merging ----------------------------------------------------------------------

_READY_MADE = Mistake(
    split_heads,
    "The numbers are right, but `split_heads` made them. Write what it does: cut the last axis in "
    "two, and bring the heads to the front.",
)
SPLIT_MISTAKES = (
    Mistake(
        VIEW.steps["split"],
        "The shape is right, but head 1 holds the first tokens instead of every token's first "
        "numbers: in memory a token's numbers are neighbors, and a view leaves them so. What can "
        "a view of the last axis alone do, and what is left to do then?",
    ),
    from_museum(HEADS_OF_ONE_TOKEN, HEADS_OF_ONE_TOKEN.steps["split"]),
    Mistake(
        lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
        "Each head got every h-th number. Heads are neighbors: head 1 takes the first d_k "
        "numbers of each token.",
    ),
    Mistake(
        lambda x, h: x.unflatten(-1, (h, -1)).permute(0, 2, 3, 1),
        "The last two axes are swapped: a head is [T, d_k], one row per token.",
    ),
    Mistake(
        lambda x, h: x.unflatten(-1, (h, -1)).permute(2, 0, 1, 3),
        "Your heads stand in front of the batch: [h, B, T, d_k]. The batch stays first, so that "
        "the next function finds its samples.",
    ),
    Mistake(
        lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 3),
        "You swapped T with d_k. Ask of [B, T, h, d_k] which two axes have to change places, so "
        "that h comes before T and each head stays a matrix [T, d_k].",
    ),
    Mistake(
        lambda x, h: x.unflatten(-1, (h, -1)).transpose(2, 3),
        "You swapped h with d_k, so the heads stand at the end. Which axis should they stand "
        "before?",
    ),
    Mistake(
        lambda x, h: x.unflatten(-1, (-1, h)).transpose(1, 2),
        "You cut each token into d_k pieces of h numbers. It is the other way round: h pieces, and "
        "each is d_k = d / h wide.",
    ),
    Mistake(
        lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2).flatten(0, 1),
        "You folded the heads into the batch. They have an axis of their own here: [B, h, T, d_k].",
    ),
    Mistake(
        lambda x, h: x.chunk(h, -1),
        "The pieces are right. A list counts as several results, though: make it one tensor, in "
        "which the heads have an axis of their own, behind the batch.",
    ),
    Mistake(
        lambda x, h: x.reshape(x.shape[1], len(x), h, -1).permute(1, 2, 0, 3),
        "Your reshape names T before B, but the samples lie one after the other: that deals tokens "
        "to other samples. An axis may only be cut or joined where it stands.",
    ),
)


def _split_cases() -> list[tuple[Any, ...]]:
    sizes = ((2, 5, 3, 4), (3, 4, 2, 5), (1, 7, 4, 2))
    return [(torch.randn(B, T, h * d_k), h) for B, T, h, d_k in sizes]


def _calls(answer: Callable, name: str) -> bool:
    """Tell whether a function is the one of this name, or has the name in its code."""
    code = getattr(answer, "__code__", None)
    return getattr(answer, "__name__", "") == name or name in getattr(code, "co_names", ())


@exercise(mistakes=(*SPLIT_MISTAKES, _READY_MADE))
def split(answer: Any) -> Verdict:
    """Check `split(x, num_heads)`: [B, T, d] -> [B, h, T, d_k]."""
    verdict = check_function(
        answer,
        split_heads,
        _split_cases(),
        SPLIT_MISTAKES,
        output_names=["the split tensor"],
        praise="Head i holds numbers i * d_k to (i + 1) * d_k of every token.",
    )
    ready_made = verdict and _calls(answer, "split_heads")
    return not_yet(_READY_MADE.hint) if ready_made else verdict


_READY_MADE_MERGE = Mistake(
    merge_heads,
    "The numbers are right, but `merge_heads` made them. Write what it does: bring each token's "
    "heads together, and make one axis of two.",
)
MERGE_MISTAKES = (
    from_museum(MERGE, MERGE.steps["merge"]),
    Mistake(
        lambda x: x.permute(0, 2, 3, 1).flatten(2),
        "The heads' numbers are interleaved. All d_k numbers of head 1 come first, then head 2's.",
    ),
    Mistake(
        lambda x: x.transpose(1, 3).reshape(len(x), x.shape[2], -1),
        "You swapped h with d_k. It is h and T that change places: the axes 1 and 2.",
    ),
    Mistake(
        lambda x: x.transpose(1, 2),
        "You stopped at [B, T, h, d_k]. Make h and d_k one axis again.",
    ),
    Mistake(
        lambda x: x.sum(1),
        "You added the heads up. They stand side by side: h of them, each d_k wide, make d.",
    ),
    Mistake(
        lambda x: x.mean(1),
        "You averaged the heads. Nothing is mixed here, every number is kept: h heads side by "
        "side, each d_k wide, make d.",
    ),
    Mistake(
        lambda x: x.transpose(1, 2).flatten(1),
        "You joined the tokens as well: [B, T * d]. Flatten from the axis of the heads on, and "
        "leave that of the tokens.",
    ),
    Mistake(
        lambda x: x.flatten(1, 2),
        "You put the heads one below the other, h * T rows of d_k numbers. A token's heads stand "
        "side by side in one row.",
    ),
    _READY_MADE_MERGE,
)


@exercise(mistakes=MERGE_MISTAKES)
def merge(answer: Any) -> Verdict:
    """Check `merge(x)`: [B, h, T, d_k] -> [B, T, d]."""
    verdict = check_function(
        answer,
        merge_heads,
        # as attention leaves heads behind: one after the other in memory
        [(split_heads(x, h).contiguous(),) for x, h in _split_cases()],
        MERGE_MISTAKES[:-1],  # the last of them is right
        output_names=["the merged tensor"],
        praise="Merging undoes splitting exactly.",
    )
    ready_made = verdict and _calls(answer, "merge_heads")
    return not_yet(_READY_MADE_MERGE.hint) if ready_made else verdict


# --- the output as a sum over heads -------------------------------------------------------------


def _blocks(heads: Tensor, W_o: Tensor) -> list[Tensor]:
    """Each head's addition to the output: its own d_k rows of W_o."""
    d_k = heads.shape[-1]
    return [heads[:, i] @ W_o[i * d_k : (i + 1) * d_k] for i in range(heads.shape[1])]


def _column_blocks(heads: Tensor, W_o: Tensor) -> list[Tensor]:
    d_k = heads.shape[-1]
    return [heads[:, i] @ W_o[:, i * d_k : (i + 1) * d_k].T for i in range(heads.shape[1])]


class _SeesJoining(TorchFunctionMode):
    """Notes whether a tensor that is computed meanwhile is the heads, joined.

    Attributes:
        seen: whether one was.
    """

    def __init__(self, heads: Tensor) -> None:
        super().__init__()
        self.joined = merge_heads(heads)
        self.seen = False

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.shape[-1:] == self.joined.shape[-1:]:
            self.seen |= torch.equal(result.flatten(), self.joined.flatten())
        return result


def _joins(answer: Callable, case: Sequence[Tensor]) -> bool:
    with _SeesJoining(case[0]) as watch:
        call(answer, case)
    return watch.seen


SUM_MISTAKES = (
    Mistake(
        lambda heads, W_o, b_o: merge_heads(heads) @ W_o + b_o,
        "The numbers are right, but the heads were joined on the way. Let each head meet its own "
        "rows of W_o, and add up.",
    ),
    Mistake(
        lambda heads, W_o, b_o: sum(part + b_o for part in _blocks(heads, W_o)),
        "The bias went in once per head. It belongs to the sum, not to the heads.",
    ),
    Mistake(
        lambda heads, W_o, b_o: sum(_blocks(heads, W_o)),
        "The heads' contributions are right; the bias is missing.",
    ),
    Mistake(
        lambda heads, W_o, b_o: sum(_blocks(heads, W_o)) / heads.shape[1] + b_o,
        "You averaged the heads. Nothing is divided by h: contributions add.",
    ),
    Mistake(
        lambda heads, W_o, b_o: sum(
            heads[:, i] @ W_o[i :: heads.shape[1]] for i in range(heads.shape[1])
        ) + b_o,
        "You gave each head every h-th row of W_o. Its d_k rows are neighbors.",
    ),
    Mistake(
        lambda heads, W_o, b_o: _blocks(heads, W_o)[-1] + b_o,
        "Only the last head's contribution is left: add each one to those before it.",
    ),
    Mistake(
        lambda heads, W_o, b_o: sum(_column_blocks(heads, W_o)) + b_o,
        "You took the head's columns of W_o. With row vectors (x @ W) a head meets its d_k rows.",
    ),
    Mistake(
        lambda heads, W_o, b_o: (heads @ W_o[: heads.shape[-1]]).sum(1) + b_o,
        "Every head used the first block of W_o. Head i meets rows i * d_k to (i + 1) * d_k.",
    ),
)  # fmt: skip


@exercise(mistakes=SUM_MISTAKES)
def sum_over_heads(answer: Any) -> Verdict:
    """Check `output(heads, W_o, b_o)` for heads [B, h, T, d_k], W_o [d, d], b_o [d]."""
    cases = []
    for B, T, h, d_k in ((2, 5, 3, 4), (3, 4, 2, 5)):
        d = h * d_k
        cases.append((torch.randn(B, h, T, d_k), torch.randn(d, d), torch.randn(d)))
    verdict = check_function(
        answer,
        lambda heads, W_o, b_o: merge_heads(heads) @ W_o + b_o,
        cases,
        SUM_MISTAKES[1:],  # the first of them has the right output
        output_names=["the output"],
        tolerance=1e-4,
        praise="No concatenation, the same output: heads add.",
    )
    return not_yet(SUM_MISTAKES[0].hint) if verdict and _joins(answer, cases[0]) else verdict
