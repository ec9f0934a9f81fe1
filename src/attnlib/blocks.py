"""Normalization, the feed-forward network and the Transformer block that holds them together.

Letters: B batch, T tokens, d model width (`d_model`), h heads (`num_heads`), d_ff hidden width.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib._checks import (
    require_floating,
    require_like_parameter,
    require_positive_int,
    require_sequence,
    shape_of,
)
from attnlib.attention import MultiHeadAttention
from attnlib.cache import KVCache


class LayerNorm(nn.Module):
    """Give every token mean 0 and variance 1 over its own d numbers, then a gain and a bias.

    The variance is the biased one (divided by d), and eps stands inside the root, so that a token
    of equal numbers becomes `bias` instead of NaN (Ba, Kiros & Hinton 2016, section 3)::

        y = (x - mean) / sqrt(variance + eps) * gain + bias

    Args:
        d_model: width d of a token.
        eps: what is added to the variance.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: d_model isn't a whole number of at least 1, or eps is negative.
    """

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _require_norm_sizes(d_model, eps)
        self.d_model, self.eps = d_model, eps
        self.gain = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(d_model, device=device, dtype=dtype))

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each token: [..., d] -> [..., d].

        Raises:
            TypeError: x isn't a floating point tensor of the module's dtype.
            ValueError: x doesn't end in d.
        """
        _require_width(x, self.d_model, self.gain)
        wide = _at_least_float32(x)
        centered = wide - wide.mean(-1, keepdim=True)  # [..., d] - [..., 1] -> [..., d]
        variance = centered.square().mean(-1, keepdim=True)  # [..., d] -> [..., 1]
        normalized = centered * torch.rsqrt(variance + self.eps)
        return (normalized * self.gain + self.bias).to(x.dtype)

    def extra_repr(self) -> str:
        """Say the width and eps when the module is printed."""
        return f"d_model={self.d_model}, eps={self.eps}"


