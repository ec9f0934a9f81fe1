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


def require_long_maps(
    name: str, maps: Tensor, rows: range, keys: range, *, prefix: str = "", window: bool,
    causal: bool,
) -> LongMaps:  # fmt: skip
    """Return maps ready to be drawn, or raise TypeError or ValueError.

    Maps are the caller's argument `name`; rows and keys are called so after `prefix`.
    """
    require_flag("window", window)
    require_flag("causal", causal)
    shares = _require_shares(name, maps, window)
    for axis, tokens, cells in (("rows", rows, shares.shape[1]), ("keys", keys, shares.shape[2])):
        _require_cells(prefix + axis, tokens, cells, window)
    # A query without weight in a window may look elsewhere.
    fully_masked = (shares.sum(-1) == 0) & (not window)
    found = LongMaps(shares, rows, keys, fully_masked, causal)
    wrong = (found.causally_masked & (shares != 0)).nonzero().tolist()
    if wrong:
        head, row, column = wrong[0]
        raise ValueError(
            f"causal=True forbids looks that have weight in {name}: row {row} of map {head} has "
            f"{shares[head, row, column].item():.4g} in column {column}. "
            f"Was {name} computed with causal=True?"
        )
    return found


def _require_shares(name: str, maps: Tensor, window: bool) -> Tensor:
    """Return maps as [h, n, m] in float64 on the CPU, or raise if they can't be attention."""
    require_floating(name, maps)
    shares = one_map_per_head(name, dense_numbers(name, maps), "n, m")
    if not shares.isfinite().all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if shares.min() < 0:
        raise ValueError(
            f"{name} must not be negative, got {shares.min().item():.4g}: "
            "were scores passed instead of attention?"
        )
    sums = shares.sum(-1)
    wrong = sums > 1 + tolerance_of(maps)
    wanted, cause = "1 or less", "was it computed by attention_window?"
    if not window:
        wrong |= (sums < 1 - tolerance_of(maps)) & (sums != 0)
        wanted = "1 (or be wholly 0)"
        cause = "attention_heatmap makes such maps; is it a window (window=True)?"
    if wrong.any():
        head, row = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"each row of {name} must sum to {wanted}, but row {row} of map {head} sums to "
            f"{sums[head, row].item():.4f}: {cause}"
        )
    return shares


def _require_cells(name: str, tokens: range, cells: int, window: bool) -> None:
    """Raise unless so many cells can hold `tokens`."""
    require_range(name, tokens)
    size = 1 if window else math.ceil(len(tokens) / cells)
    expected = math.ceil(len(tokens) / size)
    if expected != cells:
        raise ValueError(
            f"{name} must be the tokens of {cells} cells, got {tokens}: "
            f"{len(tokens)} tokens, {size} a cell, make {expected} cells"
        )
