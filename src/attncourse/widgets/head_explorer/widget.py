"""HeadExplorer: what each head looks at, for every number of heads that divides the width."""

import math
from collections.abc import Iterable, Sequence
from typing import Self

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._inputs import FEWER_COLUMNS, require_light, require_within
from attncourse.widgets._origins import departure, said_of
from attncourse.widgets.head_explorer.sources import HeadSource
from attnlib.attention import MultiHeadAttention
from attnlib.checks import checked_list, checked_texts, require_count, require_flag

MOST_TOKENS = 512  # labels of more would make a map wider than anyone scrolls
MOST_WEIGHTS = 2**25  # of all heads; the browser computes them in some seconds
SUMMARY = "Maps of what every head looks at, with a slider over the number of heads."


class HeadExplorer(CourseWidget):
    """All heads as heatmaps, with a slider over the number of heads.

    The browser cuts the columns of q and k into heads and computes every head's weights
    softmax(q_i k_i^T / sqrt(d_k)) itself, so each number of heads is exact, also where no Python
    runs. In a notebook::

        explorer = HeadExplorer(["the", "cat", "sat"], torch.randn(3, 8), torch.randn(3, 8))
        explorer                                                   # show it
        explorer.num_heads = 8                                     # moves the slider
        explorer.observe(lambda change: print(change["new"]), "num_heads")

    Several queries and keys for the same tokens stand in tabs::

        from attncourse.widgets.head_explorer.sources import HeadSource

        HeadExplorer.of_sources(tokens, [
            HeadSource.by_rules(tokens),
            HeadSource.from_module("random", module, x, origin="random (seed 0)"),
        ], token="cat")

    An origin that begins with none of "random", "hand-built", "built by hand" and "as given" claims
    a training: with the number of heads and the mask that the source starts with. Where a reader
    leaves these, the explorer says that nobody trained or built such heads.

    The browser computes anew whenever the slider moves, and a page carries q and k as text. So
    there are limits: 512 tokens; T * d = 262,144 (q and k then weigh 2.8 MB in a page), for all
    tabs together; and T * T * d = 2**25, the weights that d heads of width 1 have. That allows
    512 tokens at d = 64, 362 at d = 256 and 209 at d = 768. Longer sequences are for
    `attnlib.heatmap` and `plot_long_heads`.

    Traits that a reader changes:
        source (int): the chosen tab.
        num_heads (int): into how many heads the d columns are cut.
        causal (bool): whether no query may look to the right.
        to_largest (bool): whether colors run to the largest weight that is shown, not to 1.
        head (int): the enlarged head, 0-based as in `weights[:, head]`.
        pinned (int): a head that stands beside it; -1 for none.
        token (int): the token whose row is shown in all heads.
        sentence (list of str): the reader's own words, at most 16, for tabs that were built by
            rules; none at the start.

    Args:
        tokens: T strings.
        q: projected queries [T, d], all heads side by side.
        k: projected keys [T, d].
        num_heads: the number of heads at the start; the largest of 4, 3, 2, 1 that divides d if
            left out, which it mustn't be where the origin claims a training.
        causal: whether the causal mask is on at the start.
        token: the token whose row is shown at the start, by its place, or by itself where it stands
            once; the last if left out.
        origin: where the weights come from, shown to the reader: "random (seed 0)",
            "hand-built", "trained (seed 3)".

    Raises:
        TypeError, ValueError: an argument isn't as above, q or k hold NaN or infinity, or the
            token isn't there, or twice.
    """

    _esm, _css = browser_files("head_explorer")
    summary = summary_trait(SUMMARY)

    tokens = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    q, k = Numbers(), Numbers()
    T = traitlets.Int(read_only=True).tag(sync=True)
    d = traitlets.Int(read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    sources = traitlets.List(traitlets.Dict(), read_only=True).tag(sync=True)
    source = traitlets.Int(0).tag(sync=True)
    num_heads = traitlets.Int(1).tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)
    to_largest = traitlets.Bool(False).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    pinned = traitlets.Int(-1).tag(sync=True)
    token = traitlets.Int(0).tag(sync=True)
    sentence = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(
        self,
        tokens: Sequence[str],
        q: Tensor,
        k: Tensor,
        *,
        num_heads: int | None = None,
        causal: bool = False,
        token: int | str | None = None,
        origin: str = "as given",
    ) -> None:
        self._start(tokens, [HeadSource("as given", q, k, origin, num_heads)], causal, token)

    @classmethod
    def of_sources(
        cls,
        tokens: Sequence[str],
        sources: Iterable[HeadSource],
        *,
        causal: bool = False,
        token: int | str | None = None,
    ) -> Self:
        """Explore several queries and keys of the same tokens, each in a tab.

        Args:
            tokens: T strings.
            sources: at least one HeadSource; the first is shown at the start.
            causal, token: as for HeadExplorer.

        Raises:
            TypeError, ValueError: as HeadExplorer, for all sources; two sources have one name, or
                one follows rules for other tokens.
        """
        explorer = cls.__new__(cls)  # not by __init__, which takes one q and one k
        explorer._start(tokens, _checked_sources(sources), causal, token)
        return explorer

    @classmethod
    def from_module(
        cls,
        module: MultiHeadAttention,
        x: Tensor,
        tokens: Sequence[str],
        *,
        causal: bool = False,
        token: int | str | None = None,
        origin: str = "as given",
    ) -> Self:
        """Explore the heads of an attnlib attention on one sequence.

        Args:
            module, x: as for `HeadSource.from_module`.
            tokens, causal, token, origin: as for HeadExplorer.

        Raises:
            TypeError, ValueError: as `HeadSource.from_module` and HeadExplorer.
        """
        source = HeadSource.from_module("as given", module, x, origin=origin)
        return cls.of_sources(tokens, [source], causal=causal, token=token)

    def _start(
        self,
        tokens: Sequence[str],
        sources: Sequence[HeadSource],
        causal: bool,
        token: int | str | None,
    ) -> None:
        tokens = checked_texts("tokens", tokens)
        require_flag("causal", causal)
        T = len(tokens)
        q, k, entries = zip(*(source.checked(T, causal) for source in sources), strict=True)
        widths = [entry["d"] for entry in entries]
        width = sum(widths)
        require_light(f"q and k [T={T}, d={width}]", 2 * T * width, FEWER_COLUMNS)
        for d in widths:
            _require_quick(T, d)
        for source, made in zip(sources, q, strict=True):
            if source.rules:
                _require_same_rules(tokens, source, made)
        first = entries[0]
        super().__init__(
            tokens=tokens,
            q=torch.cat([each.flatten() for each in q]),
            k=torch.cat([each.flatten() for each in k]),
            T=T,
            d=first["d"],
            origin=first["origin"],
            sources=list(entries),
            summary=f"{SUMMARY} {said_of(first['origin'], '')}",
            num_heads=first["num_heads"],
            token=_place_of(token, tokens),
            causal=causal,
        )

    def __repr__(self) -> str:
        d = self.sources[self.source]["d"]
        return f"HeadExplorer({self.T} tokens, d={d}, num_heads={self.num_heads})"

    def _shown_tokens(self) -> list[str]:
        own = self.sentence and self.sources[self.source]["rules"]
        return self.sentence if own else self.tokens

    @traitlets.observe("source")
    def _keep_num_heads_possible(self, change: dict) -> None:
        source = self.sources[change["new"]]
        if source["d"] % self.num_heads:
            self.num_heads = source["num_heads"]

    @traitlets.observe("num_heads")
    def _keep_heads_in_range(self, change: dict) -> None:
        self.head = min(self.head, change["new"] - 1)
        if self.pinned >= change["new"]:
            self.pinned = -1

    @traitlets.observe("source", "num_heads", "causal")
    def _say_what_is_shown(self, change: dict) -> None:
        source = self.sources[self.source]
        departs = departure(source, self.num_heads, self.causal)
        self.set_trait("summary", f"{SUMMARY} {said_of(source['origin'], departs)}")

    @traitlets.observe("source", "sentence")
    def _keep_token_in_range(self, change: dict) -> None:
        self.token = min(self.token, len(self._shown_tokens()) - 1)


