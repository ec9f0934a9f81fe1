"""The norms in code."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.checking import CheckResult, Mistake, check_function, exercise, read_mistakes
from attncourse.checking.calling import Watch, call
from attncourse.checking.functions import not_yet

# torch's words where a mean has lost its axis; all sizes of the cases differ, so it always says so
LOST_AXIS = "must match the size of tensor"

KEEPDIM = (
    "A mean over the last axis drops that axis, and then tokens and means no longer line up. "
    "keepdim=True keeps it, with length 1, so that each token meets its own mean."
)
READY_MADE = (
    "The numbers are right, but a ready-made norm made them. Build it from means and roots: the "
    "point is to see that there is nothing else in it."
)
TORCHS_OWN = ("layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm")


def _check_norm(
    answer: Any, reference: Callable, mistakes: Sequence[Mistake], *, with_bias: bool
) -> CheckResult:
    """Check a norm, and that it is the reader's own."""
    cases = _norm_cases(with_bias=with_bias)
    praise = (
        f"Equal to torch's {reference.__name__.removesuffix('_of_torch')}, even where eps matters."
    )
    result = check_function(
        answer, reference, cases, mistakes, output_names=["the normalized tensor"], praise=praise
    )
    if LOST_AXIS in result.message:
        return not_yet(KEEPDIM)
    if result:
        with Watch() as watch:
            call(answer, cases[0])
        if any(name.removeprefix("native_") in TORCHS_OWN for name in watch.names):
            return not_yet(READY_MADE)
    return result


def _norm_cases(*, with_bias: bool) -> list[tuple]:
    """Random tokens [B, T, d] with B, T, d different; the last ones so small that eps is seen."""
    generator = torch.Generator().manual_seed(0)
    cases = []
    for shape, size, eps in (((2, 3, 5), 1.0, 1e-5), ((4, 7), 30.0, 1e-5), ((3, 2, 6), 0.1, 0.1)):
        x = size * (torch.randn(shape, generator=generator, dtype=torch.float64) + 1)
        parameters = [torch.randn(shape[-1], generator=generator, dtype=torch.float64)]
        if with_bias:
            parameters.append(torch.randn(shape[-1], generator=generator, dtype=torch.float64))
        cases.append((x, *parameters, eps))
    return cases


def layer_norm_of_torch(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Return torch's LayerNorm of the last axis."""
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def rms_norm_of_torch(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Return torch's RMSNorm of the last axis."""
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def centered(x: Tensor) -> Tensor:
    """Subtract each token's mean."""
    return x - x.mean(-1, keepdim=True)


def standardized(x: Tensor, axes: int | tuple[int, ...], eps: float) -> Tensor:
    """Bring mean and variance over some axes to 0 and 1."""
    variance = x.var(axes, correction=0, keepdim=True)
    return (x - x.mean(axes, keepdim=True)) / (variance + eps).sqrt()


def _layer_norm_without_keepdim(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() * gain + bias


def _rms_norm_without_keepdim(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(-1) + eps).sqrt() * gain


LAYER_NORM_MISTAKES = read_mistakes("layer_norm", globals())
RMS_NORM_MISTAKES = read_mistakes("rms_norm", globals())


@exercise(
    mistakes=(
        *LAYER_NORM_MISTAKES,
        Mistake(_layer_norm_without_keepdim, KEEPDIM),
        Mistake(layer_norm_of_torch, READY_MADE),
    )
)
def layer_norm(answer: object) -> CheckResult:
    """Check a LayerNorm written as a function of (x [..., d], gain [d], bias [d], eps)."""
    return _check_norm(answer, layer_norm_of_torch, LAYER_NORM_MISTAKES, with_bias=True)


@exercise(
    mistakes=(
        *RMS_NORM_MISTAKES,
        Mistake(_rms_norm_without_keepdim, KEEPDIM),
        Mistake(rms_norm_of_torch, READY_MADE),
    )
)
def rms_norm(answer: object) -> CheckResult:
    """Check an RMSNorm written as a function of (x [..., d], gain [d], eps)."""
    return _check_norm(answer, rms_norm_of_torch, RMS_NORM_MISTAKES, with_bias=False)
