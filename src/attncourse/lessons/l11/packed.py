"""Queries, keys and values per head, out of what GPT-2's `c_attn` returns."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, read_mistakes
from attnlib.functional import split_heads

Heads = tuple[Tensor, ...]


def unpacked(packed: Tensor, num_heads: int) -> Heads:
    """Return q, k and v [B, h, T, d_k] of what c_attn returns, [B, T, 3 d]."""
    return tuple(split_heads(part, num_heads) for part in packed.chunk(3, dim=-1))


MISTAKES = read_mistakes("split_c_attn", globals())


def _three(answer: Callable) -> Callable:
    """Take one stacked tensor, [3, B, h, T, d_k], for three: it unpacks as they do."""

    def split(packed: Tensor, num_heads: int) -> Any:
        found = answer(packed, num_heads)
        return tuple(found) if isinstance(found, Tensor) and found.dim() == 5 else found

    return split


def _cases() -> list[tuple[Tensor, int]]:
    return [(torch.randn(2, 5, 36), 3), (torch.randn(3, 4, 30), 2)]


@exercise(mistakes=MISTAKES)
def split_c_attn(answer: Callable) -> CheckResult:
    """Check `split_qkv(packed, num_heads)`: [B, T, 3 d] -> q, k and v, each [B, h, T, d_k]."""
    praise = "Three blocks, then heads: what c_attn computes at once are 3 h small matrices."
    return check_function(
        answer,
        unpacked,
        _cases(),
        MISTAKES,
        output_names=["the queries", "the keys", "the values"],
        as_function=_three,
        praise=praise,
    )
