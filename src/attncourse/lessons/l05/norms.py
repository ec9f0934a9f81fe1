"""The norms in code."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attncourse.checking.calling import call
from attncourse.checking.exercise import Mistake, exercise
from attncourse.checking.functions import check_function, not_yet
from attndoctor.verdict import Verdict

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


class _ReadyMadeNorms(TorchFunctionMode):
    """Notices whether one of torch's norms is called meanwhile."""

    NAMES = ("layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm")

    called = False

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Run what is called, and look at its name."""
        self.called |= getattr(func, "__name__", "").removeprefix("native_") in self.NAMES
        return func(*args, **(kwargs or {}))


def _check_norm(
    answer: Any,
    reference: Callable,
    mistakes: Sequence[Mistake],
    others: Sequence[Mistake],
    *,
    with_bias: bool,
) -> Verdict:
    """Check a norm, and that it is the reader's own.

    Args:
        others: mistakes in other clothes, with hints that others have.
    """
    cases = _norm_cases(with_bias=with_bias)
    verdict = check_function(
        answer,
        reference,
        cases,
        [*(mistake for mistake in mistakes if mistake.hint not in (KEEPDIM, READY_MADE)), *others],
        output_names=["the normalized tensor"],
        praise=f"Equal to torch's {reference.__name__.removeprefix('_reference_')}, also where eps "
        "counts.",
    )
    if LOST_AXIS in verdict.message:
        return not_yet(KEEPDIM)
    if verdict:
        with _ReadyMadeNorms() as norms:
            call(answer, cases[0])
        if norms.called:
            return not_yet(READY_MADE)
    return verdict


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


def _reference_layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def _standardize(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    variance = x.var(axes, correction=0, keepdim=True)
    return (x - x.mean(axes, keepdim=True)) / (variance + eps).sqrt()


def _centered(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def _layer_norm_without_keepdim(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() * gain + bias


LAYER_NORM_MISTAKES = (
    Mistake(
        "unbiased variance",
        lambda x, gain, bias, eps: (
            _centered(x) / (x.var(-1, keepdim=True) + eps).sqrt() * gain + bias
        ),
        "Your variance divides by d - 1, which is what torch's var and std do unless told. "
        "LayerNorm divides by d: look for the argument `correction` (or take a mean of squares).",
    ),
    Mistake(
        "unbiased variance and eps outside",
        lambda x, gain, bias, eps: _centered(x) / (x.std(-1, keepdim=True) + eps) * gain + bias,
        "Two things at once, both hidden in `x.std(...) + eps`: std divides by d - 1, and eps must "
        "be added before the root is taken.",
    ),
    Mistake(
        "eps outside the root",
        lambda x, gain, bias, eps: (
            _centered(x) / (x.std(-1, correction=0, keepdim=True) + eps) * gain + bias
        ),
        "You add eps to the standard deviation. It belongs to the variance, before the root: for "
        "small tokens the difference is large.",
    ),
    Mistake(
        "no eps",
        lambda x, gain, bias, eps: _reference_layer_norm(x, gain, bias, 0.0),
        "eps isn't used. A token of equal numbers would be 0 divided by 0.",
    ),
    Mistake(
        "divided by the variance",
        lambda x, gain, bias, eps: (
            _centered(x) / (x.var(-1, correction=0, keepdim=True) + eps) * gain + bias
        ),
        "You divide by the variance. The result only has spread 1 after dividing by its root.",
    ),
    Mistake(
        "over the token axis",
        lambda x, gain, bias, eps: _standardize(x, (-2,), eps) * gain + bias,
        "Your mean runs over the tokens, so one token's result depends on its neighbors. "
        "Each token is normalized over its own numbers: the last axis.",
    ),
    Mistake(
        "over the batch axis",
        lambda x, gain, bias, eps: _standardize(x, (0,), eps) * gain + bias,
        "Your mean runs over axis 0, the batch. Each token is normalized over its own numbers.",
    ),
    Mistake(
        "over everything",
        lambda x, gain, bias, eps: _standardize(x, tuple(range(x.dim())), eps) * gain + bias,
        "You take one mean of the whole tensor. Every token needs its own: name the axis, and keep "
        "it with keepdim=True.",
    ),
    Mistake(
        "no gain and bias",
        lambda x, gain, bias, eps: _standardize(x, (-1,), eps),
        "The normalizing is right; gain and bias aren't used yet.",
    ),
    Mistake(
        "no bias",
        lambda x, gain, bias, eps: _standardize(x, (-1,), eps) * gain,
        "Nearly: the gain is there, the bias isn't added.",
    ),
    Mistake(
        "bias before gain",
        lambda x, gain, bias, eps: (_standardize(x, (-1,), eps) + bias) * gain,
        "Gain and bias come in the other order: your bias is multiplied by the gain.",
    ),
    Mistake(
        "no mean subtracted",
        lambda x, gain, bias, eps: F.rms_norm(x, x.shape[-1:], gain, eps) + bias,
        "Nothing is subtracted: this is RMSNorm with a bias. LayerNorm first moves the mean to 0.",
    ),
    Mistake(
        "divided by the rms of the raw token",
        lambda x, gain, bias, eps: (
            _centered(x) / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain + bias
        ),
        "You subtract the mean, but then divide by the root mean square of the raw x. The variance "
        "is the mean square of what is left after subtracting.",
    ),
    Mistake(
        "divided by the length",
        lambda x, gain, bias, eps: F.normalize(_centered(x), dim=-1) * gain + bias,
        "You divide by the length of what is left after subtracting. That is the root of a sum of "
        "squares, and LayerNorm takes the root of their mean; eps isn't used either.",
    ),
    Mistake(
        "std as it is, without eps",
        lambda x, gain, bias, eps: _centered(x) / x.std(-1, keepdim=True) * gain + bias,
        "You divide by `x.std(...)`, which divides by d - 1 unless told (`correction=0`). And eps "
        "isn't used: it belongs under the root.",
    ),
    Mistake(
        "eps fixed",
        lambda x, gain, bias, eps: _reference_layer_norm(x, gain, bias, 1e-5),
        "You wrote a number in place of eps. It is an argument, and may be another one.",
    ),
    Mistake(
        "no gain",
        lambda x, gain, bias, eps: _standardize(x, (-1,), eps) + bias,
        "Nearly: the bias is there, the gain isn't used.",
    ),
    Mistake(
        "gain and bias swapped",
        lambda x, gain, bias, eps: _standardize(x, (-1,), eps) * bias + gain,
        "Gain and bias changed places: the gain multiplies, the bias is added.",
    ),
    Mistake(
        "gain first",
        lambda x, gain, bias, eps: _standardize(x * gain, (-1,), eps) + bias,
        "You multiplied by the gain before normalizing, and the norm takes that away again in "
        "part. Normalize first.",
    ),
    Mistake(
        "turned around",
        lambda x, gain, bias, eps: -_standardize(x, (-1,), eps) * gain + bias,
        "The signs are turned around: take the mean from x, not x from the mean.",
    ),
    Mistake(
        "multiplied",
        lambda x, gain, bias, eps: (
            _centered(x) * (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * gain + bias
        ),
        "You multiply by the standard deviation. Divide: a large spread is to become 1.",
    ),
    Mistake(
        "the mean of everything",
        lambda x, gain, bias, eps: (
            (x - x.mean()) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * gain + bias
        ),
        "The spread is each token's, but the mean that you subtract is that of the whole tensor.",
    ),
    Mistake(
        "the spread of everything",
        lambda x, gain, bias, eps: _centered(x) / (x.var(correction=0) + eps).sqrt() * gain + bias,
        "The mean is each token's, but the spread that you divide by is that of the whole tensor.",
    ),
    Mistake(
        "x not centered",
        lambda x, gain, bias, eps: (
            x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * gain + bias
        ),
        "You divide by the right spread, but what is divided still has its mean: subtract it.",
    ),
    Mistake(
        "the root of a sum",
        lambda x, gain, bias, eps: (
            _centered(x) / (_centered(x).square().sum(-1, keepdim=True) + eps).sqrt() * gain + bias
        ),
        "You take the root of a sum of squares, which grows with the width. The variance is their "
        "mean.",
    ),
    Mistake(
        "mean absolute distance",
        lambda x, gain, bias, eps: (
            _centered(x) / (_centered(x).abs().mean(-1, keepdim=True) + eps) * gain + bias
        ),
        "You divide by the mean distance from the mean. The standard deviation squares the "
        "distances first, and takes the root of their mean.",
    ),
    Mistake("without keepdim", _layer_norm_without_keepdim, KEEPDIM),
    Mistake("ready-made", _reference_layer_norm, READY_MADE),
)


def _in_other_clothes(
    mistakes: Sequence[Mistake], answers: Sequence[tuple[str, Callable]]
) -> list[Mistake]:
    """Return mistakes of these names with other answers, and their hints."""
    named = {mistake.name: mistake for mistake in mistakes}
    return [replace(named[name], answer=answer) for name, answer in answers]


_LAYER_NORM_TOO = _in_other_clothes(
    LAYER_NORM_MISTAKES,
    [
        (
            "over the token axis",
            lambda x, gain, bias, eps: _standardize(x, (1,), eps) * gain + bias,
        ),
        (
            "over everything",
            lambda x, gain, bias, eps: (x - x.mean()) / (x.std() + eps) * gain + bias,
        ),
        (
            "over everything",
            lambda x, gain, bias, eps: (x - x.mean()) / (x.var() + eps).sqrt() * gain + bias,
        ),
        (
            "over everything",
            lambda x, gain, bias, eps: (x - x.mean()) / x.std() * gain + bias,
        ),
        (
            "over everything",
            lambda x, gain, bias, eps: (x - x.mean()) / (x.std(correction=0) + eps) * gain + bias,
        ),
        (
            "the mean of everything",
            lambda x, gain, bias, eps: (
                (x - x.mean()) / (x.var(-1, keepdim=True) + eps).sqrt() * gain + bias
            ),
        ),
        (
            "no mean subtracted",
            lambda x, gain, bias, eps: _reference_rms_norm(x, gain, eps),
        ),
        (
            "divided by the length",
            lambda x, gain, bias, eps: (
                _centered(x) / (_centered(x).norm(dim=-1, keepdim=True) + eps) * gain + bias
            ),
        ),
    ],
)


@exercise(mistakes=LAYER_NORM_MISTAKES)
def layer_norm(answer: Callable) -> Verdict:
    """Check a LayerNorm written as a function of (x [..., d], gain [d], bias [d], eps)."""
    return _check_norm(
        answer, _reference_layer_norm, LAYER_NORM_MISTAKES, _LAYER_NORM_TOO, with_bias=True
    )


def _reference_rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def _mean_square(x: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True)


def _rms_norm_without_keepdim(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(-1) + eps).sqrt() * gain


RMS_NORM_MISTAKES = (
    Mistake(
        "subtracts the mean",
        lambda x, gain, eps: F.layer_norm(x, x.shape[-1:], gain, None, eps),
        "You subtract the mean: that is LayerNorm without its bias. RMSNorm subtracts nothing.",
    ),
    Mistake(
        "divides by the spread",
        lambda x, gain, eps: x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * gain,
        "You divide by the standard deviation, which measures distances from the mean. RMSNorm "
        "knows no mean: square the numbers as they are.",
    ),
    Mistake(
        "no root",
        lambda x, gain, eps: x / (x.square().mean(-1, keepdim=True) + eps) * gain,
        "You divide by the mean square. Doubling x should change nothing; yours halves.",
    ),
    Mistake(
        "divides by the length",
        lambda x, gain, eps: x / (x.square().sum(-1, keepdim=True) + eps).sqrt() * gain,
        "You divide by the vector's length: a sum of squares. With the mean of squares the "
        "numbers stay near 1 however wide the token is.",
    ),
    Mistake(
        "mean before square",
        lambda x, gain, eps: x / (x.mean(-1, keepdim=True).square() + eps).sqrt() * gain,
        "The order is square, mean, root. You take the mean first, where + and - cancel.",
    ),
    Mistake(
        "mean of sizes",
        lambda x, gain, eps: x / (x.abs().mean(-1, keepdim=True) + eps) * gain,
        "You divide by the mean of the absolute values; the root mean square weighs large "
        "numbers more.",
    ),
    Mistake(
        "eps outside the root",
        lambda x, gain, eps: x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * gain,
        "You add eps after the root; it belongs under it.",
    ),
    Mistake(
        "no eps",
        lambda x, gain, eps: _reference_rms_norm(x, gain, 0.0),
        "eps isn't used. A token of zeros would become NaN.",
    ),
    Mistake(
        "no gain",
        lambda x, gain, eps: F.rms_norm(x, x.shape[-1:], None, eps),
        "The normalizing is right; the gain isn't used yet.",
    ),
    Mistake(
        "over the token axis",
        lambda x, gain, eps: x / (x.square().mean(-2, keepdim=True) + eps).sqrt() * gain,
        "Your mean runs over the tokens. Each token is divided by its own size: the last axis.",
    ),
    Mistake(
        "over everything",
        lambda x, gain, eps: x / (x.square().mean() + eps).sqrt() * gain,
        "You divide the whole tensor by one number. Every token has its own root mean square.",
    ),
    Mistake(
        "divided by the length, without eps",
        lambda x, gain, eps: x / x.norm(dim=-1, keepdim=True) * gain,
        "`x.norm` is the length: the root of a sum of squares. RMSNorm takes the root of their "
        "mean, and adds eps under it.",
    ),
    Mistake(
        "divided by the length of everything",
        lambda x, gain, eps: x / x.norm() * gain,
        "`x.norm()` is one length for the whole tensor, and a sum. Every token needs its own root "
        "of a mean, with eps under it: name the axis.",
    ),
    Mistake(
        "centered, divided by the rms of the raw token",
        lambda x, gain, eps: _centered(x) / (_mean_square(x) + eps).sqrt() * gain,
        "You divide by the right number, but the mean was subtracted from x on the way. RMSNorm "
        "divides x as it is.",
    ),
    Mistake(
        "centered over everything",
        lambda x, gain, eps: _reference_rms_norm(x - x.mean(), gain, eps),
        "You subtract the mean of the whole tensor first. RMSNorm subtracts nothing, from nobody.",
    ),
    Mistake(
        "centered and unbiased",
        lambda x, gain, eps: _centered(x) / (x.var(-1, keepdim=True) + eps).sqrt() * gain,
        "You subtract the mean, and divide by torch's var, with its d - 1. RMSNorm does neither: "
        "it is the mean of the squares of x itself.",
    ),
    Mistake(
        "unbiased spread",
        lambda x, gain, eps: x / (x.var(-1, keepdim=True) + eps).sqrt() * gain,
        "You divide by the root of torch's var, which subtracts the mean (and divides by d - 1). "
        "RMSNorm takes the mean of the squares of x itself.",
    ),
    Mistake(
        "std",
        lambda x, gain, eps: x / (x.std(-1, keepdim=True) + eps) * gain,
        "`x.std` measures distances from the mean. RMSNorm knows no mean: square the numbers as "
        "they are, and add eps under the root.",
    ),
    Mistake(
        "divided by the mean",
        lambda x, gain, eps: x / (x.mean(-1, keepdim=True) + eps) * gain,
        "You divide by the mean, in which + and - cancel. Square first, then mean, then root.",
    ),
    Mistake(
        "multiplied",
        lambda x, gain, eps: x * (_mean_square(x) + eps).sqrt() * gain,
        "You multiply by the root mean square. Divide: large tokens are to become smaller.",
    ),
    Mistake(
        "over axis 0",
        lambda x, gain, eps: x / (x.square().mean(0, keepdim=True) + eps).sqrt() * gain,
        "Your mean runs over axis 0, the batch. Each token is divided by its own size: the last "
        "axis.",
    ),
    Mistake(
        "eps fixed",
        lambda x, gain, eps: _reference_rms_norm(x, gain, 1e-5),
        "You wrote a number in place of eps. It is an argument, and may be another one.",
    ),
    Mistake(
        "gain added",
        lambda x, gain, eps: F.rms_norm(x, x.shape[-1:], None, eps) + gain,
        "The gain multiplies; you added it.",
    ),
    Mistake(
        "gain first",
        lambda x, gain, eps: _reference_rms_norm(x * gain, torch.ones_like(gain), eps),
        "You multiplied by the gain before normalizing, and the norm takes that away again in "
        "part. Normalize first.",
    ),
    Mistake(
        "length over d",
        lambda x, gain, eps: x / (x.norm(dim=-1, keepdim=True) / x.shape[-1] + eps) * gain,
        "You divided the length by d. The mean is taken under the root: a length over the root of "
        "d.",
    ),
    Mistake("without keepdim", _rms_norm_without_keepdim, KEEPDIM),
    Mistake("ready-made", _reference_rms_norm, READY_MADE),
)


_RMS_NORM_TOO = _in_other_clothes(
    RMS_NORM_MISTAKES,
    [
        (
            "over the token axis",
            lambda x, gain, eps: x / (x.square().mean(1, keepdim=True) + eps).sqrt() * gain,
        ),
        (
            "subtracts the mean",
            lambda x, gain, eps: _centered(x) / _mean_square(_centered(x)).sqrt() * gain,
        ),
        (
            "subtracts the mean",
            lambda x, gain, eps: _centered(x) / (_mean_square(_centered(x)).sqrt() + eps) * gain,
        ),
        (
            "centered and unbiased",
            lambda x, gain, eps: _centered(x) / (x.std(-1, keepdim=True) + eps) * gain,
        ),
        (
            "std",
            lambda x, gain, eps: x / (x.std(-1, keepdim=True, correction=0) + eps) * gain,
        ),
        (
            "divided by the length, without eps",
            lambda x, gain, eps: x / (x.norm(dim=-1, keepdim=True) + eps) * gain,
        ),
    ],
)


@exercise(mistakes=RMS_NORM_MISTAKES)
def rms_norm(answer: Callable) -> Verdict:
    """Check an RMSNorm written as a function of (x [..., d], gain [d], eps)."""
    return _check_norm(
        answer, _reference_rms_norm, RMS_NORM_MISTAKES, _RMS_NORM_TOO, with_bias=False
    )
