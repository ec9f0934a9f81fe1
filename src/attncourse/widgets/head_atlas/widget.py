"""HeadAtlas: every head of a model on one page, sorted by what it does."""

from collections.abc import Iterable
from pathlib import Path

import traitlets

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._standalone import standalone_page
from attncourse.widgets.head_atlas.atlas_protocol import ShownAtlas
from attncourse.widgets.head_atlas.notes import notes_of
from attncourse.widgets.head_atlas.state import state_of


class HeadAtlas(CourseWidget):
    """All heads of a model as small maps: sorted and filtered by a score, looked at, compared.

    In a notebook::

        atlas = attncourse.atlas.from_model(model, texts)
        widget = HeadAtlas(atlas)
        widget                                     # show it
        widget.head = 4 * atlas.num_heads + 1      # the second head of the fifth layer
        widget.save_html("atlas.html")             # one file, which needs no Python

    The browser holds one text's maps as the atlas pooled them, and of each row the keys of the
    largest weights. Of a map's cell it holds the square root in steps of 1/255, so that a large
    share is right to 0.004 and a small one to less; weights of a row's largest keys are right to
    0.00001.

    A weight times the length of its key's value says more about what is taken over than the weight
    alone (Kobayashi et al. 2020, "Attention is Not Only a Weight", section 3, there with the output
    projection).

    Traits that a reader changes:
        score (int): the score that stands in the tiles, by which they are sorted and left out.
        order (str): "layers", "highest" or "lowest" (score first).
        above (int): 0 for all heads; n for those whose score beats its baseline by more than n - 1
            steps: of 0.05, or of 0.25 where some score beats its baseline by more than 1. Where no
            head beats it, for those that score more than so many steps.
        head (int): the enlarged head, layer * h + head, both from 0.
        pinned (int): a head beside it, counted likewise; -1 for none.
        token (int): the token whose row is shown, 0-based.
        lifted (bool): whether colors go by the square root, so that faint weights are seen.
        valued (bool): whether weights are times the length of each key's value, as shares of 1.

    Args:
        atlas: what `attncourse.atlas.from_model` returns.
        layers: which layers to show, 0-based, in order; all of them if left out.

    Raises:
        TypeError: `atlas` isn't an Atlas.
        ValueError: it lacks the layers, or is more than a page can hold: 1,024 heads, 1,024 tokens,
            10 MB of maps and rows.
    """

    _esm, _css = browser_files("head_atlas")
    summary = summary_trait(
        "A map of every head of a model, to be sorted by what the heads do, and each head's rows."
    )

    name = traitlets.Unicode(read_only=True).tag(sync=True)
    about = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    layers = traitlets.List(traitlets.Int(), read_only=True).tag(sync=True)
    layer_names = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    h = traitlets.Int(read_only=True).tag(sync=True)
    T = traitlets.Int(read_only=True).tag(sync=True)
    cells = traitlets.Int(read_only=True).tag(sync=True)
    k = traitlets.Int(read_only=True).tag(sync=True)
    causal = traitlets.Bool(read_only=True).tag(sync=True)
    patterns = traitlets.List(traitlets.Dict(), read_only=True).tag(sync=True)
    scores = Numbers()
    maps = Numbers("u1")
    top_keys, top_weights = Numbers("<u2"), Numbers("<u2")
    value_norms = Numbers()

    score = traitlets.Int(0).tag(sync=True)
    order = traitlets.Enum(("layers", "highest", "lowest"), "layers").tag(sync=True)
    above = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    pinned = traitlets.Int(-1).tag(sync=True)
    token = traitlets.Int(0).tag(sync=True)
    lifted = traitlets.Bool(False).tag(sync=True)
    valued = traitlets.Bool(False).tag(sync=True)

    def __init__(self, atlas: ShownAtlas, *, layers: Iterable[int] | None = None) -> None:
        state = state_of(atlas, layers)
        self._atlas = atlas
        # In a cell of many tokens a weight that belongs to one of them alone is faint.
        start = {"token": len(state["tokens"]) - 1, "lifted": state["T"] > state["cells"]}
        super().__init__(**state, **start)

    def save_html(self, path: str | Path) -> None:
        """Write this atlas, as it stands, into one HTML file that needs no Python and no network.

        Opened from a folder or sent by mail, it does what the widget does. 144 heads and 512 tokens
        take less than 5 MB.

        Raises:
            OSError: `path` can't be written.
        """
        title = f"Atlas of heads: {self.name}"
        page = standalone_page(self, title=title, notes=notes_of(self._atlas))
        Path(path).write_text(page, encoding="utf-8", newline="\n")

    def __repr__(self) -> str:
        return f"HeadAtlas({self.name!r}, {len(self.layers)} x {self.h} heads, {self.T} tokens)"
