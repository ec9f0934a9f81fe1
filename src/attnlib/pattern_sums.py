"""Sums for the scores of heads, which take a map in pieces of some rows each.

`rows` is the range of a piece's rows, `maps` are their weights, float64 [B, h, R, T], and `targets`
are True where a pattern wants weight, bool [B, R, T] (or [R, T] for the whole batch).
"""

import torch
from torch import Tensor


def previous_targets(T: int, rows: range) -> Tensor:
    """Return the targets "the word before", [R, T]."""
    targets = torch.zeros(len(rows), T, dtype=torch.bool)
    targets.diagonal(rows.start - 1).fill_(True)
    return targets


def first_targets(T: int, rows: range) -> Tensor:
    """Return the targets "the first word", for all others, [R, T]."""
    targets = torch.zeros(len(rows), T, dtype=torch.bool)
    targets[max(0, 1 - rows.start) :, 0] = True
    return targets


def same_targets(tokens: Tensor, rows: range, *, causal: bool) -> Tensor:
    """Return the other places of each word of tokens [B, T]; if causal, the earlier ones."""
    own = tokens[:, rows.start : rows.stop]
    targets = own[:, :, None] == tokens[:, None, :]  # [B, R, 1] == [B, 1, T] -> [B, R, T]
    targets.diagonal(rows.start, -2, -1).fill_(False)
    return targets.tril(rows.start) if causal else targets


def partner_pairs(partners: Tensor) -> Tensor:
    """Return partners [B, T] as pairs [B, T, T], True where the column is the row's partner."""
    columns = torch.arange(partners.shape[1], device=partners.device)
    return partners[:, :, None] == columns  # [B, T, 1] == [T] -> [B, T, T]


def follower_targets(tokens: Tensor, rows: range, after: int = 1) -> Tensor:
    """Return what came `after` places after earlier occurrences of each word of tokens [B, T]."""
    own = tokens[:, rows.start : rows.stop]
    targets = torch.zeros(*own.shape, tokens.shape[1], dtype=torch.bool)
    targets[:, :, after:] = own[:, :, None] == tokens[:, None, :-after]
    return targets.tril(rows.start)


class TargetSums:
    """How much weight lies on a pattern's targets, and how many targets lie at each offset."""

    def __init__(self, T: int) -> None:
        self.T = T
        self.rows = 0  # those that have a target
        self._weights: Tensor | float = 0.0
        self._hits = torch.zeros(2 * T - 1, dtype=torch.int64)  # of offsets 1 - T to T - 1

    def add(self, maps: Tensor, targets: Tensor, rows: range) -> None:
        """Add the next rows."""
        self._weights = self._weights + (maps * targets[:, None]).sum((0, 2, 3))
        self.count(targets, rows)

    def count(self, targets: Tensor, rows: range) -> None:
        """Add the targets of the next rows, without weights."""
        self.rows += int(targets.any(-1).sum())
        _, row, column = targets.nonzero(as_tuple=True)
        offsets = column - row - rows.start
        self._hits += (offsets + self.T - 1).bincount(minlength=len(self._hits))

    def means(self) -> Tensor:
        """Return each head's mean over the rows that have a target, float64 [h]."""
        assert isinstance(self._weights, Tensor)
        return self._weights / self.rows

    def baseline(self) -> tuple[int, float]:
        """Return the offset that hits most targets, and the share of rows in which it does.

        Of several, it is the shortest one; of two that are as short, the one to the left.
        """
        hits = dict(zip(range(1 - self.T, self.T), self._hits.tolist(), strict=True))
        best = min(hits, key=lambda offset: (-hits[offset], abs(offset), offset))
        return best, hits[best] / self.rows


class EntropySums:
    """The entropies, in nats, of the rows of real tokens that may look."""

    def __init__(self) -> None:
        self._entropies: Tensor | float = 0.0
        self._rows: Tensor | float = 0.0

    def add(self, maps: Tensor, real: Tensor) -> None:
        """Add the next rows; `real` [B, R] is True for real tokens."""
        entropies = torch.special.entr(maps).sum(-1)  # [B, h, R, T] -> [B, h, R]
        counted = (maps.sum(-1) > 0) & real[:, None]
        self._entropies = self._entropies + (entropies * counted).sum((0, 2))
        self._rows = self._rows + counted.sum((0, 2))

    def means(self) -> Tensor:
        """Return each head's mean, float64 [h], or raise ValueError if one has no row."""
        assert isinstance(self._entropies, Tensor) and isinstance(self._rows, Tensor)
        if not self._rows.all():
            raise ValueError("weights must have a row that may look, in each head, got none")
        return self._entropies / self._rows


class OffsetSums:
    """How much weight lies at each offset from -reach to reach."""

    def __init__(self, reach: int) -> None:
        self.offsets = range(-reach, reach + 1)
        self._weights: Tensor | float = 0.0
        self._rows = torch.zeros(len(self.offsets), dtype=torch.int64)

    def add(self, maps: Tensor, pairs: Tensor, rows: range) -> None:
        """Add the next rows; `pairs` [B, R, T] is True for pairs of real tokens."""
        weights = (maps * pairs[:, None]).sum(0)  # [B, h, R, T] -> [h, R, T]
        found = [weights.diagonal(rows.start + o, -2, -1).sum(-1) for o in self.offsets]
        self._weights = self._weights + torch.stack(found, dim=1)
        counts = [pairs.diagonal(rows.start + o, -2, -1).sum() for o in self.offsets]
        self._rows += torch.stack(counts)

    def means(self) -> Tensor:
        """Return each head's mean at each offset, float64 [h, offsets]; NaN where no row has it."""
        assert isinstance(self._weights, Tensor)
        return self._weights / self._rows
