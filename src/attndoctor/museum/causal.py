"""Exhibits about who stands to the left of whom."""

import torch
from torch import Tensor

from attndoctor.museum._exhibit import room

exhibit = room(__file__)


def triangle_turned(T_q: int, T_k: int) -> Tensor:
    """Allow the upper triangle."""
    # right: .tril
    return torch.ones(T_q, T_k, dtype=torch.bool).triu(T_k - T_q)


TURNED = exhibit("causal triangle turned around", {"triangle": triangle_turned}, killed_by="causal")


def triangle_without_diagonal(T_q: int, T_k: int) -> Tensor:
    """Allow what stands to the left."""
    # right: no - 1
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q - 1)


NO_DIAGONAL = exhibit(
    "causal mask hides the token itself",
    {"triangle": triangle_without_diagonal},
    killed_by="causal",
)


def triangle_with_the_next(T_q: int, T_k: int) -> Tensor:
    """Allow one diagonal more."""
    # right: no + 1
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q + 1)


PEEKS_AHEAD = exhibit(
    "causal mask peeks one ahead", {"triangle": triangle_with_the_next}, killed_by="causal"
)


def triangle_top_left(T_q: int, T_k: int) -> Tensor:
    """Align the triangle with the first key."""
    # right: .tril(T_k - T_q)
    return torch.ones(T_q, T_k, dtype=torch.bool).tril()


TOP_LEFT = exhibit(
    "causal mask ignores the cache", {"triangle": triangle_top_left}, killed_by="a cache"
)


def first_mask_alone(masks: list[Tensor]) -> Tensor | None:
    """Choose one mask: `if mask is not None: ... elif causal: ...`."""
    # right: all of them, joined by &
    return masks[0] if masks else None


NOT_CAUSAL = exhibit(
    "a mask switches causality off", {"combine": first_mask_alone}, killed_by="limits together"
)
