"""What an atlas holds: every head's scores over all texts, and one text's maps, in O(T) per head."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


class Head(NamedTuple):
    """A head with its score: `layer` and `head` count from 0."""

    layer: int
    head: int
    score: float


@dataclass(frozen=True, repr=False)
class PatternScores:
    """What every head scores on one pattern, over texts, beside what a dumb rule would.

    Attributes:
        pattern: its name, a key of `Atlas.scores`.
        mean: over the texts, float64 [L, h].
        spread: standard deviation over the texts, float64 [L, h]; 0 where there is one text.
        baseline: what the rule would score, float64 [L, h].
        rule: the rule in words: "always at offset -3", "evenly".
        texts: how many texts have the pattern.
        offsets: for "best offset", each head's offset, int64 [L, h]: -1 is the token to the left;
            else None.
    """

    pattern: str
    mean: Tensor
    spread: Tensor
    baseline: Tensor
    rule: str
    texts: int
    offsets: Tensor | None = None


@dataclass(frozen=True, repr=False)
class Atlas:
    """Every head of a model, scored on texts, with what pictures of one text need.

    L layers, h heads, T tokens of the text that is shown.

    Attributes:
        name: of the model.
        layer_names: what the model calls each layer's attention, L of them.
        texts: the tokens of each text, as readable strings.
        shown: which of the texts the maps below are of.
        causal: whether no head ever looked to the right.
        scores: by pattern, in this order: "previous token", "first token", "same token",
            "induction", "best offset", "entropy". A pattern that no text has isn't among them
            ("same token" and "induction" where no token comes twice).
        maps: exact maps of the shown text, pooled as `attnlib.heatmap` does with reduce="mass":
            float32 [L, h, cells, cells], cells at most 64; rows sum to 1, or are wholly 0.
        top_keys: the keys at which each query looks most, from the most on, int32 [L, h, T, k];
            k = min(8, T), and -1 where fewer get any weight.
        top_weights: their weights, float32 [L, h, T, k]; 0 where there is no key.
        value_norms: the length of each token's value row in each head, float32 [L, h, T]; None
            where the model hands out weights alone.
    """

    name: str
    layer_names: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    shown: int
    causal: bool
    scores: Mapping[str, PatternScores]
    maps: Tensor
    top_keys: Tensor
    top_weights: Tensor
    value_norms: Tensor | None

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the text that is shown, T of them."""
        return self.texts[self.shown]

    @property
    def num_layers(self) -> int:
        """How many layers: L."""
        return self.maps.shape[0]

    @property
    def num_heads(self) -> int:
        """How many heads each layer has: h."""
        return self.maps.shape[1]
