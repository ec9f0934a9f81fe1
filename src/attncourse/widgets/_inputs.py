"""Check what widgets are given, and turn tensors into bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnlib.attention import MultiHeadAttention
from attnlib.checks import require_drawable, require_floating, require_like, shape_of
from attnlib.model import TransformerModel
from attnlib.positions import RotaryPositions

# float32 numbers that a widget may hold. In a page each is 5.3 letters of base64.
MOST_NUMBERS = 2**19
FEWER_COLUMNS = "take a part of the sequence, or some heads' columns of q and k"
LARGEST_NUMBER = 1000.0  # where each number is written out


def require_one_of(name: str, value: object, offered: Sequence[object]) -> None:
    """Raise ValueError unless a value is one of those that a reader can choose."""
    if value not in offered:
        raise ValueError(f"{name} must be one of {list(offered)}, got {value!r}")


def require_within(name: str, value: float, low: int, high: int) -> None:
    """Raise ValueError unless a number is from `low` to `high`."""
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}, got {value}")


def checked_numbers(name: str, value: Tensor) -> Tensor:
    """Return a floating point tensor as float32 on the CPU, or raise if a number isn't finite."""
    require_floating(name, value)
    require_drawable(name, value)
    numbers = value.detach().to("cpu", torch.float32).resolve_neg()
    wrong = (~torch.isfinite(numbers)).nonzero().tolist()
    if wrong:
        place = tuple(wrong[0])
        raise ValueError(
            f"{name} must be finite (as float32), got {value[place].item()} at {list(place)}"
        )
    return numbers


def moderate_numbers(name: str, value: Tensor) -> Tensor:
    """Return a float32 copy on the CPU, or raise unless the numbers are finite and moderate."""
    numbers = checked_numbers(name, value).clone()
    if numbers.numel() and numbers.abs().max() > LARGEST_NUMBER:
        raise ValueError(
            f"{name} must hold numbers from -{LARGEST_NUMBER:.0f} to {LARGEST_NUMBER:.0f}, "
            f"got {numbers.flatten()[numbers.abs().argmax()].item():g}: larger ones can't be read"
        )
    return numbers


def checked_queries_and_keys(q: Tensor, k: Tensor, T: int) -> tuple[Tensor, Tensor]:
    """Return q and k of T tokens as float32 [T, d] on the CPU, or raise if they can't be."""
    for name, value in (("q", q), ("k", k)):
        require_floating(name, value)
        if value.dim() != 2:
            raise ValueError(
                f"{name} must have shape [T, d], got {shape_of(value)}: all heads side by side, "
                "one sequence; a batch [B, T, d] is shown one by one"
            )
        if value.shape[1] == 0:
            raise ValueError(f"{name} must hold at least one number a token, got {shape_of(value)}")
        if value.shape[0] != T:
            raise ValueError(
                f"{name} must have one row a token, got shape {shape_of(value)} and {T} tokens"
            )
    if k.shape != q.shape:
        raise ValueError(
            f"k must have the shape of q, got {shape_of(k)} and q {shape_of(q)}: "
            "a score is the dot product of a query and a key"
        )
    return checked_numbers("q", q), checked_numbers("k", k)


def checked_rows(module: MultiHeadAttention, x: Tensor, otherwise: str) -> Tensor:
    """Return a module's input, [T, d] or [1, T, d], as one sequence [T, d], or raise.

    The error says what to do `otherwise`, with a module that isn't attnlib's.
    """
    if not isinstance(module, MultiHeadAttention):
        raise TypeError(
            f"module must be an attnlib MultiHeadAttention, got {type(module).__name__}: "
            f"for another module {otherwise}"
        )
    require_floating("x", x)
    require_like("x", x, "the module's weights", module.W_q.weight)
    d = module.d_model
    rows = x[0] if x.dim() == 3 and len(x) == 1 else x
    if rows.dim() != 2 or rows.shape[-1] != d:
        raise ValueError(
            f"x must have shape [T, {d}] or [1, T, {d}], got {shape_of(x)}: "
            "the widget shows one sequence"
        )
    return rows


def require_same_output(found: Tensor, output: Tensor, otherwise: str) -> None:
    """Raise ValueError unless a module's output is what was found, up to rounding.

    The error says what to do `otherwise`, with the largest difference in place of {}.
    """
    gap = (found - output).abs().max().item()
    if not gap <= torch.finfo(output.dtype).eps ** 0.5 * (1 + output.abs().max().item()):
        raise ValueError(otherwise.format(f"{gap:.3g}"))


def require_light(what: str, numbers: int, way: str) -> None:
    """Raise ValueError if so many numbers would make a page heavy, or slow in the browser.

    The error says `what` holds them, with its size, and another `way`.
    """
    if numbers > MOST_NUMBERS:
        raise ValueError(
            f"{what} must hold at most {MOST_NUMBERS:,} numbers, got {numbers:,}: a page carries "
            f"them as text, {MOST_NUMBERS * 4 * 4 / 3 / 1e6:.1f} MB at most; {way}"
        )


def spec_of_one_block(model: TransformerModel, wanted: str) -> dict[str, Any]:
    """Return the `spec` of an attnlib model of one block without rotary positions, or raise.

    The error says what is `wanted`.
    """
    if type(model) is not TransformerModel:  # another class may compute something else
        raise TypeError(
            f"model must be an attnlib TransformerModel, got {type(model).__name__}: {wanted}"
        )
    for part in model.modules():
        if isinstance(part, RotaryPositions):
            raise ValueError(f"model must have no rotary positions, got {part}: {wanted}")
    try:
        spec = model.spec()
    except TypeError as error:
        raise TypeError(f"model can't be written down: {error}; {wanted}") from None
    if len(spec["blocks"]) != 1:
        raise ValueError(f"model must have one block, got {len(spec['blocks'])}: {wanted}")
    return spec


def float32_bytes(numbers: Tensor) -> bytes:
    """Return numbers row by row as little-endian float32, from any device and dtype."""
    return numbers.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4").tobytes()


def from_float32_bytes(value: memoryview, shape: tuple[int, ...]) -> Tensor:
    """Return little-endian float32 numbers, as a browser sends them, as a tensor of this shape."""
    numbers = np.frombuffer(value, dtype="<f4").astype(np.float32)
    return torch.from_numpy(numbers.reshape(shape))
