"""What an atlas holds: scores of all heads over texts, and maps of one text, in O(T) per head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from attndoctor.support.printing import counted
from attnlib.checks import checked_texts, require_positive_int

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Head(NamedTuple):
    """A head and what it scores; layers and heads are counted from 0, as in tensors."""

    layer: int
    head: int
    score: float
    spread: float
    baseline: float


@dataclass(frozen=True, repr=False, eq=False)
class PatternScores:
    """What every head scores on one pattern, over texts, beside what a simple rule would.

    Attributes:
        pattern: its name, a key of `Atlas.scores`.
        mean: over the texts, float64 [L, h].
        spread: standard deviation over the texts, float64 [L, h]; 0 where there is one text.
        baseline: what the rule would score, float64 [L, h].
        rule: the rule in words: "always at offset -3", "evenly".
        texts: how many texts have the pattern.
        offsets: for "best offset", each head's offset, int64 [L, h]: -1 is the token to the left;
            else None.
        rows: how many rows of all texts have the pattern: a score of few rows says little.
    """

    pattern: str
    mean: Tensor
    spread: Tensor
    baseline: Tensor
    rule: str
    texts: int
    offsets: Tensor | None = None
    rows: int = 0

    def best(self, n: int = 5) -> list[Head]:
        """Return the heads with the highest scores, from the best on.

        Of "entropy" they are those with the lowest: the sharpest.

        Raises:
            TypeError, ValueError: n is no whole number of at least 1.
        """
        require_positive_int("n", n)
        order = self.mean.flatten().argsort(descending=self.pattern != "entropy", stable=True)
        heads = [divmod(place, self.mean.shape[1]) for place in order[:n].tolist()]
        return [
            Head(*at, *(float(x[at]) for x in (self.mean, self.spread, self.baseline)))
            for at in heads
        ]

    def __repr__(self) -> str:
        layers, heads = self.mean.shape
        return (
            f"PatternScores({self.pattern!r}, {counted(layers, 'layer')} of "
            f"{counted(heads, 'head')}, {counted(self.texts, 'text')})"
        )


@dataclass(frozen=True, repr=False, eq=False)
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
        maps: exact maps of the shown text, pooled as `attnlib.heatmap` does:
            float32 [L, h, cells, cells], cells at most 64; rows sum to 1, or are wholly 0.
        top_keys: the keys at which each query looks most, from the most on, int32 [L, h, T, k];
            k = min(8, T), and -1 where fewer get any weight.
        top_weights: their weights, float32 [L, h, T, k]; 0 where there is no key.
        value_norms: the length of each token's value row in each head, float32 [L, h, T]; None
            where the model hands out weights alone.
        library: the package that the model is from, "transformers"; None for any other model.
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
    library: str | None = None

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

    def save_html(self, path: str | PathLike[str]) -> None:
        """Write all heads into one HTML file that needs no Python and no network.

        It is what `attncourse.widgets.HeadAtlas` shows.

        Raises:
            ValueError: more than a page can hold; see there.
            OSError: `path` can't be written.
            ImportError: without the extra "widgets".
        """
        from attncourse.widgets import HeadAtlas

        # mypy: the protocol's attributes could be set, those of a frozen class can't.
        HeadAtlas(self).save_html(fspath(path))  # type: ignore[arg-type]

    def best(self, pattern: str, n: int = 5) -> list[Head]:
        """Return the heads that score highest on a pattern; of "entropy", the sharpest.

        Raises:
            TypeError, ValueError: a pattern that isn't among the scores, or n that is no whole
                number of at least 1.
        """
        return self._pattern(pattern).best(n)

    def figure(self, patterns: Sequence[str] | None = None) -> "Figure":
        """Draw all heads as tiles, a table per pattern, on one scale from 0 to 1.

        Entropy is drawn as a share of what looking evenly would have.

        Args:
            patterns: which to draw, in this order; all if left out.

        Returns:
            A figure of `attnlib.plotting.plot_head_atlas`.

        Raises:
            TypeError, ValueError: a pattern that isn't among the scores, or none.
            ImportError: without the extra "plotting".
        """
        from attnlib.plotting import plot_head_atlas

        chosen = list(self.scores) if patterns is None else checked_texts("patterns", patterns)
        panels = {}
        for pattern in chosen:
            scores = self._pattern(pattern)
            if pattern == "entropy":
                panels["entropy, share of even"] = (scores.mean / scores.baseline).clamp(0, 1)
            else:
                panels[pattern] = scores.mean.clamp(0, 1)
        rows = [f"layer {layer + 1}" for layer in range(self.num_layers)]
        return plot_head_atlas(panels, rows, meaning="mean over texts", columns=3)

    def alt_text(self) -> str:
        """Return in words what `figure` shows: for each pattern the best head."""
        said = []
        for pattern, scores in self.scores.items():
            (best,) = scores.best(1)
            kind = "lowest" if pattern == "entropy" else "highest"
            said.append(
                f"{pattern} {kind} in layer {best.layer + 1}, head {best.head + 1}, with "
                f"{best.score:.2f}"
            )
        return (
            f"{counted(len(said), 'table')} of {counted(self.num_layers, 'layer')} by "
            f"{counted(self.num_heads, 'head')}, colored by score: {'; '.join(said)}."
        )

    def _pattern(self, pattern: str) -> PatternScores:
        """Return a pattern's scores, or raise ValueError that says which there are."""
        if pattern not in self.scores:
            known = ", ".join(map(repr, self.scores))
            missing = pattern in ("same token", "induction")
            why = ": no text has a token twice" if missing else ""
            raise ValueError(f"pattern must be one of {known}, got {pattern!r}{why}")
        return self.scores[pattern]

    def __repr__(self) -> str:
        return _table_of(self)


def _table_of(atlas: Atlas) -> str:
    """Return the best three heads of each pattern as a table, beside the baseline."""
    lengths = sorted({len(text) for text in atlas.texts})
    tokens = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
    count = len(atlas.texts)
    lines = [
        f"Atlas of {atlas.name}: {counted(atlas.num_layers, 'layer')} of "
        f"{counted(atlas.num_heads, 'head')}, {counted(count, 'text')} of {tokens} tokens"
        + (", causal" if atlas.causal else ""),
        "Best heads as layer.head, counted from 1"
        + (", with spread over texts" if count > 1 else "")
        + "; then the baseline.",
    ]
    for pattern, scores in atlas.scores.items():
        heads = scores.best(3)
        cells = "".join(_cell(scores, head) for head in heads)
        baselines = sorted({f"{head.baseline:.2f}" for head in heads})
        rule = f"{'/'.join(baselines)} {scores.rule}, {counted(scores.rows, 'row')}"
        lines.append(f"{pattern:15}{cells}  {rule}")
    return "\n".join(lines)


def _cell(scores: PatternScores, head: Head) -> str:
    spread = f" ±{head.spread:.2f}" if scores.texts > 1 else ""
    offset = ""
    if scores.offsets is not None:
        offset = f" at {int(scores.offsets[head.layer, head.head]):+d}"
    return f"  {f'{head.layer + 1}.{head.head + 1}':>5} {head.score:.2f}{spread}{offset}"
