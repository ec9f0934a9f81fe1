"""Projections that are parameters without a layer: how their shapes are read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from attndoctor.reference import Sizes

# The axes of a matrix cut by head, in the orders in which they are tried: h heads, d_k, d.
_PER_HEAD = {"in": ("hdk", "dhk", "hkd", "khd", "dkh", "kdh"), "out": ("hkd", "dhk", "khd", "hdk")}
_WANTED = {"in": "hkd", "out": "dhk"}


@dataclass(frozen=True)
class Reading:
    """A parameter read as a matrix.

    view: brings it to [out, in], [h, d_k, in] or, of W_o, [out, h, d_k]. out: its width out.
    guessed: whether its shape doesn't tell which axis is which.
    """

    view: Callable[[Tensor], Tensor]
    out: int
    guessed: bool = False


def matrix_as(role: str, shape: tuple[int, ...], sizes: Sizes, turned: bool) -> Reading | None:
    """Read a parameter of this shape as a projection; None if it can't be one.

    Args:
        role: which projection its name says it is.
        shape: [in, out], [out, in] or, cut by head, h, d_k and d in any order.
        sizes: of the module.
        turned: whether a square one is [in, out], used as x @ W.
    """
    d, d_k = sizes.d_model, sizes.d_k
    taken = sizes.all_heads if role == "W_o" else d
    if len(shape) == 2:
        if shape == (taken, taken):
            return Reading(torch.t if turned else _as_it_is, taken, guessed=True)
        if shape[0] == taken:
            return Reading(torch.t, shape[1])
        return Reading(_as_it_is, shape[0]) if shape[1] == taken else None
    if len(shape) != 3:
        return None
    side = "out" if role == "W_o" else "in"
    heads = sizes.num_kv_heads if role in ("W_k", "W_v") else sizes.num_heads
    lengths = {"h": heads, "k": d_k, "d": d}
    for axes in _PER_HEAD[side]:
        if shape == tuple(lengths[axis] for axis in axes):
            order = [axes.index(axis) for axis in _WANTED[side]]
            return Reading(partial(torch.permute, dims=order), d if side == "out" else heads * d_k)
    return None


def bias_fits(numbers: Tensor, width: int, sizes: Sizes) -> bool:
    """Tell whether a parameter may be a bias of this width: [width], [h, d_k] or [h, 1, d_k]."""
    d_k = sizes.d_k
    shapes = ((width,), (width // d_k, d_k), (width // d_k, 1, d_k), (1, width // d_k, d_k))
    return tuple(numbers.shape) in shapes


def _as_it_is(numbers: Tensor) -> Tensor:
    return numbers