def _place_of(token: int | str | None, tokens: Sequence[str]) -> int:
    """Return the place of a token that is given by it or by itself, the last if by neither."""
    if token is None:
        return len(tokens) - 1
    if not isinstance(token, str):
        require_count("token", token)
        require_within("token", token, 0, len(tokens) - 1)
        return int(token)
    places = [i for i, other in enumerate(tokens) if other == token]
    if len(places) != 1:
        found = f"stands at {places}: give its place" if places else "isn't among them"
        raise ValueError(f"token must stand once in tokens, got {token!r}, which {found}")
    return places[0]


def _checked_sources(sources: Iterable[HeadSource]) -> list[HeadSource]:
    sources = checked_list("sources", sources)
    for source in sources:
        if not isinstance(source, HeadSource):
            raise TypeError(f"sources must be HeadSources, got {type(source).__name__}")
    if not sources:
        raise ValueError("sources must hold at least one HeadSource, got none")
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise ValueError(f"sources must differ in their names, got {names}")
    return sources


def _require_same_rules(tokens: Sequence[str], source: HeadSource, q: Tensor) -> None:
    if not torch.equal(HeadSource.by_rules(tokens, source.heads).q, q):
        raise ValueError(
            f"sources[{source.name!r}] must be built by rules from the explorer's tokens, got one "
            "made of others"
        )


def _require_quick(T: int, d: int) -> None:
    way = "take a part of the sequence, or draw it whole with attnlib.heatmap and plot_long_heads"
    if T > MOST_TOKENS:
        raise ValueError(f"tokens must be at most {MOST_TOKENS}, got {T}: {way}")
    if T * T * d > MOST_WEIGHTS:
        raise ValueError(
            f"q and k must have T * T * d at most {MOST_WEIGHTS:,}, got T={T} and d={d}: the "
            f"browser computes so many weights for d heads, and {math.isqrt(MOST_WEIGHTS // d)} "
            f"tokens are the most for this d; {way}"
        )
