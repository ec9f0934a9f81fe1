"""Exhibits about rows that may look nowhere, and about numbers that stand for minus infinity."""

import math

import torch
from torch import Tensor

from attndoctor.museum._exhibit import room

exhibit = room(__file__)


def weigh_without_care(scores: Tensor, allowed: Tensor) -> Tensor:
    """Take the softmax of -inf, -inf, -inf."""
    # right: 0 where nothing is allowed
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


NAN_ROWS = exhibit(
    "NaN rows", {"weigh": weigh_without_care}, killed_by="a row that may look nowhere"
)


def weigh_and_repair(scores: Tensor, allowed: Tensor) -> Tensor:
    """Add -inf to forbidden scores, and replace NaN by 0 once it is there."""
    penalty = torch.zeros_like(scores).masked_fill(~allowed, -math.inf)
    weights = (scores + penalty).softmax(-1)
    # right: keep -inf out of such rows before the softmax
    return weights.nan_to_num(0.0)


NAN_GRADIENTS = exhibit(
    "NaN only in the gradient", {"weigh": weigh_and_repair}, killed_by="gradients of such a row"
)


def weigh_with_finite_minimum(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill with the lowest number that there is."""
    # right: -math.inf, and 0 for rows without any key
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, lowest).softmax(-1)


FINITE_MINIMUM = exhibit(
    "a finite minimum",
    {"weigh": weigh_with_finite_minimum},
    killed_by="a row that may look nowhere",
)


def weigh_with_minus_1e9(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill with a number that half precision doesn't have."""
    fully_masked = ~allowed.any(-1, keepdim=True)
    # right: -math.inf
    scores = scores.masked_fill(~(allowed | fully_masked), -1e9)
    return scores.softmax(-1).masked_fill(fully_masked, 0.0)


MINUS_1E9_IN_HALF = exhibit(
    "-1e9 in half precision", {"weigh": weigh_with_minus_1e9}, killed_by="half precision"
)
