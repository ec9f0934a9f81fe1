"""Attention maps of sequences of any length, exact, without ever holding a T_q x T_k tensor.

A map of 64,000 tokens has four billion weights, and a screen a few hundred cells a side. So each
cell stands for a block of queries and a block of keys, and is computed from all their weights: one
pass over the scores, tile by tile, as fused kernels do it (Milakov & Gimelshein 2018; Dao et al.
2022). Picking every n-th token instead, or averaging queries and keys before the softmax, misses
most of what a sharp head looks at.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor

from attnlib import _heatmap_checks as checks
from attnlib._checks import require_positive_int

Reduce = Literal["mass", "mean", "sum", "max"]
__all__ = ["attention_heatmap", "attention_window", "cell_edges"]

# Queries and keys at a time. Their 256 x 1024 scores, 1 MiB, stay in a processor's cache.
STRIP, TILE = 256, 1024
LOG2_E = math.log2(math.e)  # exp(x) = exp2(x log2 e), and processors are quicker at powers of two


def cell_edges(T: int, grid: int) -> list[int]:
    """Return where the cells of a map begin and end: at most `grid` of ceil(T / grid) tokens each.

    Example:
        >>> cell_edges(10, 4)
        [0, 3, 6, 9, 10]

    Raises:
        TypeError, ValueError: T or grid is no whole number of at least 1.
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
    reduce: Reduce = "mass",
    causal: bool = False,
    key_mask: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return exact attention maps of at most grid x grid cells, in memory that grows with T alone.

    Args:
        q: queries [B, h, T_q, d_k].
        k: keys [B, h_kv, T_k, d_k]; h / h_kv neighboring heads share one.
        grid: the most cells a side, or (rows, columns); `cell_edges` says which tokens are in
            which.
        reduce: what a cell says of its queries and keys.
            "mass": how much of its attention a query of the cell gives to the keys of the cell, on
            average over those queries that may look anywhere; rows sum to 1 at every T.
            "sum" and "mean": of the weights of all its pairs. "max": the largest of them; at great
            lengths a single sharp row is seen only here.
        causal: forbid every look to the right; needs T_q = T_k.
        key_mask: boolean [B, T_k], True = a real token.
        scale: what scores are multiplied by; 1 / sqrt(d_k) if left out.

    Returns:
        Maps [B, h, cells of queries, cells of keys], float32, or float64 for float64.

    Raises:
        TypeError: not floating point tensors of one dtype, a key_mask that isn't boolean, or
            options of another type.
        ValueError: shapes that don't fit, an unknown `reduce`, `causal` with T_q != T_k, or scores
            that are NaN or infinite (-infinity forbids a look).
    """
    scale = checks.require_inputs(q, k, causal, key_mask, scale)
    grid = checks.require_grid(grid)
    checks.require_reduction(reduce)
    edges = [cell_edges(x.shape[2], cells) for x, cells in zip((q, k), grid, strict=True)]
    height, width = (each[1] for each in edges)
    with torch.autocast(q.device.type, enabled=False):
        options = height, width, causal, key_mask, scale * LOG2_E, reduce == "max"
        maps, seeing = _pooled_on_gpu(q, k, *options) or _pooled(q, k, *options)
    if reduce == "mass":
        maps /= seeing.clamp_min(1)[..., None]
    elif reduce == "mean":
        heights, widths = (torch.tensor(each, device=q.device).diff() for each in edges)
        maps /= heights[:, None] * widths
    checks.require_finite(maps)
    return maps


@torch.no_grad()
def attention_window(
    q: Tensor,
    k: Tensor,
    rows: range,
    keys: range,
    *,
    causal: bool = False,
    key_mask: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return the exact weights of some queries on some keys, out of the whole map.

    Each query is normalized over all keys, so that the window is a piece of the map as it is.

    Args:
        q, k, causal, key_mask, scale: as for `attention_heatmap`.
        rows: the queries, as range(start, stop).
        keys: the keys, likewise.

    Returns:
        Weights [B, h, len(rows), len(keys)].

    Raises:
        TypeError, ValueError: as `attention_heatmap`; ranges that aren't ranges of steps of 1
            within the sequence.
    """
    scale = checks.require_inputs(q, k, causal, key_mask, scale) * LOG2_E
    checks.require_within("rows", rows, q.shape[2])
    checks.require_within("keys", keys, k.shape[2])
    weights = torch.zeros(*q.shape[:2], len(rows), len(keys), dtype=_precision(q), device=q.device)
    with torch.autocast(q.device.type, enabled=False):
        for b, head, all_keys in _heads(q, k):
            allowed = None if key_mask is None else key_mask[b]
            for start in range(rows.start, rows.stop, STRIP):
                stop = min(start + STRIP, rows.stop)
                queries = q[b, head, start:stop].to(weights.dtype) * scale
                where = start if causal else None
                peak, total = _normalizers(queries, all_keys, where, allowed)
                scores = all_keys[keys.start : keys.stop].to(queries.dtype) @ queries.T
                _forbid(scores, keys.start, where, allowed)
                found = scores.sub_(peak).exp2_().div_(total)  # [keys, queries]
                weights[b, head, start - rows.start : stop - rows.start] = found.T
    checks.require_finite(weights)
    return weights


