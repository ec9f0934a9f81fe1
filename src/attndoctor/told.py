"""What the reader tells of a candidate, and errors about how it is called."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from torch import nn

from attnlib.attention import MultiHeadAttention
from attnlib.checks import require_flag, require_number, require_positive_int

Load = Callable[[nn.Module, MultiHeadAttention], Any]
Steps = tuple[tuple[str, Any], ...]  # of attention, that replace its own

CHOICES: dict[str, tuple[str, ...]] = {
    "causal": ("always", "when asked"),
    "mask": ("keep", "hide", "add"),
    "key_mask": ("keep", "hide", "add"),
    "mask_shape": ("[T, T]", "[B, T, T]", "[B, 1, T, T]", "[B h, T, T]"),
    "qkv": ("blocks", "heads", "interleaved"),
}


class CallError(TypeError, ValueError):
    """A candidate can't be built, loaded or called in the way that was tried.

    It says nothing about the attention itself; the message has the line that fixes the call.
    """


def said(error: BaseException) -> str:
    """Say an error on one line, without the stop at its end."""
    words = " ".join(str(error).split()).removesuffix(".")
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def some(names: Sequence[str], most: int = 8) -> str:
    """List names, but not too many."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


class Options(TypedDict, total=False):
    """What can be told of a candidate; each is explained at `diagnose`."""

    load: Load | None
    num_heads: int | None
    causal: str | None
    bias: bool | None
    out_projection: bool
    scale: float | Callable[[int], float] | None
    mask: str | None
    key_mask: str | None
    mask_shape: str | None
    qkv: str | None
    batch_first: bool | None
    arguments: Mapping[str, Any] | None
    returns: Callable[[Any], Any] | None


@dataclass(frozen=True)
class Told:
    """The options of `diagnose`, checked; None where nothing was told."""

    load: Load | None = None
    num_heads: int | None = None
    causal: str | None = None
    bias: bool | None = None
    out_projection: bool = True
    scale: float | Callable[[int], float] | None = None
    mask: str | None = None
    key_mask: str | None = None
    mask_shape: str | None = None
    qkv: str | None = None
    batch_first: bool | None = None
    arguments: Mapping[str, Any] | None = field(default=None)
    returns: Callable[[Any], Any] | None = None
    formula: Steps = ()  # another than the paper's; found out, never told
    gradients: bool = True  # whether any flow through it; the same

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
                )
        for name in ("bias", "batch_first"):
            if getattr(self, name) is not None:
                require_flag(name, getattr(self, name))
        require_flag("out_projection", self.out_projection)
        if self.num_heads is not None:
            require_positive_int("num_heads", self.num_heads)
        if self.arguments is not None and not isinstance(self.arguments, Mapping):
            raise TypeError(
                "arguments must be a dict of what forward needs besides, "
                f"got {type(self.arguments).__name__}"
            )
        if self.scale is not None and not callable(self.scale):
            _require_scale("scale", self.scale)
        for name in ("load", "returns"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"{name} must be a function, got {type(value).__name__}")

    def stretched(self, d_k: int) -> float:
        """Return by how much the scale that was told is larger than 1 / sqrt(d_k)."""
        if self.scale is None:
            return 1.0
        try:
            scale = self.scale(d_k) if callable(self.scale) else self.scale
        except Exception as error:
            raise CallError(
                f"scale must be a number or a function of d_k, but scale({d_k}) raised "
                f"{said(error)}"
            ) from error
        _require_scale(f"scale of d_k={d_k}" if callable(self.scale) else "scale", scale)
        return float(scale) * math.sqrt(d_k)


def _require_scale(name: str, scale: object) -> None:
    """Raise TypeError or ValueError unless it is a number above 0."""
    require_number(name, scale)
    assert isinstance(scale, int | float)
    if not 0 < scale < math.inf:
        raise ValueError(
            f"{name} must be a number above 0, by which dot products are multiplied, got {scale!r}"
        )
