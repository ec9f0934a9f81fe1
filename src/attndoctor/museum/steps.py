"""Attention in steps; an exhibit can replace each by a broken one.

This is the slow and plain way through attention: nothing is fused, nothing is saved. Tests hold it
to `attnlib.attention`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlib.attention import MultiHeadAttention
from attnlib.cache import KVCache
from attnlib.functional import merge_heads, split_heads


def project(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Make queries, keys and values of all heads."""
    return module.W_q(query), module.W_k(key), module.W_v(value)


def share(x: Tensor, h: int) -> Tensor:
    """Give each key head to its neighboring query heads: [B, h_kv, T, d_k] -> [B, h, T, d_k]."""
    return x.repeat_interleave(h // x.shape[1], dim=1)


def score(q: Tensor, k: Tensor) -> Tensor:
    """Compare every query with every key."""
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def fit_mask(mask: Tensor, h: int) -> Tensor:
    """Bring a mask to the dimensions of the scores [B, h, T_q, T_k]."""
    return mask[:, None] if mask.dim() == 3 else mask


def fit_key_mask(key_mask: Tensor) -> Tensor:
    """Bring a mask of real tokens [B, T_k] to the dimensions of the scores."""
    return key_mask[:, None, None, :]


def triangle(T_q: int, T_k: int) -> Tensor:
    """Let the queries, the last T_q of T_k tokens, look at themselves and to the left."""
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def combine(masks: list[Tensor]) -> Tensor | None:
    """Allow what every mask allows, in the order mask, key_mask, triangle; None: everything."""
    return reduce(torch.logical_and, masks) if masks else None


def softmax(scores: Tensor) -> Tensor:
    """Turn each query's scores into shares."""
    return scores.softmax(-1)


def weigh(scores: Tensor, allowed: Tensor) -> Tensor:
    """Turn each query's scores into shares of the keys that it may look at."""
    fully_masked = ~allowed.any(-1, keepdim=True)  # rows that may look nowhere
    scores = scores.masked_fill(~(allowed | fully_masked), -math.inf)
    return scores.softmax(-1).masked_fill(fully_masked, 0.0)


def rescale(weights: Tensor, d_k: int) -> Tensor:
    """Leave the shares as they are: the scale belongs to the scores."""
    return weights


def dropout_now(module: MultiHeadAttention) -> float:
    """Return the share of the looks to leave out: in evaluation none."""
    return module.dropout if module.training else 0.0


def drop(weights: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
    """Return the weights that mix the values, and those that are shown."""
    return F.dropout(weights, dropout), weights


def project_out(module: MultiHeadAttention, joined: Tensor) -> Tensor:
    """Mix what the heads found."""
    return module.W_o(joined)


def report(weights: Tensor) -> Tensor:
    """Return what the caller sees of the weights [B, h, T_q, T_k]."""
    return weights


@dataclass(frozen=True)
class Steps:
    """The steps of attention; by default the right ones."""

    project: Callable = project
    split: Callable = split_heads
    share: Callable = share
    score: Callable = score
    fit_mask: Callable = fit_mask
    fit_key_mask: Callable = fit_key_mask
    triangle: Callable = triangle
    combine: Callable = combine
    softmax: Callable = softmax
    weigh: Callable = weigh
    rescale: Callable = rescale
    dropout_now: Callable = dropout_now
    drop: Callable = drop
    merge: Callable = merge_heads
    project_out: Callable = project_out
    report: Callable = report


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None = None,
    *,
    dropout: float = 0.0,
    **steps: Any,
) -> tuple[Tensor, Tensor]:
    """Attend in steps, some of them replaced.

    Args:
        q, k, v: queries [..., T_q, d_k], keys [..., T_k, d_k], values [..., T_k, d_v].
        allowed: boolean, broadcasting to [..., T_q, T_k]; True = may look.
        dropout: share of the looks that are left out.
        **steps: what replaces `score`, `softmax`, `weigh`, `rescale` or `drop`, as `Exhibit.steps`
            has them.

    Returns:
        The output [..., T_q, d_v] and the weights [..., T_q, T_k].

    Raises:
        TypeError: there is no step of this name.
        Exception: whatever a broken step raises.
    """
    step = replace(Steps(), **steps)
    scores = step.score(q, k)
    weights = step.softmax(scores) if allowed is None else step.weigh(scores, allowed)
    mixing, shown = step.drop(step.rescale(weights, q.shape[-1]), dropout)
    return mixing @ v, shown


class SteppedAttention(MultiHeadAttention):
    """Multi-head attention that goes through `Steps`, some of them replaced.

    Takes the arguments of `MultiHeadAttention`, and in `forward` those that exhibits are about. The
    weights are always returned.
    """

    def __init__(
        self, d_model: int, num_heads: int, *, steps: dict[str, Any], **options: Any
    ) -> None:
        super().__init__(d_model, num_heads, **options)
        self.steps = steps

    def forward(  # type: ignore[override]  # fewer arguments
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = True,
        cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend from `query` to `key`, mixing `value`; see `MultiHeadAttention.forward`."""
        step = replace(Steps(), **self.steps)
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = step.project(self, query, key, value)
        q, k, v = step.split(q, self.num_heads), *(step.split(x, self.num_kv_heads) for x in (k, v))
        if cache is not None:
            k, v = remembered = cache.joined(self, k, v)
        if self.num_kv_heads != self.num_heads:
            k, v = step.share(k, self.num_heads), step.share(v, self.num_heads)
        masks = []
        if mask is not None:
            masks.append(step.fit_mask(mask, self.num_heads))
        if key_mask is not None:
            masks.append(step.fit_key_mask(key_mask))
        if causal:
            masks.append(step.triangle(q.shape[-2], k.shape[-2]).to(q.device))
        allowed, dropout = step.combine(masks), step.dropout_now(self)
        heads, weights = attend(q, k, v, allowed, dropout=dropout, **self.steps)
        output, shown = step.project_out(self, step.merge(heads)), step.report(weights)
        if cache is not None:  # last: an error leaves it as it was
            cache.keep(self, *remembered)
        return output, shown

    def contributions(self, *tokens: Tensor | None, **options: Any) -> Tensor:
        """Raise: with a broken step the output need not be a sum over heads.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "contributions are those of MultiHeadAttention; exhibits have none"
        )
