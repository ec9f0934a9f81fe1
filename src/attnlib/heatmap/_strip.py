"""A strip of queries against all keys of their head: scores tile by tile, then weights."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

# Queries and keys at a time. Their 256 x 1024 scores, 1 MiB, stay in a CPU's cache.
STRIP, TILE = 256, 1024


@dataclass(frozen=True)
class Strip:
    """Neighboring queries of one head, all its keys, and which of them may be looked at.

    queries: [rows, d_k], scaled so that the scores are exponents of 2.
    keys: [T_k, d_k].
    start: position of the first query in the sequence.
    causal: forbid every look to the right.
    allowed: boolean [T_k], True = may be looked at; None for all.
    """

    queries: Tensor
    keys: Tensor
    start: int
    causal: bool
    allowed: Tensor | None

    def by_cells(self, width: int) -> tuple[Tensor, Tensor]:
        """Add up the weights by cells of `width` keys.

        Returns the sums [cells, rows], and which rows may look, boolean [rows].
        """
        peaks, totals, parts = [], [], []
        for scores, first in self._tiles(width):
            peaks.append(scores.amax(0))
            scores.sub_(_finite(peaks[-1])).exp2_()
            parts.append((first // width, _sum_rows(scores, width)))
            totals.append(parts[-1][1].sum(0))
        tops = torch.stack(peaks)  # [tiles, rows]
        shares = (tops - _finite(tops.amax(0))).exp2_()
        total = (torch.stack(totals) * shares).sum(0)
        shares /= total.clamp_min(torch.finfo(total.dtype).tiny)
        cells = self.queries.new_zeros(math.ceil(len(self.keys) / width), len(self.queries))
        for share, (cell, part) in zip(shares, parts, strict=True):
            cells[cell : cell + len(part)] += part * share
        return cells, total > 0

    def _tiles(self, width: int) -> Iterator[tuple[Tensor, int]]:
        """Yield the scores of a tile of keys for all queries [tile, rows], and its first key.

        A tile is some whole cells, or a piece of one that is too wide. It overwrites the tile
        before. Keys are the rows, so that cells of a single key cost no more than wide ones.
        """
        queries, keys = self.queries, self.keys
        seen = min(len(keys), self.start + len(queries)) if self.causal else len(keys)
        block = max(width, TILE // width * width)  # no tile crosses the end of a block
        memory = queries.new_empty(min(TILE, seen) * len(queries))
        for start in range(0, seen, block):
            end = min(start + block, seen)
            for first in range(start, end, TILE):
                tile = keys[first : min(first + TILE, end)]
                scores = memory[: len(tile) * len(queries)].view(len(tile), len(queries))
                torch.mm(tile.to(queries.dtype), queries.T, out=scores)
                self._forbid(scores, first)
                yield scores, first

    def _forbid(self, scores: Tensor, first: int) -> None:
        """Set the scores [keys, rows] of forbidden keys, counted from `first`, to -inf."""
        if self.allowed is not None:
            scores.masked_fill_(~self.allowed[first : first + len(scores), None], -math.inf)
        if self.causal and first + len(scores) > self.start + 1:
            stop = self.start + scores.shape[1]
            queries = torch.arange(self.start, stop, device=scores.device)
            later = max(0, self.start + 1 - first)  # all may look at the keys before this one
            places = torch.arange(first + later, first + len(scores), device=scores.device)
            scores[later:].masked_fill_(places[:, None] > queries, -math.inf)


def _finite(peak: Tensor) -> Tensor:
    """Replace the peak of queries that may look nowhere by 0, as -inf - -inf would be NaN."""
    return peak.masked_fill(peak.isneginf(), 0.0)


def _sum_rows(numbers: Tensor, width: int) -> Tensor:
    """Add up neighboring rows: [n, strip] -> [ceil(n / width), strip]."""
    whole, rest = divmod(len(numbers), width)
    cells = numbers.new_empty(whole + (rest > 0), numbers.shape[1])
    if whole:
        torch.sum(numbers[: whole * width].unflatten(0, (whole, width)), 1, out=cells[:whole])
    if rest:  # the last cell is smaller
        torch.sum(numbers[-rest:], 0, out=cells[whole])
    return cells
