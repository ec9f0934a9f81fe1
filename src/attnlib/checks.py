"""Refusing bad input with an error that helps.

Every message names the argument, what came, what was wanted, and the usual cause if there is one.
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")


def shape_of(tensor: Tensor) -> list[int]:
    """Return a shape as a plain list, which reads better in messages than torch.Size."""
    return list(tensor.shape)


def require_tensor(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")


def require_dense(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a dense tensor: neither sparse nor nested."""
    require_tensor(name, value)
    assert isinstance(value, Tensor)
    if value.layout != torch.strided or value.is_nested:
        kind = "a nested one" if value.is_nested else value.layout
        raise TypeError(f"{name} must be dense numbers, got {kind}")


def require_drawable(name: str, value: Tensor) -> None:
    """Raise TypeError unless `value` is a dense tensor with numbers: not on the device meta."""
    require_dense(name, value)
    if value.is_meta:
        raise TypeError(f"{name} must hold numbers, got a tensor on device meta")


def dense_numbers(name: str, value: Tensor) -> Tensor:
    """Return a tensor's real numbers in float64 on the CPU, or raise TypeError."""
    require_drawable(name, value)
    if value.is_complex():
        raise TypeError(f"{name} must hold real numbers, got {value.dtype}")
    return value.detach().to("cpu", torch.float64).resolve_neg()


