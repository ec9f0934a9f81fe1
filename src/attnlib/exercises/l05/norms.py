"""The norms in code."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise


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
)


@exercise(mistakes=LAYER_NORM_MISTAKES)
def layer_norm(answer: Callable) -> Verdict:
    """Check a LayerNorm written as a function of (x [..., d], gain [d], bias [d], eps)."""
    return check_function(
        answer,
        _reference_layer_norm,
        _norm_cases(with_bias=True),
        LAYER_NORM_MISTAKES,
        output_names=["the normalized tensor"],
        praise="Equal to torch's layer_norm, also where eps counts.",
    )


def _reference_rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], gain, eps)


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
)


@exercise(mistakes=RMS_NORM_MISTAKES)
def rms_norm(answer: Callable) -> Verdict:
    """Check an RMSNorm written as a function of (x [..., d], gain [d], eps)."""
    return check_function(
        answer,
        _reference_rms_norm,
        _norm_cases(with_bias=False),
        RMS_NORM_MISTAKES,
        output_names=["the normalized tensor"],
        praise="Equal to torch's rms_norm, also where eps counts.",
    )
