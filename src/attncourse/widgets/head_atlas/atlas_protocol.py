"""What HeadAtlas reads of an atlas: an `attncourse.atlas.Atlas` has all of it."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor


class ShownScores(Protocol):
    """What every head scores on one pattern; `attncourse.atlas.PatternScores` says what each is."""

    mean: Tensor  # [L, h], as are the next two
    spread: Tensor
    baseline: Tensor
    rule: str
    texts: int
    rows: int
    offsets: Tensor | None  # [L, h]


@runtime_checkable
class ShownAtlas(Protocol):
    """Scores of all heads, and maps of one text; `attncourse.atlas.Atlas` says what each is."""

    name: str
    layer_names: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    tokens: tuple[str, ...]
    shown: int
    causal: bool
    scores: Mapping[str, ShownScores]
    maps: Tensor  # [L, h, cells, cells]
    top_keys: Tensor  # [L, h, T, k], as are their weights
    top_weights: Tensor
    value_norms: Tensor | None  # [L, h, T]
    library: str | None