class RMSNorm(nn.Module):
    """Divide every token by the root mean square of its own d numbers, then a gain.

    Nothing is subtracted and there is no bias (Zhang & Sennrich 2019, section 4, with an eps)::

        y = x / sqrt(mean(x^2) + eps) * gain

    Args:
        d_model: width d of a token.
        eps: what is added to the mean square.
        device, dtype: of the parameter, as for every torch module.

    Raises:
        TypeError, ValueError: d_model isn't a whole number of at least 1, or eps is negative.
    """

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _require_norm_sizes(d_model, eps)
        self.d_model, self.eps = d_model, eps
        self.gain = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each token: [..., d] -> [..., d].

        Raises:
            TypeError: x isn't a floating point tensor of the module's dtype.
            ValueError: x doesn't end in d.
        """
        _require_width(x, self.d_model, self.gain)
        wide = _at_least_float32(x)
        mean_square = wide.square().mean(-1, keepdim=True)  # [..., d] -> [..., 1]
        return (wide * torch.rsqrt(mean_square + self.eps) * self.gain).to(x.dtype)

    def extra_repr(self) -> str:
        """Say the width and eps when the module is printed."""
        return f"d_model={self.d_model}, eps={self.eps}"


class FeedForward(nn.Module):
    """Two matrices with a GELU between them, applied to each token by itself.

    As in Vaswani et al. 2017, section 3.3, with the GELU of GPT-2 (here the exact one) for ReLU::

        x [..., d] --W_1--> [..., d_ff] --GELU--> [..., d_ff] --W_2--> [..., d]

    Args:
        d_model: width d of a token, in and out.
        d_ff: width in between; 4 d if left out.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: sizes that aren't whole numbers of at least 1.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive_int("d_model", d_model)
        d_ff = 4 * d_model if d_ff is None else d_ff
        require_positive_int("d_ff", d_ff)
        self.d_model, self.d_ff = d_model, d_ff
        self.W_1 = nn.Linear(d_model, d_ff, device=device, dtype=dtype)
        self.W_2 = nn.Linear(d_ff, d_model, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights as attention does: Xavier-uniform matrices, biases 0."""
        for layer in (self.W_1, self.W_2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor) -> Tensor:
        """Transform each token by itself: [..., d] -> [..., d].

        Raises:
            TypeError: x isn't a floating point tensor of the module's dtype.
            ValueError: x doesn't end in d.
        """
        _require_width(x, self.d_model, self.W_1.weight)
        return self.W_2(F.gelu(self.W_1(x)))  # [..., d] -> [..., d_ff] -> [..., d]


class TransformerBlock(nn.Module):
    """Attention, then a feed-forward network, each with its plumbing: a residual and a norm.

    With f for either of the two sub-layers::

        norm_position="pre"     x + f(norm(x))     GPT-2 (Radford et al. 2019, section 2.3)
        norm_position="post"    norm(x + f(x))     Vaswani et al. 2017, section 3.1
        norm_position=None      x + f(x)

    `residual=False` leaves out the "x +". A pre-norm stack also needs one norm after its last
    block, which belongs to the model that stacks the blocks, not to a block.

    Args:
        d_model: width d of tokens, in and out.
        num_heads: h; must divide d_model.
        d_ff: hidden width of the feed-forward network; 4 d if left out.
        norm_position: "pre", "post" or None.
        residual: whether each sub-layer's result is added to its input.
        norm: what makes a norm, called as norm(d_model, device=..., dtype=...): LayerNorm, RMSNorm.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: sizes that don't fit, or an unknown norm_position.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        *,
        norm_position: Literal["pre", "post"] | None = "pre",
        residual: bool = True,
        norm: Callable[..., nn.Module] = LayerNorm,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if norm_position not in ("pre", "post", None):
            raise ValueError(f'norm_position must be "pre", "post" or None, got {norm_position!r}')
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.norm_position, self.residual = d_model, norm_position, residual
        self.attention = MultiHeadAttention(d_model, num_heads, **options)
        self.feed_forward = FeedForward(d_model, d_ff, **options)
        self.norm_1 = norm(d_model, **options) if norm_position else None
        self.norm_2 = norm(d_model, **options) if norm_position else None

    __call__: Callable[..., tuple[Tensor, Tensor | None]]  # for type checkers; as forward

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
        weights_for: Sequence[int] | None = None,
        head_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Pass tokens through the block: [B, T, d] -> [B, T, d].

        Args:
            x: tokens, [B, T, d].
            mask, key_mask, score_bias, causal, need_weights, weights_for, head_mask, cache: as for
                `MultiHeadAttention`.

        Returns:
            The tokens [B, T, d], and the attention weights [B, h, T, T_k] or None.

        Raises:
            TypeError, ValueError: as `MultiHeadAttention`.
        """
        require_sequence("x", x, self.d_model)
        change, weights = self.attention(
            self._enter(x, self.norm_1), mask=mask, key_mask=key_mask, score_bias=score_bias,
            causal=causal, need_weights=need_weights, weights_for=weights_for, head_mask=head_mask,
            cache=cache,
        )  # fmt: skip
        x = self._leave(x, change, self.norm_1)
        change = self.feed_forward(self._enter(x, self.norm_2))
        return self._leave(x, change, self.norm_2), weights

    def extra_repr(self) -> str:
        """Say how the block is plumbed when it is printed."""
        return f"norm_position={self.norm_position!r}, residual={self.residual}"

    def _enter(self, x: Tensor, norm: nn.Module | None) -> Tensor:
        """Return what a sub-layer reads."""
        return norm(x) if norm is not None and self.norm_position == "pre" else x

    def _leave(self, x: Tensor, change: Tensor, norm: nn.Module | None) -> Tensor:
        """Return what goes on after a sub-layer that read x and answered `change`."""
        x = x + change if self.residual else change
        return norm(x) if norm is not None and self.norm_position == "post" else x


def _at_least_float32(x: Tensor) -> Tensor:
    """Widen half precision: a mean of squares in bfloat16 would keep two digits at best."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _require_norm_sizes(d_model: object, eps: object) -> None:
    require_positive_int("d_model", d_model)
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        raise TypeError(f"eps must be a number, got {type(eps).__name__} ({eps!r})")
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}: it stands under a square root")


def _require_width(x: Tensor, width: int, parameter: Tensor) -> None:
    """Raise unless `x` is a floating point tensor [..., width] like the module's parameter."""
    require_floating("x", x)
    if x.dim() == 0 or x.shape[-1] != width:
        raise ValueError(
            f"x must end in d_model={width}, got shape {shape_of(x)}: "
            "the last dimension holds a token's numbers"
        )
    require_like_parameter("x", x, parameter)
