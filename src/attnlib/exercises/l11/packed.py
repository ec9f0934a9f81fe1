"""Queries, keys and values per head, out of what GPT-2's `c_attn` returns."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.functional import split_heads

Heads = tuple[Tensor, ...]


def unpacked(packed: Tensor, num_heads: int) -> Heads:
    """Return q, k and v [B, h, T, d_k] of what c_attn returns, [B, T, 3 d]."""
    return tuple(split_heads(part, num_heads) for part in packed.chunk(3, dim=-1))


def _head_by_head(packed: Tensor, num_heads: int) -> Heads:
    parts = packed.unflatten(-1, (num_heads, 3, -1))  # [B, T, 3 d] -> [B, T, h, 3, d_k]
    return tuple(part.transpose(1, 2) for part in parts.unbind(3))


def _every_third(packed: Tensor, num_heads: int) -> Heads:
    return tuple(split_heads(packed[..., i::3], num_heads) for i in range(3))


def _viewed(packed: Tensor, num_heads: int) -> Heads:
    B, T, _ = packed.shape
    return tuple(part.reshape(B, num_heads, T, -1) for part in packed.chunk(3, dim=-1))


def _untransposed(packed: Tensor, num_heads: int) -> Heads:
    return tuple(part.unflatten(-1, (num_heads, -1)) for part in packed.chunk(3, dim=-1))


def _numbers_of_heads_mixed(packed: Tensor, num_heads: int) -> Heads:
    """Deal the numbers of a token out to the heads one by one."""
    parts = (part.unflatten(-1, (-1, num_heads)) for part in packed.chunk(3, dim=-1))
    return tuple(part.permute(0, 3, 1, 2) for part in parts)


SPLIT_MISTAKES = (
    Mistake(
        _head_by_head,
        "You gave each head its q, k and v side by side. In c_attn all queries come first, of all "
        "heads, then all keys, then all values. (Some models do pack head by head, as GPT-NeoX's.)",
    ),
    Mistake(
        _every_third,
        "You took every third number. Queries, keys and values are three blocks of d numbers.",
    ),
    Mistake(
        lambda packed, num_heads: tuple(unpacked(packed, num_heads)[i] for i in (1, 0, 2)),
        "Queries and keys are exchanged. The order is q, k, v.",
    ),
    Mistake(
        lambda packed, num_heads: unpacked(packed, num_heads)[::-1],
        "The order is turned around. It is q, k, v.",
    ),
    Mistake(
        _viewed,
        "The shapes are right, but tokens and heads are mixed: reading [T, d] as [h, T, d_k] gives "
        "the first head the first tokens. Cut d into [h, d_k], then move the heads' axis.",
    ),
    Mistake(
        _untransposed,
        "Your heads stand behind the tokens, [B, T, h, d_k]. Move them in front: [B, h, T, d_k].",
    ),
    Mistake(
        _numbers_of_heads_mixed,
        "You dealt a token's numbers out to the heads one by one. A head has d_k neighbors.",
    ),
    Mistake(
        lambda packed, num_heads: packed.chunk(3, dim=-1),
        "These are q, k and v of all heads side by side, [B, T, d]. Split each into heads as well.",
    ),
)


def _three(answer: Callable) -> Callable:
    """Take one stacked tensor, [3, B, h, T, d_k], for three: it unpacks as they do."""

    def split(packed: Tensor, num_heads: int) -> Any:
        found = answer(packed, num_heads)
        return tuple(found) if isinstance(found, Tensor) and found.dim() == 5 else found

    return split


def _cases() -> list[tuple[Tensor, int]]:
    return [(torch.randn(2, 5, 36), 3), (torch.randn(3, 4, 30), 2)]


@exercise(mistakes=SPLIT_MISTAKES)
def split_c_attn(answer: Callable) -> Verdict:
    """Check `split_qkv(packed, num_heads)`: [B, T, 3 d] -> q, k and v, each [B, h, T, d_k]."""
    return check_function(
        answer,
        unpacked,
        _cases(),
        SPLIT_MISTAKES,
        output_names=["the queries", "the keys", "the values"],
        as_function=_three,
        praise="Three blocks, then heads: what c_attn computes at once are 3 h small matrices.",
    )
