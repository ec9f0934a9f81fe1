"""Four ways to say where a token stands, which attention alone can't see.

Sinusoids and learned vectors are added to the tokens before the first layer. Rotary positions turn
queries and keys in every layer. ALiBi adds to the scores. With the last two, a score depends on the
distance between two tokens, not on where they stand.

Letters: B batch, T tokens, d model width (`d_model`), h heads, d_k width of one head.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlib.checks import (
    require_count,
    require_flag,
    require_floating,
    require_not_negative,
    require_number,
    require_parameter_dtype,
    require_positive_int,
    require_tokens,
    require_width,
    shape_of,
)

__all__ = [
    "LearnedPositions",
    "RotaryPositions",
    "SinusoidalPositions",
    "alibi_bias",
    "sinusoidal_positions",
]

# The slowest hand turns once in 2 pi BASE tokens (Vaswani et al. 2017, section 3.5).
BASE = 10_000.0


def sinusoidal_positions(
    length: int,
    d_model: int,
    *,
    base: float = BASE,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return a vector for each position, [length, d]: d / 2 clock hands, the first the quickest.

    Numbers 2i and 2i + 1 of position p are sin and cos of p / base^(2i / d) (Vaswani et al. 2017,
    section 3.5). So the dot product of two vectors depends on their distance alone.

    Args:
        length: how many positions, from 0 on.
        d_model: width d, an even number.
        base: how much slower the hands become.
        device, dtype: of the result.

    Example:
        >>> sinusoidal_positions(3, d_model=4)[1]
        tensor([0.8415, 0.5403, 0.0100, 0.9999])

    Raises:
        TypeError, ValueError: a length or width below 1, an odd width, a base that isn't above 0,
            or a dtype that isn't floating point.
    """
    require_positive_int("length", length)
    _require_even("d_model", d_model)
    _require_base(base)
    require_parameter_dtype(dtype)
    table = _sinusoids(0, length, d_model, base, torch.float64, torch.device("cpu"))
    return table.to(device=device, dtype=dtype or torch.get_default_dtype())


