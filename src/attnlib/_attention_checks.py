"""Checks of attention's arguments."""

from collections.abc import Mapping

from torch import Tensor

from attnlib.checks import (
    divisors_of,
    require_divisible,
    require_dropout,
    require_floating,
    require_like,
    require_like_parameter,
    require_positive_int,
    require_same_device,
    require_sequence,
    require_tensor,
    require_tokens,
    shape_of,
)
from attnlib.positions import RotaryPositions


def require_matching(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise unless queries, keys and values fit each other."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        require_floating(name, x)
        if not 2 <= x.dim() <= 4:
            raise ValueError(
                f"{name} must have shape [T, d_k], [B, T, d_k] or [B, h, T, d_k], got {shape_of(x)}"
            )
        require_tokens(name, x)
        require_like(name, x, "q", q)
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"k must have the width of q, got {shape_of(k)} and q {shape_of(q)}: "
            "a score is the dot product of a query and a key"
        )
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"v must have one row a key, got {shape_of(v)} and k {shape_of(k)}")
    for name, x in (("k", k), ("v", v)):
        if x.shape[:-2] != q.shape[:-2]:
            raise ValueError(
                f"{name} must have the leading dimensions of q, "
                f"got {shape_of(x)} and q {shape_of(q)}"
            )


def require_splittable(x: Tensor, num_heads: int) -> None:
    """Raise unless x [B, T, d] can be cut into heads."""
    require_floating("x", x)
    if x.dim() != 3:
        raise ValueError(f"x must have shape [B, T, d], got {shape_of(x)}")
    require_divisible(x.shape[-1], num_heads, "x.shape[-1]")


def require_heads(x: Tensor) -> None:
    """Raise unless x is [B, h, T, d_k]."""
    require_floating("x", x)
    if x.dim() != 4:
        raise ValueError(f"x must have shape [B, h, T, d_k], got {shape_of(x)}")


def require_sizes(
    d_model: int, num_heads: int, num_kv_heads: int, kdim: int, vdim: int, dropout: float
) -> None:
    """Raise unless the sizes of a module fit each other."""
    require_divisible(d_model, num_heads)
    for name, size in (("num_kv_heads", num_kv_heads), ("kdim", kdim), ("vdim", vdim)):
        require_positive_int(name, size)
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_heads must be divisible by num_kv_heads, got num_heads={num_heads} and "
            f"num_kv_heads={num_kv_heads}: each key head serves as many query heads, "
            f"so num_kv_heads may be one of {divisors_of(num_heads)}"
        )
    require_dropout(dropout)


def require_rotary(rotary: object, d_k: int) -> None:
    """Raise unless `rotary` is None, or RotaryPositions and d_k is even."""
    if rotary is None:
        return
    if not isinstance(rotary, RotaryPositions):
        raise TypeError(f"rotary must be RotaryPositions, got {type(rotary).__name__}")
    if d_k % 2:
        raise ValueError(
            "rotary must be left out for heads of odd width, as positions take numbers in pairs, "
            f"got d_model / num_heads = {d_k}"
        )


def require_one_sequence(q: Tensor, k: Tensor) -> None:
    """Raise unless there are as many queries as keys: rotary positions count both alike."""
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(
            "query and key must hold as many tokens where positions are rotary, got "
            f"{q.shape[-2]} queries and {k.shape[-2]} new keys"
        )


def require_inputs(
    query: Tensor, key: Tensor, value: Tensor, widths: Mapping[str, int], parameter: object
) -> None:
    """Raise unless the inputs have their widths and fit each other and the module's parameter."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        own_width = {"key": "kdim", "value": "vdim"}.get(name, "d_model")
        width_name = "d_model" if widths[name] == widths["query"] else own_width
        require_sequence(name, x, widths[name], width_name)
        require_like_parameter(name, x, parameter)
    for name, x in (("key", key), ("value", value)):
        if x.shape[0] != query.shape[0]:
            raise ValueError(
                f"{name} must have the query's batch size, "
                f"got {shape_of(x)} and query {shape_of(query)}"
            )
    if value.shape[1] != key.shape[1]:
        raise ValueError(
            f"value must have one row a key, got {shape_of(value)} and key {shape_of(key)}"
        )


def require_head_mask(head_mask: Tensor | None, query: Tensor, h: int) -> None:
    """Raise unless a head mask is None, or real numbers [h] or [B, h]."""
    if head_mask is None:
        return
    require_tensor("head_mask", head_mask)
    B = query.shape[0]
    if tuple(head_mask.shape) not in ((h,), (B, h)):
        raise ValueError(
            f"head_mask must have shape [h={h}] or [B={B}, h={h}], got {shape_of(head_mask)}"
        )
    if head_mask.is_complex():
        raise TypeError(f"head_mask must hold real numbers, got {head_mask.dtype}")
    require_same_device("head_mask", head_mask, "the query", query)
