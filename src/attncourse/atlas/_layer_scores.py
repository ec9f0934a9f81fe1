"""Scores of one text in one layer, from rows of weights that come block by block.

O(T) numbers per head are kept: sums for the scores and, of the text that is shown, its picture.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attncourse.atlas._picture import Picture, PictureView
from attnlib.checks import shape_of
from attnlib.pattern_sums import (
    EntropySums,
    OffsetSums,
    TargetSums,
    first_targets,
    follower_targets,
    previous_targets,
    same_targets,
)
from attnlib.weight_checks import require_attention

REACH = 8  # offsets that are tried, to either side
AT_ONCE = 2**22  # weights of a block of rows: 16 MiB in single precision


def block_of_rows(heads: int, T: int) -> int:
    """Return how many rows of a layer are read together."""
    return max(1, AT_ONCE // (heads * T))


@dataclass(frozen=True)
class Layer:
    """What one text showed of one layer; dicts are by pattern."""

    name: str  # what the model calls its attention
    scores: dict[str, Tensor]  # float64 [h]; "same token" twice, once of earlier places only
    baselines: dict[str, tuple[int, float]]  # of patterns with targets: best offset and its share
    rows: dict[str, int]  # how many rows have the pattern
    by_offset: Tensor  # the weight at each offset from -reach to reach, float64 [h, offsets]
    attends_forward: bool  # whether any weight lay right of the diagonal
    picture: Picture | None  # of the text that is shown


class LayerView:
    """A layer of a text: give `add` its rows, from the first on, then call `layer`.

    The text has these ids, int64 [T]; `pictured` if it is the one that is shown.
    """

    def __init__(self, name: str, ids: Tensor, pictured: bool) -> None:
        T = len(ids)
        self.name, self.T = name, T
        self._ids = ids[None]
        self._seen = 0  # rows
        self._sums = defaultdict[str, TargetSums](lambda: TargetSums(T))  # by pattern
        self._entropies = EntropySums()
        self._offsets = OffsetSums(min(REACH, T // 2))
        self._attends_forward = False
        self._pictured = pictured
        self._picture: PictureView | None = None

    def add(self, weights: Tensor) -> None:
        """Look at the next rows, [h, R, T], or raise unless they are attention of T tokens."""
        if weights.dim() != 3 or weights.shape[-1] != self.T:
            raise ValueError(
                f"weights of {self.name} must be [h, rows, T={self.T}], got {shape_of(weights)}"
            )
        try:
            maps = require_attention(weights)[None]  # [h, R, T] -> [1, h, R, T]
        except (TypeError, ValueError) as error:
            raise type(error)(f"layer {self.name}: {error}") from None
        rows = range(self._seen, self._seen + maps.shape[2])
        if rows.stop > self.T:
            raise ValueError(f"{self.name} must have {self.T} rows of weights, got {rows.stop}")
        for name, targets in self._targets(rows).items():
            self._sums[name].add(maps, targets, rows)
        self._entropies.add(maps, torch.ones(1, len(rows), dtype=torch.bool))
        self._offsets.add(maps, torch.ones(1, len(rows), self.T, dtype=torch.bool), rows)
        self._attends_forward |= bool(maps.triu(rows.start + 1).any())
        if self._pictured:
            self._picture = self._picture or PictureView(maps.shape[1], self.T)
            self._picture.add(maps[0], rows)
        self._seen = rows.stop

    def layer(self, values: Tensor | None = None) -> Layer:
        """Return what was seen; h / h_kv neighboring heads share value rows [h_kv, T, d_v]."""
        if self._seen != self.T:
            raise ValueError(f"{self.name} must have {self.T} rows of weights, got {self._seen}")
        try:
            entropies = self._entropies.means()
        except ValueError as error:
            raise ValueError(f"layer {self.name}: {error}") from None
        found = {name: sums for name, sums in self._sums.items() if sums.rows}
        scores = {name: sums.means() for name, sums in found.items()}
        return Layer(
            self.name,
            scores | {"entropy": entropies},
            {name: sums.baseline() for name, sums in found.items()},
            {name: sums.rows for name, sums in found.items()},
            self._offsets.means(),
            self._attends_forward,
            None if self._picture is None else self._picture.picture(values),
        )

    def _targets(self, rows: range) -> dict[str, Tensor]:
        return {
            "previous token": previous_targets(self.T, rows)[None],
            "first token": first_targets(self.T, rows)[None],
            "same token": same_targets(self._ids, rows, causal=False),
            "same token before": same_targets(self._ids, rows, causal=True),
            "induction": follower_targets(self._ids, rows),
        }


class TextView:
    """A text that a model reads, layer after layer; `advance` is called after each."""

    def __init__(self, ids: Tensor, pictured: bool, advance: Callable[[], object]) -> None:
        self.layers: list[Layer] = []  # that were seen so far
        self.T = len(ids)
        self._ids, self._pictured, self._advance = ids, pictured, advance

    def begin(self, name: str) -> LayerView:
        """Begin to look at the next layer."""
        return LayerView(name, self._ids, self._pictured)

    def end(self, view: LayerView, values: Tensor | None = None) -> None:
        """Finish the layer; `values` as for `LayerView.layer`."""
        self.layers.append(view.layer(values))
        self._advance()

    def whole(self, name: str, weights: Any, values: Tensor | None = None) -> None:
        """Look at a layer whose weights [1, h, T, T] are at hand."""
        if not isinstance(weights, Tensor):
            raise TypeError(f"{name} must be a tensor of weights, got {type(weights).__name__}")
        fits = weights.dim() == 4 and len(weights) == 1 and weights.shape[2:] == (self.T, self.T)
        if not fits or weights.shape[1] == 0:
            raise ValueError(
                f"{name} must have weights [1, h, T={self.T}, T={self.T}] for a text of "
                f"{self.T} tokens, got {shape_of(weights)}"
            )
        view = self.begin(name)
        for block in weights[0].split(block_of_rows(weights.shape[1], self.T), dim=1):
            view.add(block)
        self.end(view, values)
