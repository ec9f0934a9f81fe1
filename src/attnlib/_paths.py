"""The ways through attention: explicit, fused, and recorded beside the fused one.

All take queries [B, h, T_q, d_k] and keys and values [B, h_kv, T_k, d_k], where each of h_kv heads
serves h / h_kv neighboring query heads. The explicit path also takes fewer dimensions.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlib.masks import Limits, triangle


def explicit_weights(q: Tensor, k: Tensor, limits: Limits, out: Tensor | None = None) -> Tensor:
    """Return softmax(q k^T / sqrt(d_k)) within limits, [..., T_q, T_k]; in `out` if given.

    On a processor the first touch of fresh memory costs as much as the product itself, so each step
    overwrites the one before, where no gradient forbids it.
    """
    mask, blind, causal = limits
    transformed = _under_torch_func()
    if transformed and out is not None:
        raise ValueError("weights_out must be left out under torch.func, which gives new tensors")
    # The scale goes on q: [T_q, d_k] numbers to multiply instead of [T_q, T_k].
    scores = matmul_heads(q / math.sqrt(q.shape[-1]), k.transpose(-2, -1), out)
    if causal:
        mask = triangle(q.shape[-2], 0, q.device)
    if mask is not None and mask.dtype == torch.bool:
        fill = scores.masked_fill if transformed else scores.masked_fill_
        scores = fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask if transformed else scores.add_(mask)
    if scores.requires_grad or transformed:  # softmax keeps its result for the way back
        weights = scores.softmax(-1)
        return weights if blind is None else weights.masked_fill(blind, 0.0)
    weights = torch.softmax(scores, -1, out=scores)
    return weights if blind is None else weights.masked_fill_(blind, 0.0)


def fused_heads(q: Tensor, k: Tensor, v: Tensor, limits: Limits, dropout: float) -> Tensor:
    """Return the heads' outputs [B, h, T_q, d_k], by the best kernel that PyTorch has for them."""
    shared = q.shape[1] != k.shape[1]
    heads = F.scaled_dot_product_attention(
        q, k, v, limits.mask, dropout, limits.causal, enable_gqa=shared
    )
    return heads if limits.blind is None else heads.masked_fill(limits.blind, 0.0)


def recorded_weights(
    q: Tensor,
    k: Tensor,
    limits: Limits,
    weights_for: Sequence[int] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the weights (of some heads), of which nothing is kept for the backward pass."""
    if weights_for is not None:
        sharing = q.shape[1] // k.shape[1]
        q, k = q[:, list(weights_for)], k[:, [head // sharing for head in weights_for]]
        limits = limits.of_heads(list(weights_for))
    if _under_torch_func():
        return explicit_weights(q, k, limits, out)
    return _RecordedWeights.apply(q, k, *limits, out)


def matmul_heads(x: Tensor, y: Tensor, out: Tensor | None = None) -> Tensor:
    """Multiply x [B, h, T, n] by y [B, h_kv, n, m]; to one y, heads that share it are more rows."""
    if x.shape[:-2] == y.shape[:-2]:
        return torch.matmul(x, y, out=out)
    h_kv = y.shape[1]
    out = out if out is None else _stack_sharing(out, h_kv)
    return _unstack_sharing(torch.matmul(_stack_sharing(x, h_kv), y, out=out), x.shape[1])


def _under_torch_func() -> bool:
    """Tell whether vmap or another transform of torch.func runs: they can't write in place.

    PyTorch has no public way to ask; its own autograd.Function asks so.
    """
    return torch._C._are_functorch_transforms_active()


def _stack_sharing(x: Tensor, h_kv: int) -> Tensor:
    return x.unflatten(1, (h_kv, -1)).flatten(2, 3)  # [B, h, T, n] -> [B, h_kv, h/h_kv T, n]


def _unstack_sharing(x: Tensor, h: int) -> Tensor:
    sharing = h // x.shape[1]
    return x.unflatten(2, (sharing, -1)).flatten(1, 2)  # [B, h_kv, h/h_kv T, n] -> [B, h, T, n]


class _RecordedWeights(torch.autograd.Function):
    """explicit_weights that remembers q and k alone, and computes the rest again if it must.

    This is gradient checkpointing (Chen et al. 2016); where nobody asks for the gradient of the
    weights themselves, the backward pass doesn't come here at all.
    """

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, mask: Tensor | None, blind: Tensor | None, causal: bool,
        out: Tensor | None,
    ) -> Tensor:  # fmt: skip
        return explicit_weights(q, k, Limits(mask, blind, causal), out)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        *tensors, ctx.causal, _ = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, mask, blind = ctx.saved_tensors
        weights = explicit_weights(q, k, Limits(mask, blind, ctx.causal))
        # softmax: d score_ij = w_ij (g_ij - sum_k g_ik w_ik); rows that are 0 stay 0.
        mean = (gradient * weights).sum(-1, keepdim=True)
        d_scores = (gradient - mean).mul_(weights)
        scale, h_kv = 1 / math.sqrt(q.shape[-1]), k.shape[1]
        d_q = matmul_heads(d_scores, k) * scale
        stacked = _stack_sharing(d_scores, h_kv).transpose(-2, -1)
        d_k = stacked @ _stack_sharing(q, h_kv) * scale
        d_mask = d_scores.sum_to_size(mask.shape) if ctx.needs_input_grad[2] else None
        return d_q, d_k, d_mask, None, None, None
