"""The options of `diagnose`, and the meaning of errors that a candidate raises."""

import dis
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from attnlib.attention import MultiHeadAttention
from attnlib.checks import require_flag, require_number, require_positive_int

Load = Callable[[nn.Module, MultiHeadAttention], Any]
Steps = tuple[tuple[str, Any], ...]  # that replace steps of the paper's attention

CHOICES: dict[str, tuple[str, ...]] = {
    "causal": ("always", "when asked"),
    "mask": ("keep", "hide", "add"),
    "key_mask": ("keep", "hide", "add"),
    "mask_shape": ("[T, T]", "[B, T, T]", "[B, 1, T, T]", "[B h, T, T]"),
    "qkv": ("blocks", "heads", "interleaved"),
}

_FIRST_SIGN = 15  # seconds without a word; the next sign comes after twice as many
# Errors of code that needs a package, a device or a dtype that a CPU in float32 doesn't offer.
_ENVIRONMENT = re.compile(
    r"\b(cuda|gpus?|nvidia|rocm|xpu|mps|triton|xformers|flash[-_ ]?attn)\b"
    r"|\b(cpu|cuda)' backend|\bon (the )?cpu\b|no available kernel"
    r"|process group has not been initialized"
    r"|\bonly supports? .*(fp16|bf16|float16|bfloat16|half)"
    r"|not implemented for '(half|bfloat16)'",
    re.IGNORECASE,
)
_LONGEST = 10**9  # seconds
# Whose errors are about mistakes of their callers.
_LIBRARIES = {"attnlib", "attndoctor", "attncourse", "torch", "einops"}


class CallError(TypeError, ValueError):
    """A candidate can't be built, loaded or called in the way that was tried.

    It says nothing about the attention itself; the message has the line that fixes the call.
    """


class OutOfTimeError(BaseException):
    """A diagnosis may take no longer; no Exception, so that nothing on the way suppresses it."""


class Clock:
    """How long a diagnosis may take; it says what it is doing, on stderr, if that takes long."""

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None:
            require_number("seconds", seconds)
            if not 0 < seconds <= _LONGEST:
                raise ValueError(
                    f"seconds must be a number above 0, at most {_LONGEST:,}, or None, "
                    f"got {seconds!r:.20}"
                )
        self.seconds, self.doing = seconds, "building it"
        self._start, self._next_sign = time.monotonic(), _FIRST_SIGN

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def spent(self, share: float) -> bool:
        """Return whether this share of the time is over."""
        return self.seconds is not None and self.elapsed > share * self.seconds

    def stop(self) -> None:
        """Set no limit any more."""
        self.seconds = None

    def tick(self) -> None:
        """Raise OutOfTimeError if the time is over; say what is going on if it takes long."""
        if self.spent(1.0):
            raise OutOfTimeError
        if self.elapsed > self._next_sign:
            print(f"diagnose: {self.elapsed:.0f} s so far, {self.doing}", file=sys.stderr)
            self._next_sign *= 2


@dataclass(frozen=True)
class DiagnoseOptions:
    """The options of `diagnose`, checked; None means that the caller left it open.

    The last four are no arguments of `diagnose`, which sets them itself: another formula than the
    paper's; whether gradients flow; whether square raw parameters are used as x @ W; the clock.
    """

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
    arguments: Mapping[str, Any] | None = None
    returns: Callable[[Any], Any] | None = None
    formula: Steps = ()
    gradients: bool = True
    transposed: bool | None = None
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
                )
        flags = [name for name in ("bias", "batch_first") if getattr(self, name) is not None]
        for name in (*flags, "out_projection"):
            require_flag(name, getattr(self, name))
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

    def scale_ratio(self, d_k: int) -> float:
        """Return how many times 1 / sqrt(d_k) the given scale is."""
        if self.scale is None:
            return 1.0
        try:
            scale = self.scale(d_k) if callable(self.scale) else self.scale
        except Exception as error:
            raise CallError(
                f"scale must be a number or a function of d_k, but scale({d_k}) raised "
                f"{error_text(error)}"
            ) from error
        _require_scale(f"scale of d_k={d_k}" if callable(self.scale) else "scale", scale)
        return float(scale) * math.sqrt(d_k)


def _require_scale(name: str, scale: object) -> None:
    require_number(name, scale)
    assert isinstance(scale, int | float)
    if not 0 < scale < math.inf:
        raise ValueError(
            f"{name} must be a number above 0, by which dot products are multiplied, got {scale!r}"
        )


def name_list(names: Sequence[str], most: int = 8) -> str:
    """Join names by commas; count those after the first few."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def error_text(error: BaseException) -> str:
    """Return an error's type and message on one line, without the stop at its end."""
    words = " ".join(str(error).split()).removesuffix(".")
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def is_about_environment(error: object) -> bool:
    """Return whether an error means that a package, a device or a dtype is missing."""
    if isinstance(error, ImportError):
        return True
    return isinstance(error, Exception) and bool(_ENVIRONMENT.search(str(error)))


def is_deliberate(error: object) -> bool:
    """Return whether the candidate's own code raised an error by `raise` or `assert`."""
    where = error.__traceback__ if isinstance(error, Exception) else None
    if where is None:
        return False
    while where.tb_next is not None:
        where = where.tb_next
    code, module = where.tb_frame.f_code, where.tb_frame.f_globals.get("__name__", "")
    on_purpose = dis.opname[code.co_code[where.tb_lasti]] == "RAISE_VARARGS"
    return on_purpose and module.partition(".")[0] not in _LIBRARIES


def note_size(error: Exception, B: int, T: int) -> None:
    """Add to an error with how many samples and tokens it was raised."""
    plural = [f"{n} {what}{'s' if n > 1 else ''}" for n, what in ((B, "sample"), (T, "token"))]
    error.add_note(" of ".join(plural))


def noted_size(error: Exception) -> str:
    """Return what `note_size` added, such as "13 samples of 1 token"."""
    return getattr(error, "__notes__", [""])[-1]
