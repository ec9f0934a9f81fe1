"""Exact attention maps of sequences of any length, without ever holding a T_q x T_k tensor.

A map of 64,000 tokens has four billion weights, but a screen shows a few hundred cells a side. So
each cell stands for a block of queries and a block of keys, and is computed from all their weights
in one pass over the scores, tile by tile, as in fused kernels (Milakov & Gimelshein 2018; Dao et
al. 2022). Taking every n-th token, or averaging queries and keys before the softmax, would miss
most of what a sharp head looks at.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from attnlib.checks import require_positive_int
from attnlib.heatmap import _checks as checks
from attnlib.heatmap._strip import STRIP, Strip

__all__ = ["attention_heatmap", "cell_edges"]

LOG2_E = math.log2(math.e)  # exp(x) = exp2(x log2 e), and powers of two are quicker


def cell_edges(T: int, grid: int) -> list[int]:
    """Return the edges of at most `grid` cells of ceil(T / grid) tokens each.

    Example:
        >>> cell_edges(10, 4)
        [0, 3, 6, 9, 10]

    Raises:
        TypeError, ValueError: T or grid isn't a whole number of at least 1.
    """
    require_positive_int("T", T)
    require_positive_int("grid", grid)
    return [*range(0, T, math.ceil(T / grid)), T]


@torch.no_grad()
def attention_heatmap(
    q: Tensor,
    k: Tensor,
    *,
    grid: int | tuple[int, int] = 256,
    causal: bool = False,
    key_mask: Tensor | None = None,
) -> Tensor:
    """Return exact attention maps of at most grid x grid cells, in memory linear in T.

    A cell shows how much of its attention a query of the cell gives to the cell's keys, on average
    over the queries that may look anywhere. So rows sum to 1, or are 0.

    Args:
        q: queries [B, h, T_q, d_k].
        k: keys [B, h_kv, T_k, d_k]; h / h_kv neighboring heads share one.
        grid: the most cells a side, or (rows, columns); `cell_edges` returns their tokens.
        causal: forbid every look to the right; needs T_q = T_k.
        key_mask: boolean [B, T_k], True = a real token.

    Returns:
        Maps [B, h, cells of queries, cells of keys], float32, or float64 for float64.

    Raises:
        TypeError: not floating point tensors of one dtype, a key_mask that isn't boolean, or
            options of another type.
        ValueError: shapes that don't fit, `causal` with T_q != T_k, or scores that are NaN or
            +infinity.
    """
    checks.require_inputs(q, k, causal, key_mask)
    rows, columns = checks.require_grid(grid)
    height, width = cell_edges(q.shape[2], rows)[1], cell_edges(k.shape[2], columns)[1]
    with torch.autocast(q.device.type, enabled=False):
        options = height, width, causal, key_mask, _scale(q)
        maps, attending = _pooled_on_gpu(q, k, *options) or _pooled(q, k, *options)
    maps /= attending.clamp_min(1)[..., None]
    checks.require_finite(maps)
    return maps


def _pooled_on_gpu(
    q: Tensor, k: Tensor, height: int, width: int, *options: Any
) -> tuple[Tensor, Tensor] | None:
    """Return what `_pooled` returns, or None if there is no Triton or its kernel doesn't fit."""
    if q.is_cuda and find_spec("triton"):
        from attnlib.heatmap import _triton

        if _triton.fits(q, height, width):
            with suppress(_triton.OutOfResources):  # of a small GPU
                return _triton.pooled(q, k, height, width, *options)
    return None


def _pooled(
    q: Tensor, k: Tensor, height: int, width: int, causal: bool, key_mask: Tensor | None,
    scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Add up the weights of cells of height x width pairs; count each row's queries that may look.

    Returns the sums [B, h, rows, columns] and the counts [B, h, rows].
    """
    cells = [math.ceil(x.shape[2] / size) for x, size in ((q, height), (k, width))]
    maps = torch.zeros(*q.shape[:2], *cells, dtype=_precision(q), device=q.device)
    attending = maps.new_zeros(maps.shape[:3])
    for b, head, keys in _heads(q, k):
        allowed = None if key_mask is None else key_mask[b]
        for start in range(0, q.shape[2], STRIP):
            queries = q[b, head, start : start + STRIP].to(maps.dtype) * scale
            strip = Strip(queries, keys, start, causal, allowed)
            shares, may_attend = strip.by_cells(width)
            top, bottom = start // height, (start + len(queries) - 1) // height + 1
            rows = torch.arange(start, start + len(queries), device=q.device) // height
            member = rows == torch.arange(top, bottom, device=q.device)[:, None]
            member = member.to(maps.dtype)  # [rows, queries]: a sum by cells is a product
            maps[b, head, top:bottom].addmm_(member, shares.T)
            attending[b, head, top:bottom] += member @ may_attend.to(maps.dtype)
    return maps, attending


def _heads(q: Tensor, k: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    sharing = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        for head in range(q.shape[1]):
            yield b, head, k[b, head // sharing]


def _scale(q: Tensor) -> float:
    """Return what scores are multiplied by, as exponents of 2."""
    return LOG2_E / math.sqrt(q.shape[-1])


def _precision(q: Tensor) -> torch.dtype:
    return torch.promote_types(q.dtype, torch.float32)
