"""Attention maps of sequences of any length, exact, without ever holding a T_q x T_k tensor.

A map of 64,000 tokens has four billion weights, and a screen a few hundred cells a side. So each
cell stands for a block of queries and a block of keys, and is computed from all their weights: one
pass over the scores, tile by tile, as fused kernels do it (Milakov & Gimelshein 2018; Dao et al.
2022). Picking every n-th token instead, or averaging queries and keys before the softmax, misses
most of what a sharp head looks at.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from attnlib._checks import (
    require_floating,
    require_like,
    require_positive_int,
    require_range,
    require_tokens,
    shape_of,
)
from attnlib.masks import combine_masks

Reduce = Literal["mass", "mean", "sum", "max"]
REDUCTIONS = ("mass", "mean", "sum", "max")
__all__ = ["attention_heatmap", "attention_window", "cell_edges"]

# Scores at a time: 256 x 1024 float32 numbers are 1 MiB and stay in a processor's cache.
STRIP, TILE = 256, 1024
NARROW = 16  # cells narrower than this are summed by a product, which is faster


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
    grid: int = 256,
    reduce: Reduce = "mass",
    causal: bool = False,
    key_mask: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return exact attention maps of at most grid x grid cells, in memory that grows with T alone.

    Args:
        q: queries [B, h, T_q, d_k].
        k: keys [B, h_kv, T_k, d_k]; h / h_kv neighboring heads share one.
        grid: the most cells a side; `cell_edges` says which tokens are in which.
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
        TypeError: not floating point tensors of one dtype, or a key_mask that isn't boolean.
        ValueError: shapes that don't fit, an unknown `reduce`, or `causal` with T_q != T_k.
    """
    scale = _checked(q, k, causal, key_mask, scale)
    require_positive_int("grid", grid)
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce must be one of {list(REDUCTIONS)}, got {reduce!r}")
    (B, h, T_q, _), T_k = q.shape, k.shape[2]
    height, width = math.ceil(T_q / grid), math.ceil(T_k / grid)
    cells = (math.ceil(T_q / height), math.ceil(T_k / width))
    maps = torch.zeros(B, h, *cells, dtype=_precision(q), device=q.device)
    seeing = torch.zeros(B, h, cells[0], dtype=maps.dtype, device=q.device)
    for b, head, keys in _heads(q, k):
        allowed = None if key_mask is None else key_mask[b]
        for start in range(0, T_q, STRIP):
            queries = q[b, head, start : start + STRIP].to(maps.dtype) * scale
            strip, looks = _strip(queries, keys, width, start if causal else None, allowed, reduce)
            rows = torch.arange(start, start + len(strip), device=q.device) // height
            seeing[b, head].index_add_(0, rows, looks.to(maps.dtype))
            if reduce == "max":
                maps[b, head].scatter_reduce_(0, rows[:, None].expand_as(strip), strip, "amax")
            else:
                maps[b, head].index_add_(0, rows, strip)
    if reduce == "mass":
        maps /= seeing.clamp_min(1)[..., None]
    elif reduce == "mean":
        heights, widths = (
            torch.tensor(cell_edges(T, grid), device=q.device).diff() for T in (T_q, T_k)
        )
        maps /= heights[:, None] * widths
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
    scale = _checked(q, k, causal, key_mask, scale)
    _require_within("rows", rows, q.shape[2])
    _require_within("keys", keys, k.shape[2])
    weights = torch.zeros(*q.shape[:2], len(rows), len(keys), dtype=_precision(q), device=q.device)
    for b, head, all_keys in _heads(q, k):
        allowed = None if key_mask is None else key_mask[b]
        for start in range(rows.start, rows.stop, STRIP):
            stop = min(start + STRIP, rows.stop)
            queries = q[b, head, start:stop].to(weights.dtype) * scale
            where = start if causal else None
            total = torch.full((len(queries),), -math.inf, dtype=weights.dtype, device=q.device)
            for tile in _tiles(queries, all_keys, TILE, where, allowed):
                total = torch.logaddexp(total, tile.scores.logsumexp(-1))
            piece = slice(keys.start, keys.stop)
            mine = None if allowed is None else allowed[piece]
            scores = queries @ all_keys[piece].to(queries.dtype).T
            _forbid(scores, keys.start, where, mine)
            found = (scores - total[:, None]).exp().masked_fill(total.isneginf()[:, None], 0.0)
            weights[b, head, start - rows.start : stop - rows.start] = found
    return weights


class _Tile(NamedTuple):
    """Scores [strip, tile] of some queries on the keys from `first` on."""

    scores: Tensor
    first: int


