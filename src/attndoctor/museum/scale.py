"""Exhibits about the scale of the scores."""

import math

from torch import Tensor

from attndoctor.museum._exhibit import room

exhibit = room(__file__)


def score_unscaled(q: Tensor, k: Tensor) -> Tensor:
    """Compare queries with keys by the dot product alone."""
    return q @ k.transpose(-2, -1)  # right: / math.sqrt(d_k)


NO_SCALE = exhibit("no scale", {"score": score_unscaled})


def score_by_d_model(q: Tensor, k: Tensor) -> Tensor:
    """Divide by the root of the whole width."""
    _, h, _, d_k = q.shape
    # right: math.sqrt(d_k)
    return q @ k.transpose(-2, -1) / math.sqrt(h * d_k)


SQRT_D_MODEL = exhibit("sqrt(d_model)", {"score": score_by_d_model})


def score_scaled_twice(q: Tensor, k: Tensor) -> Tensor:
    """Scale the queries, and then the scores as well."""
    q = q / math.sqrt(q.shape[-1])
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # right: once


SCALE_TWICE = exhibit("scale applied twice", {"score": score_scaled_twice})


def score_multiplied(q: Tensor, k: Tensor) -> Tensor:
    """Divide by the reciprocal of the root."""
    scale = q.shape[-1] ** -0.5
    return q @ k.transpose(-2, -1) / scale  # right: * scale


SCALE_UPSIDE_DOWN = exhibit("scale upside down", {"score": score_multiplied})


def score_halved(q: Tensor, k: Tensor) -> Tensor:
    """Divide by d_k to the power of one, halved."""
    d_k = q.shape[-1]
    return q @ k.transpose(-2, -1) / (d_k**1 / 2)  # right: ** (1 / 2)


HALVED = exhibit("d_k ** 1/2", {"score": score_halved})


def score_floored(q: Tensor, k: Tensor) -> Tensor:
    """Divide, and round down."""
    return q @ k.transpose(-2, -1) // math.sqrt(q.shape[-1])  # right: /


FLOORED = exhibit("floor division", {"score": score_floored})


def score_not_yet_scaled(q: Tensor, k: Tensor) -> Tensor:
    """Leave the scale for later."""
    return q @ k.transpose(-2, -1)


def rescale_shares(weights: Tensor, d_k: int) -> Tensor:
    """Scale what the softmax has made of the scores."""
    # right: / math.sqrt(d_k) before the softmax
    return weights / math.sqrt(d_k)


SCALE_AFTER_SOFTMAX = exhibit(
    "scale after the softmax", {"score": score_not_yet_scaled, "rescale": rescale_shares}
)
