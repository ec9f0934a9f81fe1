"""Attention as functions: softmax(q k^T / sqrt(d_k)) v, explicit and fused, and cutting into heads.

Queries are [B, h, T_q, d_k], keys and values [B, h_kv, T_k, d_k]; each of the h_kv heads serves
h / h_kv neighboring query heads. The explicit functions also take fewer dimensions.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad

from attnlib import _attention_checks as checks
from attnlib.masks import AttentionMask, triangle


def attention_weights(q: Tensor, k: Tensor, mask: AttentionMask) -> Tensor:
    """Return softmax(q k^T / sqrt(d_k)), the weights [..., T_q, T_k]."""
    attn_mask, fully_masked, is_causal = mask
    # Scaling q multiplies [T_q, d_k] numbers instead of [T_q, T_k].
    scores = matmul_heads(q / math.sqrt(q.shape[-1]), k.transpose(-2, -1))
    if is_causal:
        attn_mask = triangle(q.shape[-2], 0, q.device)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1)
    return weights if fully_masked is None else weights.masked_fill(fully_masked, 0.0)


def _weights(q: Tensor, k: Tensor, mask: AttentionMask) -> Tensor:
    """Return the weights, computed in one tensor if no derivative is wanted."""
    if _needs_derivative(q, k, mask.attn_mask):
        return attention_weights(q, k, mask)
    return checkpointed_weights(q, k, mask)


def explicit_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask
) -> tuple[Tensor, Tensor]:
    """Return the heads' outputs [..., T_q, d_k] and the weights [..., T_q, T_k]."""
    weights = _weights(q, k, mask)
    return matmul_heads(weights, v), weights


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, dropout: float = 0.0
) -> Tensor:
    """Return the heads' outputs, computed by PyTorch's best kernel for them."""
    attn_mask, fully_masked, is_causal = mask
    shared = bool(q.shape[1] != k.shape[1])
    heads = F.scaled_dot_product_attention(
        q, k, v, attn_mask, dropout, is_causal, enable_gqa=shared
    )
    return heads if fully_masked is None else heads.masked_fill(fully_masked, 0.0)


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Let every query mix the values, weighted by how well its key matches.

    Written as matrices::

        weights = softmax(q @ k^T / sqrt(d_k)),   output = weights @ v

    (Vaswani et al. 2017, section 3.2.1.) A query that may look nowhere has weights 0 and output 0.

    Args:
        q: queries [..., T_q, d_k], with no, one (B) or two (B, h) dimensions in front.
        k: keys [..., T_k, d_k].
        v: values [..., T_k, d_v].
        mask: boolean, True = may look; [T_q, T_k], [B, T_q, T_k], or broadcasting to
            [B, h, T_q, T_k].
        causal: also forbid every look to the right; needs T_q = T_k.

    Returns:
        The output [..., T_q, d_v] and the weights [..., T_q, T_k].

    Raises:
        TypeError: not floating point tensors of one dtype, or a mask that isn't boolean.
        ValueError: shapes that don't fit, or no tokens.
    """
    checks.require_matching(q, k, v)
    return explicit_attention(q, k, v, AttentionMask.of(q, k, mask=mask, causal=causal))


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the last dimension into heads: [B, T, d] -> [B, h, T, d_k] with d_k = d / h.

    The transpose matters: reading memory as [B, h, T, d_k] at once would mix tokens with features.

    Raises:
        TypeError, ValueError: x isn't [B, T, d], or d isn't divisible by `num_heads`.
    """
    checks.require_splittable(x, num_heads)
    return split(x, num_heads)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: [B, h, T, d_k] -> [B, T, d]; undoes `split_heads`.

    Raises:
        TypeError, ValueError: x isn't a floating point tensor [B, h, T, d_k].
    """
    checks.require_heads(x)
    return merge(x)


def split(x: Tensor, num_heads: int) -> Tensor:
    """Split as `split_heads` does, without checks."""
    x = x.unflatten(2, (num_heads, -1))  # [B, T, d] -> [B, T, h, d_k]
    return x.transpose(1, 2)  # [B, T, h, d_k] -> [B, h, T, d_k]


def merge(x: Tensor) -> Tensor:
    """Merge as `merge_heads` does, without checks."""
    return x.transpose(1, 2).flatten(2)  # [B, h, T, d_k] -> [B, T, h, d_k] -> [B, T, d]


def matmul_heads(x: Tensor, y: Tensor) -> Tensor:
    """Multiply x [B, h, T, n] by y [B, h_kv, n, m], which h / h_kv heads of x share."""
    if x.shape[:-2] == y.shape[:-2]:
        return x @ y
    h_kv = y.shape[1]
    return _unstack_groups(_stack_groups(x, h_kv) @ y, x.shape[1])


def checkpointed_weights(q: Tensor, k: Tensor, mask: AttentionMask) -> Tensor:
    """Return the weights and keep nothing for the backward pass."""
    return _WeightsInPlace.apply(q, k, *mask)


def _needs_derivative(*inputs: Tensor | None) -> bool:
    """Return whether some input may need a gradient or a forward-mode derivative."""
    tensors = [x for x in inputs if x is not None]
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return True
    if torch.compiler.is_compiling():  # compilers know no forward mode
        return False
    return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)  # also by no_grad


def _stack_groups(x: Tensor, h_kv: int) -> Tensor:
    """Stack the query heads that share a key head as rows."""
    return x.unflatten(1, (h_kv, -1)).flatten(2, 3)  # [B, h, T, n] -> [B, h_kv, h/h_kv T, n]


def _unstack_groups(x: Tensor, h: int) -> Tensor:
    group = h // x.shape[1]
    return x.unflatten(2, (group, -1)).flatten(1, 2)  # [B, h_kv, h/h_kv T, n] -> [B, h, T, n]


class _WeightsInPlace(torch.autograd.Function):
    """`attention_weights` in one tensor [..., T_q, T_k], which the backward pass doesn't keep.

    On a CPU the first touch of fresh memory costs as much as the product itself, so each step
    overwrites the one before. The backward pass computes the weights again from q and k (gradient
    checkpointing: Chen et al. 2016). It runs only for a gradient of the weights themselves; that of
    the output doesn't come here.
    """

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, attn_mask: Tensor | None, fully_masked: Tensor | None,
        is_causal: bool,
    ) -> Tensor:  # fmt: skip
        # The steps of `attention_weights`, in place; test_attention.py holds both to one formula.
        scores = matmul_heads(q / math.sqrt(q.shape[-1]), k.transpose(-2, -1))
        if is_causal:
            scores.masked_fill_(triangle(q.shape[-2], 0, q.device).logical_not_(), -math.inf)
        elif attn_mask is not None and attn_mask.dtype == torch.bool:
            scores.masked_fill_(~attn_mask, -math.inf)
        elif attn_mask is not None:
            scores.add_(attn_mask)
        weights = torch.softmax(scores, -1, out=scores)
        return weights if fully_masked is None else weights.masked_fill_(fully_masked, 0.0)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *arguments: Any) -> tuple[Tensor, int]:
        """Compute out of place: under torch.func.vmap nothing can be written in place."""

        def plain(q: Tensor, k: Tensor, *mask: Any) -> Tensor:
            return attention_weights(q, k, AttentionMask(*mask))

        return torch.func.vmap(plain, in_dims)(*arguments), 0

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        *tensors, ctx.is_causal = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, attn_mask, fully_masked = ctx.saved_tensors
        weights = _weights(q, k, AttentionMask(attn_mask, fully_masked, ctx.is_causal))
        # softmax: d score_ij = w_ij (g_ij - sum_k g_ik w_ik); rows that are 0 stay 0.
        d_scores = weights * (gradient - (gradient * weights).sum(-1, keepdim=True))
        scale, h_kv = 1 / math.sqrt(q.shape[-1]), k.shape[1]
        d_q = matmul_heads(d_scores, k) * scale
        d_k = _stack_groups(d_scores, h_kv).transpose(-2, -1) @ _stack_groups(q, h_kv) * scale
        d_mask = d_scores.sum_to_size(attn_mask.shape) if ctx.needs_input_grad[2] else None
        return d_q, d_k, d_mask, None, None
