"""Checked maps of `attnlib.heatmap`, ready to be drawn."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.checks import dense_numbers, require_flag, require_floating, require_range
from attnlib.plotting.weights import one_map_per_head
from attnlib.weight_checks import tolerance_of


@dataclass(frozen=True)
class LongMaps:
    """Maps of one size."""

    shares: Tensor  # of attention, [h, n, m], float64 on the CPU
    rows: range  # tokens, ceil(len / n) in a cell
    keys: range  # tokens, ceil(len / m) in a cell
    fully_masked: Tensor  # [h, n], whether a row's queries may look nowhere
    causal: bool

    @property
    def cell(self) -> tuple[int, int]:
        """The numbers of queries and keys in a cell; the last cells may have fewer."""
        n, m = self.shares.shape[1:]
        return math.ceil(len(self.rows) / n), math.ceil(len(self.keys) / m)

    @property
    def causally_masked(self) -> Tensor:
        """Whether all keys of a cell come after its queries and attention is causal, [n, m]."""
        (n, m), (height, width) = self.shares.shape[1:], self.cell
        last_query = self.rows.start + height * torch.arange(1, n + 1) - 1
        first_key = self.keys.start + width * torch.arange(m)
        return (first_key > last_query[:, None]) & self.causal


def checked_long_maps(maps: Tensor, rows: range, keys: range, causal: bool) -> LongMaps:
    """Return maps ready to be drawn, or raise TypeError or ValueError."""
    require_flag("causal", causal)
    shares = _checked_shares(maps)
    _require_cells("rows", rows, shares.shape[1])
    _require_cells("keys", keys, shares.shape[2])
    found = LongMaps(shares, rows, keys, shares.sum(-1) == 0, causal)
    wrong = (found.causally_masked & (shares != 0)).nonzero().tolist()
    if wrong:
        head, row, column = wrong[0]
        raise ValueError(
            f"causal=True forbids looks that have weight in maps: row {row} of map {head} has "
            f"{shares[head, row, column].item():.4g} in column {column}. "
            "Were maps computed with causal=True?"
        )
    return found


def _checked_shares(maps: Tensor) -> Tensor:
    """Return maps as [h, n, m] in float64 on the CPU, or raise if they can't be attention."""
    require_floating("maps", maps)
    shares = one_map_per_head("maps", dense_numbers("maps", maps), "n, m")
    if not shares.isfinite().all():
        raise ValueError("maps must be finite, got NaN or infinity")
    if shares.min() < 0:
        raise ValueError(
            f"maps must not be negative, got {shares.min().item():.4g}: "
            "were scores passed instead of attention?"
        )
    sums = shares.sum(-1)
    wrong = ((sums - 1).abs() > tolerance_of(maps)) & (sums != 0)
    if wrong.any():
        head, row = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"each row of maps must sum to 1 (or be wholly 0), but row {row} of map {head} sums to "
            f"{sums[head, row].item():.4f}: attention_heatmap makes such maps"
        )
    return shares


def _require_cells(name: str, tokens: range, cells: int) -> None:
    """Raise unless so many cells can hold `tokens`."""
    require_range(name, tokens)
    size = math.ceil(len(tokens) / cells)
    expected = math.ceil(len(tokens) / size)
    if expected != cells:
        raise ValueError(
            f"{name} must be the tokens of {cells} cells, got {tokens}: "
            f"{len(tokens)} tokens, {size} a cell, make {expected} cells"
        )