def _strip(
    queries: Tensor, keys: Tensor, width: int, where: int | None, allowed: Tensor | None,
    reduce: Reduce,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return a strip's weights summed (or the largest) by key cells, and which rows may look."""
    cells_a_tile = max(1, TILE // width)
    rows, cells = len(queries), math.ceil(len(keys) / width)
    strip = queries.new_zeros(rows, cells)
    peaks, totals, places = [], [], []
    for scores, first in _tiles(queries, keys, cells_a_tile * width, where, allowed):
        peak = scores.amax(-1, keepdim=True)
        scores.sub_(_finite(peak)).exp_()
        place = slice(first // width, first // width + math.ceil(scores.shape[1] / width))
        if reduce == "max":
            totals.append(scores.sum(-1))
        strip[:, place] = _by_cells(scores, width, reduce)
        peaks.append(peak)
        places.append(place)
    peak = torch.cat(peaks, -1)  # [rows, tiles]
    shares = (peak - _finite(peak.amax(-1, keepdim=True))).exp()
    for share, place in zip(shares.unbind(-1), places, strict=True):
        strip[:, place] *= share[:, None]
    total = (torch.stack(totals, -1) * shares).sum(-1) if totals else strip.sum(-1)
    return strip.div_(total.clamp_min(torch.finfo(total.dtype).tiny)[:, None]), total > 0


def _tiles(
    queries: Tensor, keys: Tensor, size: int, where: int | None, allowed: Tensor | None
) -> Iterator[_Tile]:
    """Give the scores of queries on all keys, tile by tile; each tile overwrites the one before."""
    memory = queries.new_empty(len(queries) * size)
    seen = len(keys) if where is None else min(len(keys), where + len(queries))
    for first in range(0, seen, size):
        piece = keys[first : first + size].to(queries.dtype)
        scores = memory[: len(queries) * len(piece)].view(len(queries), len(piece))
        torch.mm(queries, piece.T, out=scores)
        _forbid(scores, first, where, None if allowed is None else allowed[first : first + size])
        yield _Tile(scores, first)


def _forbid(scores: Tensor, first: int, where: int | None, allowed: Tensor | None) -> None:
    """Set scores on forbidden keys to -inf; `where` is the place of the first query if causal."""
    if allowed is not None:
        scores.masked_fill_(~allowed, -math.inf)
    if where is not None and first + scores.shape[1] > where + 1:
        places = torch.arange(where, where + len(scores), device=scores.device)[:, None]
        columns = torch.arange(first, first + scores.shape[1], device=scores.device)
        scores.masked_fill_(columns > places, -math.inf)


def _finite(peak: Tensor) -> Tensor:
    """Let rows without anything to look at subtract 0: -inf - -inf would be NaN."""
    return peak.masked_fill(peak.isneginf(), 0.0)


def _by_cells(numbers: Tensor, width: int, reduce: Reduce) -> Tensor:
    """Sum (or take the largest of) neighboring columns: [rows, n] -> [rows, ceil(n / width)]."""
    if width == 1:
        return numbers
    rows, n = numbers.shape
    if n % width:  # the last cell is smaller
        numbers = torch.nn.functional.pad(numbers, (0, -n % width))
    if reduce == "max":
        return numbers.view(rows, -1, width).amax(-1)
    if width >= NARROW:
        return numbers.view(rows, -1, width).sum(-1)
    cells = numbers.shape[1] // width
    together = math.gcd(cells, max(1, 64 // width))  # so many cells in one small product
    member = torch.eye(together, dtype=numbers.dtype, device=numbers.device)
    member = member.repeat_interleave(width, 0)  # [together * width, together]
    return (numbers.view(-1, together * width) @ member).view(rows, cells)


def _heads(q: Tensor, k: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    sharing = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        for head in range(q.shape[1]):
            yield b, head, k[b, head // sharing]


def _precision(q: Tensor) -> torch.dtype:
    return torch.promote_types(q.dtype, torch.float32)


def _checked(
    q: Tensor, k: Tensor, causal: bool, key_mask: Tensor | None, scale: float | None
) -> float:
    """Refuse what doesn't fit; return the scale."""
    for name, x in (("q", q), ("k", k)):
        require_floating(name, x)
        if x.dim() != 4:
            raise ValueError(f"{name} must have shape [B, h, T, d_k], got {shape_of(x)}")
        require_tokens(name, x)
    require_like("k", k, "q", q)
    if k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3] or q.shape[1] % k.shape[1]:
        raise ValueError(
            f"k must have the batch and the width of q, and as many heads or a divisor of them, "
            f"got {shape_of(k)} and q {shape_of(q)}"
        )
    combine_masks((*q.shape[:3], k.shape[2]), q.device, key_mask=key_mask)
    if causal and q.shape[2] != k.shape[2]:
        raise ValueError(
            f"causal needs as many queries as keys, got T_q={q.shape[2]} and T_k={k.shape[2]}"
        )
    if scale is None:
        return 1 / math.sqrt(q.shape[3])
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, got {scale!r}")
    return float(scale)


def _require_within(name: str, value: range, T: int) -> None:
    require_range(name, value)
    if value.stop > T:
        raise ValueError(f"{name} must be a range within 0 to {T}, got {value}")
