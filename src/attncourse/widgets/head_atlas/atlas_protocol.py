"""What HeadAtlas reads of an atlas: an `attncourse.atlas.Atlas` has all of it."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor


class ShownScores(Protocol):
    """What every head scores on one pattern."""

    @property
    def mean(self) -> Tensor:
        """Over the texts, [L, h]."""

    @property
    def spread(self) -> Tensor:
        """Standard deviation over the texts, [L, h]."""

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
    def rows(self) -> int:
        """How many rows of all texts have it."""

    @property
    def offsets(self) -> Tensor | None:
        """Each head's best offset, [L, h], if it has one."""


@runtime_checkable
class ShownAtlas(Protocol):
    """Scores of all heads over texts, and maps of one text."""

    @property
    def name(self) -> str:
        """Of the model."""

    @property
    def layer_names(self) -> tuple[str, ...]:
        """What the model calls each of L layers."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The tokens of each text."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """Those of the text that is shown, T of them."""

    @property
    def shown(self) -> int:
        """Which text that is."""

    @property
    def causal(self) -> bool:
        """Whether no head looked to the right."""

    @property
    def scores(self) -> Mapping[str, ShownScores]:
        """By pattern."""

    @property
    def maps(self) -> Tensor:
        """Pooled maps of the shown text, [L, h, cells, cells]."""

    @property
    def top_keys(self) -> Tensor:
        """Where each query looks most, [L, h, T, k]; -1 for none."""

    @property
    def top_weights(self) -> Tensor:
        """Their weights, [L, h, T, k]."""

    @property
    def value_norms(self) -> Tensor | None:
        """The length of each value, [L, h, T], if known."""

    @property
    def library(self) -> str | None:
        """The package that the model is from, if known."""