def require_whole_numbers(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a tensor of int32 or int64, such as token ids."""
    require_tensor(name, value)
    assert isinstance(value, Tensor)
    if value.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{name} must be whole numbers (int64), got {value.dtype}")


def require_floating(name: str, value: Tensor) -> None:
    """Raise TypeError unless `value` is a dense tensor of floating point numbers."""
    require_dense(name, value)
    if not value.is_floating_point():
        raise TypeError(
            f"{name} must hold floating point numbers, got {value.dtype}: "
            "token ids must be embedded first, and integer tensors converted with .float()"
        )


def require_positive_int(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless `value` is a whole number of at least 1."""
    _require_int(name, value, least=1)


def require_count(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless `value` is a whole number of at least 0."""
    _require_int(name, value, least=0)


def _require_int(name: str, value: object, *, least: int) -> None:
    """Take Python's and numpy's whole numbers, but not True and False."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an int, got {type(value).__name__} ({value!r})")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def require_flag(name: str, value: object) -> None:
    """Raise TypeError unless `value` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")


def require_number(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a real number of Python or numpy."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__} ({value!r})")


def require_not_negative(name: str, value: float) -> None:
    """Raise TypeError or ValueError unless `value` is a finite number of at least 0."""
    require_number(name, value)
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must not be negative or infinite, got {value}")


def require_dropout(dropout: float) -> None:
    """Raise TypeError or ValueError unless `dropout` is a share below 1."""
    require_number("dropout", dropout)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")


def require_parameter_dtype(dtype: object) -> None:
    """Raise TypeError unless `dtype` is a floating point one, or None for torch's default."""
    if dtype is None or (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        return
    raise TypeError(f"dtype must be a floating point dtype, such as torch.float32, got {dtype!r}")


def require_text(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__} ({value!r})")


def checked_list(name: str, items: Iterable[Item]) -> list[Item]:
    """Return the items of an iterable as a list, or raise TypeError if it is none, or a text."""
    try:
        if isinstance(items, str | bytes):  # its letters are hardly what was meant
            raise TypeError
        return list(items)
    except TypeError:
        raise TypeError(f"{name} must be a list, got {type(items).__name__} ({items!r})") from None


def checked_texts(name: str, texts: Iterable[str]) -> list[str]:
    """Return tokens or labels as a list, or raise unless there is at least one, all strings."""
    if isinstance(texts, str):
        raise TypeError(
            f"{name} must be a list of strings, got one string {texts!r}: did you forget .split()?"
        )
    texts = checked_list(name, texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"{name} must be strings, got {type(text).__name__} at position {i} ({text!r}): "
                "numbers such as token ids must be turned into text first"
            )
    if not texts:
        raise ValueError(f"{name} must hold at least one string, got none")
    return texts


def require_range(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless `value` is a range of neighboring tokens."""
    if not isinstance(value, range):
        raise TypeError(f"{name} must be a range such as range(0, 256), got {value!r}")
    if value.step != 1 or not 0 <= value.start < value.stop:
        raise ValueError(f"{name} must be a range of steps of 1 from 0 or above, got {value}")


def require_divisible(width: int, num_heads: int, name: str = "d_model") -> None:
    """Raise unless `num_heads` equal heads fit into `width`, which the caller calls `name`."""
    require_positive_int(name, width)
    require_positive_int("num_heads", num_heads)
    if width % num_heads:
        raise ValueError(
            f"{name} must be divisible by num_heads, got {name}={width} and "
            f"num_heads={num_heads}: each head takes {name} / num_heads numbers, "
            f"so num_heads may be one of {divisors_of(width)}"
        )


def divisors_of(number: int) -> list[int]:
    """Return the ten smallest divisors of a number, for messages that say what is possible."""
    small = [n for n in range(1, min(math.isqrt(number), 10_000) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})[:10]


def require_sequence(name: str, value: Tensor, width: int, width_name: str = "d_model") -> None:
    """Raise unless `value` is a floating point tensor [B, T, width] with at least one token."""
    require_floating(name, value)
    if value.dim() != 3:
        raise ValueError(
            f"{name} must have shape [B, T, {width}], got {shape_of(value)}: "
            "for one sequence [T, d] add a batch of one with .unsqueeze(0)"
        )
    if value.shape[-1] != width:
        raise ValueError(
            f"{name} must end in {width_name}={width}, got shape {shape_of(value)}: "
            "the last dimension holds a token's numbers"
        )
    require_tokens(name, value)


def require_width(x: Tensor, width: int, parameter: object) -> None:
    """Raise unless `x` is a floating point tensor [..., width] like the module's parameter."""
    require_floating("x", x)
    if x.dim() == 0 or x.shape[-1] != width:
        raise ValueError(
            f"x must end in d_model={width}, got shape {shape_of(x)}: "
            "the last dimension holds a token's numbers"
        )
    require_like_parameter("x", x, parameter)


def require_tokens(name: str, value: Tensor) -> None:
    """Raise ValueError when a sequence [..., T, width] has no token."""
    if value.shape[-2] == 0:
        raise ValueError(f"{name} must hold at least one token, got shape {shape_of(value)}")


def require_like_parameter(name: str, value: Tensor, parameter: object) -> None:
    """Raise unless `value` has the device and dtype of a module's parameter.

    Autocast converts dtypes itself, so under it only the device counts. Quantized and wrapped
    layers may have no tensor to compare with: they check their input themselves.
    """
    if not isinstance(parameter, Tensor):
        return
    kind = value.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        require_same_device(name, value, "the module's weights", parameter)
    else:
        require_like(name, value, "the module's weights", parameter)


def require_like(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Raise unless two tensors have the same dtype and device."""
    if value.dtype != other.dtype:
        raise TypeError(
            f"{name} must have the dtype of {other_name}, got {value.dtype} and {other.dtype}"
        )
    require_same_device(name, value, other_name, other)


def require_same_device(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Raise ValueError unless two tensors are on the same device."""
    if value.device != other.device:
        raise ValueError(
            f"{name} must be on the device of {other_name}, got {value.device} and {other.device}"
        )


def require_boolean_mask(name: str, mask: Tensor, device: torch.device) -> None:
    """Raise unless `mask` is a boolean tensor on `device`."""
    require_tensor(name, mask)
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{name} must be boolean, True = may look, got {mask.dtype}: a mask of ones and zeros "
            "becomes boolean with mask.bool(); numbers to add to the scores are not a mask"
        )
    if mask.device != device:
        raise ValueError(f"{name} must be on {device} like the query, got {mask.device}")
