"""What HeadAtlas reads of an atlas, such as attncourse.atlas makes."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor


class ScoresLike(Protocol):
    """What L layers of h heads score on one pattern; see attncourse.atlas.PatternScores."""

    @property
    def mean(self) -> Tensor:
        """Means over the texts, [L, h]."""

    @property
    def spread(self) -> Tensor:
        """Standard deviations over the texts, [L, h]."""

    @property
    def baseline(self) -> Tensor:
        """What the rule would score, [L, h]."""

    @property
    def rule(self) -> str:
        """The rule in words."""

    @property
    def texts(self) -> int:
        """How many texts have the pattern."""

    @property
    def offsets(self) -> Tensor | None:
        """Each head's offset [L, h], or None."""

    @property
    def rows(self) -> int:
        """How many rows have the pattern."""


@runtime_checkable
class AtlasLike(Protocol):
    """All heads of a model, scored, with maps of one text; see attncourse.atlas.Atlas."""

    @property
    def name(self) -> str:
        """The model's."""

    @property
    def library(self) -> str | None:
        """The package that the model is from, or None."""

    @property
    def layer_names(self) -> tuple[str, ...]:
        """What the model calls its L layers."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The tokens of each text."""

    @property
    def shown(self) -> int:
        """Which of the texts the maps are of."""

    @property
    def causal(self) -> bool:
        """Whether no head ever looked to the right."""

    @property
    def scores(self) -> Mapping[str, ScoresLike]:
        """Scores by pattern."""

    @property
    def maps(self) -> Tensor:
        """Pooled maps of the shown text, [L, h, cells, cells]."""

    @property
    def top_keys(self) -> Tensor:
        """The keys at which each query looks most, [L, h, T, k]; -1 for none."""

    @property
    def top_weights(self) -> Tensor:
        """Their weights, [L, h, T, k]."""

    @property
    def value_norms(self) -> Tensor | None:
        """The lengths of the values, [L, h, T], or None."""