def _pooled_on_gpu(
    q: Tensor, k: Tensor, height: int, width: int, *options: Any
) -> tuple[Tensor, Tensor] | None:
    """Return what `_pooled` returns, if Triton is there and its kernel takes this case."""
    if q.is_cuda and find_spec("triton"):
        from attnlib import _heatmap_triton

        if _heatmap_triton.fits(q, height, width):
            with suppress(_heatmap_triton.OutOfResources):  # of a small GPU
                return _heatmap_triton.pooled(q, k, height, width, *options)
    return None


def _pooled(
    q: Tensor, k: Tensor, height: int, width: int, causal: bool, key_mask: Tensor | None,
    scale: float, largest: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the sum of each cell's weights, or the largest, and how many queries of a row look.

    Args:
        height, width: queries and keys of a cell; the last cells may have fewer.
        scale: of scores that are exponents of 2.

    Returns:
        Maps [B, h, rows, columns], and [B, h, rows].
    """
    cells = [math.ceil(x.shape[2] / size) for x, size in ((q, height), (k, width))]
    maps = torch.zeros(*q.shape[:2], *cells, dtype=_precision(q), device=q.device)
    seeing = maps.new_zeros(maps.shape[:3])
    for b, head, keys in _heads(q, k):
        allowed = None if key_mask is None else key_mask[b]
        for start in range(0, q.shape[2], STRIP):
            queries = q[b, head, start : start + STRIP].to(maps.dtype) * scale
            where = start if causal else None
            strip, looks = _strip(queries, keys, width, where, allowed, largest)
            top, bottom = start // height, (start + len(queries) - 1) // height + 1
            rows = torch.arange(start, start + len(queries), device=q.device) // height
            if largest:
                rows = rows[:, None].expand(-1, cells[1])
                maps[b, head].scatter_reduce_(0, rows, strip.T, "amax")
                continue
            member = rows == torch.arange(top, bottom, device=q.device)[:, None]
            member = member.to(maps.dtype)  # [rows, queries]: a sum by cells is a product
            maps[b, head, top:bottom].addmm_(member, strip.T)
            seeing[b, head, top:bottom] += member @ looks.to(maps.dtype)
    return maps, seeing


def _normalizers(
    queries: Tensor, keys: Tensor, where: int | None, allowed: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return each query's largest score over all keys, and what its weights are divided by."""
    peak = queries.new_full((len(queries),), -math.inf)
    total = queries.new_zeros(len(queries))
    for scores, _ in _tiles(queries, keys, TILE, where, allowed):
        before, peak = peak, torch.maximum(peak, scores.amax(0))
        total *= (before - _finite(peak)).exp2_()
        total += scores.sub_(_finite(peak)).exp2_().sum(0)
    return _finite(peak), total.clamp_min(torch.finfo(total.dtype).tiny)


def _strip(
    queries: Tensor, keys: Tensor, width: int, where: int | None, allowed: Tensor | None,
    largest: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return a strip's weights summed (or the largest) by key cells, and which rows may look.

    Args:
        queries: [rows, d_k], scaled for powers of two.
        keys: [T_k, d_k].

    Returns:
        Weights [cells, rows], and [rows].
    """
    peaks, totals, parts = [], [], []
    for scores, first in _tiles(queries, keys, width, where, allowed):
        peaks.append(scores.amax(0))
        scores.sub_(_finite(peaks[-1])).exp2_()
        parts.append((first // width, _by_cells(scores, width, largest)))
        totals.append(scores.sum(0) if largest else parts[-1][1].sum(0))
    tops = torch.stack(peaks)  # [tiles, rows]
    shares = (tops - _finite(tops.amax(0))).exp2_()
    total = (torch.stack(totals) * shares).sum(0)
    shares /= total.clamp_min(torch.finfo(total.dtype).tiny)
    strip = queries.new_zeros(math.ceil(len(keys) / width), len(queries))
    for share, (cell, part) in zip(shares, parts, strict=True):
        place = strip[cell : cell + len(part)]
        part *= share
        place.copy_(torch.maximum(place, part) if largest else place + part)
    return strip, total > 0


def _tiles(
    queries: Tensor, keys: Tensor, width: int, where: int | None, allowed: Tensor | None
) -> Iterator[tuple[Tensor, int]]:
    """Give the scores of keys for all queries [tile, strip], and the first key of each tile.

    A tile is some whole cells, or a piece of one that is too wide, and overwrites the tile before.
    Keys are the rows here: what is done to a row is done to many queries at once, so cells of a
    single key cost no more than wide ones.
    """
    seen = len(keys) if where is None else min(len(keys), where + len(queries))
    block = max(width, TILE // width * width)  # no tile crosses the end of a block
    memory = queries.new_empty(min(TILE, seen) * len(queries))
    for first, stop in (
        (first, min(first + TILE, start + block, seen))
        for start in range(0, seen, block)
        for first in range(start, min(start + block, seen), TILE)
    ):
        scores = memory[: (stop - first) * len(queries)].view(stop - first, len(queries))
        torch.mm(keys[first:stop].to(queries.dtype), queries.T, out=scores)
        _forbid(scores, first, where, allowed)
        yield scores, first


def _forbid(scores: Tensor, first: int, where: int | None, allowed: Tensor | None) -> None:
    """Set scores [keys, queries] on forbidden keys to -inf.

    Args:
        first: the place of the first key.
        where: the place of the first query if causal.
        allowed: [T_k], True = may look.
    """
    if allowed is not None:
        scores.masked_fill_(~allowed[first : first + len(scores), None], -math.inf)
    if where is not None and first + len(scores) > where + 1:
        queries = torch.arange(where, where + scores.shape[1], device=scores.device)
        later = max(0, where + 1 - first)  # every query may look at the keys before this one
        places = torch.arange(first + later, first + len(scores), device=scores.device)
        scores[later:].masked_fill_(places[:, None] > queries, -math.inf)


def _finite(peak: Tensor) -> Tensor:
    """Let queries without anything to look at subtract 0: -inf - -inf would be NaN."""
    return peak.masked_fill(peak.isneginf(), 0.0)


def _by_cells(numbers: Tensor, width: int, largest: bool) -> Tensor:
    """Sum (or take the largest of) neighboring rows: [n, strip] -> [ceil(n / width), strip]."""
    pool = torch.amax if largest else torch.sum
    whole, rest = divmod(len(numbers), width)
    cells = numbers.new_empty(whole + (rest > 0), numbers.shape[1])
    if whole:
        pool(numbers[: whole * width].unflatten(0, (whole, width)), 1, out=cells[:whole])
    if rest:  # the last cell is smaller
        pool(numbers[-rest:], 0, out=cells[whole])
    return cells


def _heads(q: Tensor, k: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    sharing = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        for head in range(q.shape[1]):
            yield b, head, k[b, head // sharing]


def _precision(q: Tensor) -> torch.dtype:
    return torch.promote_types(q.dtype, torch.float32)
