"""The attention to compare with, attnlib's, and when two answers agree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attndoctor.museum.steps import SteppedAttention
from attndoctor.options import error_text
from attnlib.attention import MultiHeadAttention

PROJECTIONS = ("W_q", "W_k", "W_v", "W_o")
Attention = TypeVar("Attention", bound=MultiHeadAttention)

Pair = tuple[Tensor | None, Tensor | None]  # an output and its weights; None: not compared
Results = Sequence[Pair]
Answer = Results | Exception
NEAR = 0.05  # lets through what leaks when minus infinity is replaced by too high a number


@dataclass(frozen=True)
class Sizes:
    """Sizes of a module, and its dropout; head_dim is 0 where it is d_model / num_heads."""

    d_model: int
    num_heads: int
    num_kv_heads: int
    dropout: float = 0.0
    head_dim: int = 0

    @property
    def d_k(self) -> int:
        """Width of one head."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def all_heads(self) -> int:
        """Width of all heads together, the output of W_q and the input of W_o."""
        return self.num_heads * self.d_k


@dataclass(frozen=True)
class Setting:
    """The setting that a candidate's module and the reference share.

    biases: the projections that add one. always_causal: every probe runs causally.
    mask_replaces: a mask replaces the triangle of an always causal module. out_projection: whether
    there is a W_o; without one it is the identity.
    """

    sizes: Sizes
    biases: frozenset[str] = frozenset(PROJECTIONS)
    always_causal: bool = False
    mask_replaces: bool = False
    out_projection: bool = True


def _built(kind: type[Attention], setting: Setting, **options: Any) -> Attention:
    sizes = setting.sizes
    kv_heads, dropout = sizes.num_kv_heads, sizes.dropout
    module = kind(sizes.d_model, sizes.num_heads, num_kv_heads=kv_heads, dropout=dropout, **options)
    if sizes.head_dim:
        d, wide, narrow = sizes.d_model, sizes.all_heads, sizes.num_kv_heads * sizes.d_k
        module.W_q, module.W_k, module.W_v = (nn.Linear(d, out) for out in (wide, narrow, narrow))
        module.W_o = nn.Linear(wide, d if setting.out_projection else wide)
        module.reset_parameters()
    return module


@lru_cache(maxsize=64)
def reference(setting: Setting) -> MultiHeadAttention:
    """Return the right module, with random biases, so that a forgotten one shows."""
    torch.manual_seed(0)
    module = _built(MultiHeadAttention, setting)
    with torch.no_grad():
        for name in PROJECTIONS:
            bias = getattr(module, name).bias
            nn.init.normal_(bias)
            if name not in setting.biases:
                bias.zero_()
        if not setting.out_projection:
            nn.init.eye_(module.W_o.weight)
            module.W_o.bias.zero_()
    return module.eval()


@lru_cache(maxsize=64)
def _in_steps(setting: Setting) -> SteppedAttention:
    module = _built(SteppedAttention, setting, steps={})
    module.load_state_dict(reference(setting).state_dict())
    return module.eval()


def stepped(setting: Setting, steps: dict[str, Any]) -> SteppedAttention:
    """Return the reference with some steps replaced; valid until the next call."""
    module = _in_steps(setting)
    module.steps = steps
    return module


def agree(given: Answer, other: Answer, tolerance: float) -> bool:
    """Return whether two answers are the same; weights count where both have them."""
    if isinstance(given, Exception) or isinstance(other, Exception):
        return type(given) is type(other)
    return all(_same(a, b, tolerance) for a, b in zip(given, other, strict=True))


def side_by_side(given: Answer, right: Answer) -> list[tuple[Pair, Pair]]:
    """Return what is given, each beside what is right; nothing if one is an error."""
    if isinstance(given, Exception) or isinstance(right, Exception):
        return []
    return list(zip(given, right, strict=True))


def parts_agree(given: Answer, other: Answer, tolerance: float, part: int = 0) -> bool:
    """Return whether two answers are the same in outputs alone or, as part 1, in weights alone."""
    pairs = side_by_side(given, other)
    return bool(pairs) and all(_same((a[part],), (b[part],), tolerance) for a, b in pairs)


def have_one_shape(ours: Tensor | None, theirs: Tensor | None) -> bool:
    """Return whether two tensors have the same shape, as far as both are there."""
    return ours is None or theirs is None or ours.shape == theirs.shape


def differences(given: Answer, right: Answer) -> Tensor:
    """Return all differences between the outputs of two answers; infinity if one has none."""
    pairs = side_by_side(given, right)
    gaps = [
        (a - b).abs().flatten()
        for (a, _), (b, _) in pairs
        if a is not None and b is not None and a.shape == b.shape
    ]
    complete = gaps and len(gaps) == len(pairs)
    return torch.cat(gaps).nan_to_num(math.inf) if complete else torch.tensor([math.inf])


def is_near(given: Answer, right: Answer) -> bool:
    """Return whether three outputs of four are near, as where a little leaks through."""
    gaps = differences(given, right)
    return gaps.kthvalue(1 + round(0.75 * (len(gaps) - 1))).values.item() < NEAR


def difference(given: Answer, right: Answer, tolerance: float, of: str) -> str:
    """Return what an answer (an output, or a gradient) has instead of the right one."""
    assert not isinstance(right, Exception)
    if isinstance(given, Exception):
        return f"it raises {error_text(given)}."
    for ours, theirs in zip(given, right, strict=True):
        pairs = zip((of, "the weights"), ours, theirs, strict=True)
        for name, a, b in reversed(list(pairs)):  # weights say more
            if a is None or b is None or _same((a,), (b,), tolerance):
                continue
            return _describe(name, a, b)
    raise ValueError("no difference: both agree")


def _same(left: Sequence[Tensor | None], right: Sequence[Tensor | None], tolerance: float) -> bool:
    for ours, theirs in zip(left, right, strict=True):
        if ours is None or theirs is None:
            continue
        if ours.shape != theirs.shape:
            return False
        if ours.dtype != theirs.dtype:  # weights may be float32 in half precision
            ours, theirs = ours.double(), theirs.double()
        if not _close(ours, theirs, tolerance):
            return False
    return True


def _close(ours: Tensor, theirs: Tensor, tolerance: float) -> bool:
    # The largest difference settles most cases, in a tenth of the time.
    if ours.numel() and (ours - theirs).abs().amax() <= tolerance:
        return True
    return torch.allclose(ours, theirs, atol=tolerance, rtol=tolerance, equal_nan=True)


def _describe(name: str, ours: Tensor, theirs: Tensor) -> str:
    ours, theirs = ours.double(), theirs.double()
    plural = name == "the weights"
    if ours.shape != theirs.shape:
        have = "have" if plural else "has"
        return f"{name} {have} shape {list(ours.shape)} instead of {list(theirs.shape)}."
    if ours.isnan().any() and not theirs.isnan().any():
        return f"{name} {'hold' if plural else 'holds'} NaN."
    sums = ours.sum(-1)
    if plural and not torch.allclose(sums, theirs.sum(-1), atol=1e-3):
        low, high = f"{sums.min():.3g}", f"{sums.max():.3g}"
        between = f"to {low}" if low == high else f"to between {low} and {high}"
        return f"rows of the weights sum {between}."
    largest = (ours - theirs).abs().max().item()
    return f"{name} {'differ' if plural else 'differs'} by up to {largest:.3g}."
