"""Normalization: each token alone, over its own numbers.

Letters: B batch, T tokens, d model width (`d_model`).
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib.checks import (
    require_flag,
    require_not_negative,
    require_parameter_dtype,
    require_positive_int,
    require_width,
)


class LayerNorm(nn.Module):
    """Give every token mean 0 and variance 1 over its own d numbers, then a gain and a bias.

    The variance is divided by d, and eps stands inside the root, so that a token of equal numbers
    becomes `bias` instead of NaN (Ba, Kiros & Hinton 2016, section 3)::

        y = (x - mean) / sqrt(variance + eps) * gain + bias

    Args:
        d_model: width d of a token.
        eps: what is added to the variance.
        bias: whether to add one.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: d_model isn't a whole number of at least 1, eps is negative, bias is
            neither True nor False, or the dtype isn't floating point.
    """

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _require_norm_options(d_model, eps, dtype)
        require_flag("bias", bias)
        self.d_model, self.eps = d_model, eps
        self.gain = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))
        zeros = torch.zeros(d_model, device=device, dtype=dtype)
        self.bias = nn.Parameter(zeros) if bias else None

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each token: [..., d] -> [..., d].

        Raises:
            TypeError: x isn't a floating point tensor of the module's dtype.
            ValueError: x doesn't end in d.
        """
        require_width(x, self.d_model, self.gain)
        return F.layer_norm(x, (self.d_model,), self.gain, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the width and eps, to be printed."""
        return f"d_model={self.d_model}, eps={self.eps}"


class RMSNorm(nn.Module):
    """Divide every token by the root mean square of its own d numbers, then a gain.

    There is no mean to subtract and no bias (Zhang & Sennrich 2019, section 4, with an eps)::

        y = x / sqrt(mean(x^2) + eps) * gain

    Args:
        d_model: width d of a token.
        eps: what is added to the mean square.
        gain: whether to multiply by one.
        device, dtype: of the parameter, as for every torch module.

    Raises:
        TypeError, ValueError: d_model isn't a whole number of at least 1, eps is negative, gain is
            neither True nor False, or the dtype isn't floating point.
    """

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        *,
        gain: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _require_norm_options(d_model, eps, dtype)
        require_flag("gain", gain)
        self.d_model, self.eps = d_model, eps
        ones = torch.ones(d_model, device=device, dtype=dtype)
        self.gain = nn.Parameter(ones) if gain else None

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each token: [..., d] -> [..., d].

        Raises:
            TypeError: x isn't a floating point tensor of the module's dtype.
            ValueError: x doesn't end in d.
        """
        require_width(x, self.d_model, self.gain)
        # A mean of squares in bfloat16 would keep two digits at best.
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        mean_square = wide.square().mean(-1, keepdim=True)  # [..., d] -> [..., 1]
        y = wide * torch.rsqrt(mean_square + self.eps)
        return (y if self.gain is None else y * self.gain).to(x.dtype)

    def extra_repr(self) -> str:
        """Return the width and eps, to be printed."""
        return f"d_model={self.d_model}, eps={self.eps}"


def make_norms(
    norm: Callable[..., nn.Module], number: int, d_model: int, options: Mapping[str, Any]
) -> list[nn.Module]:
    """Return `number` new norms, each made by norm(d_model, **options)."""
    try:
        inspect.signature(norm).bind(d_model, **options)
        fits = not isinstance(norm, nn.Module)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise TypeError(
            "norm must be a class of norms, such as LayerNorm or RMSNorm, or a function of "
            f"(d_model, device=..., dtype=...) that makes one, got {norm!r:.40}"
        )
    norms = [norm(d_model, **options) for _ in range(number)]
    for made in norms:
        if not isinstance(made, nn.Module):
            raise TypeError(f"norm must make a module, but made a {type(made).__name__}")
    return norms


def _require_norm_options(d_model: int, eps: float, dtype: torch.dtype | None) -> None:
    require_positive_int("d_model", d_model)
    require_not_negative("eps", eps)
    require_parameter_dtype(dtype)
