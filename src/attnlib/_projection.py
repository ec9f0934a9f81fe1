"""The contribution of each head to a projection, also where the projection is wrapped or hooked."""

from collections.abc import Callable
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from attnlib.functional import merge


def runs_nothing_but(layer: nn.Module, forward: Callable[..., Any]) -> bool:
    """Return whether calling a layer runs this forward and no hook."""
    return (
        type(layer).forward is forward
        and type(layer).__call__ is nn.Module.__call__
        and "forward" not in vars(layer)
        and not layer._forward_hooks
        and not layer._forward_pre_hooks
    )


def is_plain_linear(layer: nn.Module) -> TypeGuard[nn.Linear]:
    """Return whether a layer computes x @ weight^T + bias with a weight that can be read.

    Layers that are wrapped (LoRA), quantized, sharded or hooked don't.
    """
    return runs_nothing_but(layer, nn.Linear.forward) and not is_traceable_wrapper_subclass(
        layer.weight
    )


def project_heads(heads: Tensor, projection: nn.Module) -> Tensor:
    """Project each head [B, h, T, d_k] alone, without the bias: [B, h, T, d].

    A projection [B, T, h d_k] -> [B, T, d] that isn't plain is called on each head with 0 in place
    of the others, on all heads, and on 0 for its bias. Raises ValueError if the parts don't sum to
    the whole.
    """
    h = heads.shape[1]
    if is_plain_linear(projection):
        matrix = projection.weight.unflatten(1, (h, -1))  # [d, h d_k] -> [d, h, d_k]
        return torch.einsum("bhtk,dhk->bhtd", heads, matrix)

    zeros = torch.zeros_like(heads)
    of_nothing = projection(merge(zeros))  # [B, T, d]
    alone = torch.eye(h, dtype=torch.bool, device=heads.device)[..., None, None]  # [h, h, 1, 1]
    parts = [projection(merge(heads.where(one, zeros))) - of_nothing for one in alone]
    each = torch.stack(parts, dim=1)  # h times [B, T, d] -> [B, h, T, d]
    _require_sum(each, projection(merge(heads)) - of_nothing, projection)
    return each


def _require_sum(each: Tensor, together: Tensor, projection: nn.Module) -> None:
    """Raise ValueError unless the parts sum to the whole, up to rounding."""
    rounding = torch.finfo(each.dtype).eps ** 0.5 * each.detach().nan_to_num(0, 0, 0).abs().max()
    if not torch.allclose(each.sum(1), together, rtol=0, atol=rounding.item(), equal_nan=True):
        gap = (each.sum(1) - together).abs().max().item()
        raise ValueError(
            f"W_o must be a layer whose result is a sum over heads, got {type(projection).__name__}"
            f", whose parts differ from the whole by up to {gap:.2g}: it rounds "
            "(quantized), draws at random (dropout in training) or has a hook that isn't linear"
        )