class SinusoidalPositions(nn.Module):
    """Add `sinusoidal_positions` to tokens of any number; there is nothing to learn.

    Args:
        d_model: width d, an even number.
        base: as for `sinusoidal_positions`.

    Raises:
        TypeError, ValueError: as `sinusoidal_positions`.
    """

    def __init__(self, d_model: int, *, base: float = BASE) -> None:
        super().__init__()
        _require_even("d_model", d_model)
        _require_base(base)
        self.d_model, self.base = d_model, base

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Add to each token its position: [B, T, d] -> [B, T, d].

        Args:
            x: tokens.
            start: the position of the first token, such as the length of a cache.

        Raises:
            TypeError, ValueError: tokens of another width, or a start below 0.
        """
        _require_tokens_of_width(x, self.d_model, None)
        require_count("start", start)
        T, d = x.shape[-2:]
        return x + _sinusoids(start, start + T, d, self.base, _precise(x), x.device).to(x.dtype)

    def extra_repr(self) -> str:
        """Return the sizes, to be printed."""
        return f"d_model={self.d_model}, base={self.base:g}"


class LearnedPositions(nn.Module):
    """Add to tokens a learned vector for each position (Gehring et al. 2017, section 3.1).

    Args:
        length: how many positions there are.
        d_model: width d.
        std: standard deviation of the initial numbers; 0.02 as in GPT-2 (Radford et al. 2019).
        device, dtype: of the parameter.

    Raises:
        TypeError, ValueError: sizes below 1, a negative std, or a dtype that isn't floating point.
    """

    def __init__(
        self,
        length: int,
        d_model: int,
        *,
        std: float = 0.02,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive_int("length", length)
        require_positive_int("d_model", d_model)
        require_not_negative("std", std)
        require_parameter_dtype(dtype)
        self.std = std
        self.weight = nn.Parameter(torch.empty(length, d_model, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new vectors."""
        if not self.weight.is_meta:  # on meta torch would import its compiler, which is slow
            nn.init.normal_(self.weight, std=self.std)

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Add to each token its position: [B, T, d] -> [B, T, d].

        Args:
            x: tokens.
            start: the position of the first token, such as the length of a cache.

        Raises:
            TypeError, ValueError: tokens of another width, a start below 0, or tokens beyond the
                last position.
        """
        length, d = self.weight.shape
        _require_tokens_of_width(x, d, self.weight)
        require_count("start", start)
        stop = start + x.shape[-2]
        if stop > length:
            raise ValueError(
                f"x must end within the {length} positions that there are, got {x.shape[-2]} "
                f"tokens from position {start} on"
            )
        return x + self.weight[start:stop]

    def extra_repr(self) -> str:
        """Return the sizes, to be printed."""
        length, d = self.weight.shape
        return f"length={length}, d_model={d}"


class RotaryPositions(nn.Module):
    """Turn queries and keys by angles that grow with their position (Su et al. 2021, section 3.2).

    The d_k numbers of a query or key are d_k / 2 pairs, each a hand on a plane. Pair i of position
    p is turned by p / base^(2i / d_k). A dot product stays the same if both hands turn alike, so a
    score depends on the distance of the two tokens alone. Values stay as they are. Pass it to
    `MultiHeadAttention`; several layers can share one::

        >>> import torch
        >>> from attnlib import MultiHeadAttention
        >>> from attnlib.positions import RotaryPositions
        >>> attention = MultiHeadAttention(16, num_heads=2, rotary=RotaryPositions())
        >>> output, _ = attention(torch.randn(1, 5, 16), causal=True)

    Args:
        base: how much slower the hands become; 10,000 in the paper and in Llama 2, 500,000 in
            Llama 3 (Grattafiori et al. 2024, section 3.2).
        interleaved: whether neighbors are a pair, as in the paper. Otherwise number i goes with
            number i + d_k / 2, as in GPT-NeoX (Black et al. 2022) and in transformers' Llama. The
            two differ only in the order of a head's numbers.

    Raises:
        TypeError, ValueError: a base that isn't above 0, or an interleaved that isn't a boolean.
    """

    def __init__(self, *, base: float = BASE, interleaved: bool = True) -> None:
        super().__init__()
        _require_base(base)
        require_flag("interleaved", interleaved)
        self.base, self.interleaved = base, interleaved

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Turn each vector by its position: [..., T, d_k] -> [..., T, d_k].

        Args:
            x: queries or keys, such as [B, h, T, d_k].
            start: the position of the first token, such as the length of a cache.

        Raises:
            TypeError, ValueError: not a floating point tensor with tokens, an odd d_k, or a start
                below 0.
        """
        require_floating("x", x)
        if x.dim() < 2:
            raise ValueError(f"x must have shape [..., T, d_k], got {shape_of(x)}")
        require_tokens("x", x)
        _require_even("d_k", x.shape[-1])
        require_count("start", start)
        T, d_k = x.shape[-2:]
        angles = _angles(start, start + T, d_k, self.base, _precise(x), x.device)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)  # [T, d_k / 2]
        pair = -1 if self.interleaved else -2  # the dimension along which the two of a pair stand
        sizes = (d_k // 2, 2) if self.interleaved else (2, d_k // 2)
        first, second = x.unflatten(-1, sizes).unbind(pair)  # [..., T, d_k] -> 2 [..., T, d_k / 2]
        turned = first * cos - second * sin, first * sin + second * cos
        return torch.stack(turned, dim=pair).flatten(-2)

    def extra_repr(self) -> str:
        """Return the options, to be printed."""
        return f"base={self.base:g}, interleaved={self.interleaved}"


def alibi_bias(
    num_heads: int,
    T: int,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return what ALiBi adds to the scores, [1, h, T, T]: minus a slope times the distance.

    Pass it to `MultiHeadAttention` as `score_bias`. Head k, counted from 1, has the slope
    2^(-8 k / h) (Press et al. 2022, section 3, for h that are powers of 2; for others their code
    mixes two such series, and this function keeps the formula). Looks to the right get the same
    bias as looks to the left; the paper forbids them.

    Args:
        num_heads: h.
        T: tokens.
        device, dtype: of the result.

    Example:
        >>> alibi_bias(num_heads=2, T=3)[0, 0]
        tensor([[ 0.0000, -0.0625, -0.1250],
                [-0.0625,  0.0000, -0.0625],
                [-0.1250, -0.0625,  0.0000]])

    Raises:
        TypeError, ValueError: sizes below 1, or a dtype that isn't floating point.
    """
    require_positive_int("num_heads", num_heads)
    require_positive_int("T", T)
    require_parameter_dtype(dtype)
    positions = torch.arange(T)
    slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)  # [h]
    distances = (positions[:, None] - positions).abs()  # [T, T]
    bias = slopes[None, :, None, None] * -distances
    return bias.to(device=device, dtype=dtype or torch.get_default_dtype())


def _angles(
    start: int, stop: int, width: int, base: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return the angle of each hand at each position, [stop - start, width / 2]."""
    exponents = torch.arange(0, width, 2, dtype=dtype, device=device) / width
    positions = torch.arange(start, stop, dtype=dtype, device=device)
    return positions[:, None] * base**-exponents


def _sinusoids(
    start: int, stop: int, d: int, base: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return sin and cos of each hand, side by side, [stop - start, d]."""
    angles = _angles(start, stop, d, base, dtype, device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # [T, d / 2, 2] -> [T, d]


def _precise(x: Tensor) -> torch.dtype:
    """Return a dtype for angles: in half precision positions 2048 and 2049 would be equal."""
    return torch.promote_types(x.dtype, torch.float32)


def _require_tokens_of_width(x: Tensor, d: int, parameter: object) -> None:
    require_width(x, d, parameter)
    if x.dim() < 2:
        raise ValueError(f"x must have shape [B, T, d], got {shape_of(x)}")
    require_tokens("x", x)


def _require_even(name: str, size: int) -> None:
    require_positive_int(name, size)
    if size % 2:
        raise ValueError(f"{name} must be even, as positions take numbers in pairs, got {size}")


def _require_base(base: float) -> None:
    require_number("base", base)
    if not 0 < base < float("inf"):
        raise ValueError(f"base must be a number above 0, got {base}")
