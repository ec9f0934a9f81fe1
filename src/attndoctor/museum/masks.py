"""Exhibits about masks: what they mean, where they are applied, and which axes they have."""

import math

import torch
from torch import Tensor

from attndoctor.museum._exhibit import room

exhibit = room(__file__)


def weigh_inverted(scores: Tensor, allowed: Tensor) -> Tensor:
    """Hide what is True."""
    scores = scores.masked_fill(allowed, -math.inf)  # right: ~allowed
    return scores.softmax(-1).nan_to_num(0.0)


INVERTED = exhibit("inverted mask", {"weigh": weigh_inverted}, killed_by="a mask")


def weigh_without_assigning(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill a copy, and go on with the original."""
    # right: scores = ..., or masked_fill_
    scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(-1)


THROWN_AWAY = exhibit("mask thrown away", {"weigh": weigh_without_assigning}, killed_by="a mask")


def weigh_then_mask(scores: Tensor, allowed: Tensor) -> Tensor:
    """Take the softmax of all scores, and delete weights afterward."""
    # right: mask the scores, before the softmax
    return scores.softmax(-1) * allowed


AFTER_SOFTMAX = exhibit("mask after the softmax", {"weigh": weigh_then_mask}, killed_by="a mask")


def weigh_and_renormalize(scores: Tensor, allowed: Tensor) -> Tensor:
    """Take the softmax of all scores, delete weights, rescale the rest."""
    # right: mask the scores, before the softmax
    weights = scores.softmax(-1) * allowed
    return weights / weights.sum(-1, keepdim=True)


RENORMALIZED = exhibit(
    "mask after the softmax, renormalized",
    {"weigh": weigh_and_renormalize},
    killed_by="a forbidden key that shouts",
)


def weigh_added(scores: Tensor, allowed: Tensor) -> Tensor:
    """Add the mask's ones and zeros to the scores."""
    # right: fill forbidden scores with -inf
    return (scores + allowed).softmax(-1)


ADDED = exhibit("0/1 mask added", {"weigh": weigh_added}, killed_by="a mask")


def weigh_filled_with_zero(scores: Tensor, allowed: Tensor) -> Tensor:
    """Set forbidden scores to 0."""
    return scores.masked_fill(~allowed, 0.0).softmax(-1)  # right: -math.inf


FILLED_WITH_ZERO = exhibit(
    "forbidden scores set to 0", {"weigh": weigh_filled_with_zero}, killed_by="a mask"
)


def fit_mask_as_it_is(mask: Tensor, h: int) -> Tensor:
    """Let broadcasting find out what the axes mean."""
    return mask  # right: mask[:, None] for a mask [B, T_q, T_k]


CROSSES = exhibit(
    "mask crosses batch and heads",
    {"fit_mask": fit_mask_as_it_is},
    killed_by="a mask without an axis for heads",
)


def fit_mask_as_triangle(mask: Tensor, h: int) -> Tensor:
    """Do what `is_causal=mask is not None` does."""
    # right: the mask itself
    return torch.ones(mask.shape[-2:], dtype=torch.bool).tril()


TAKEN_FOR_CAUSAL = exhibit(
    "any mask taken for causal", {"fit_mask": fit_mask_as_triangle}, killed_by="a mask"
)


def fit_mask_by_repeating(mask: Tensor, h: int) -> Tensor:
    """Make one mask per head, for scores that are kept as [B h, T_q, T_k]."""
    if mask.dim() == 3:
        # right: mask.repeat_interleave(h, dim=0)
        mask = mask.repeat(h, 1, 1)
        mask = mask.unflatten(0, (-1, h))  # [B h, ...] -> [B, h, ...]
    return mask


REPEATED = exhibit(
    "masks repeated instead of interleaved",
    {"fit_mask": fit_mask_by_repeating},
    killed_by="a mask for each sample",
)


def fit_key_mask_to_queries(key_mask: Tensor) -> Tensor:
    """Forbid padding tokens to look."""
    return key_mask[:, None, :, None]  # right: [:, None, None, :]


PADDING_ON_QUERIES = exhibit(
    "padding on the wrong axis", {"fit_key_mask": fit_key_mask_to_queries}, killed_by="padding"
)
