"""HeadLab: a slider over the number of heads, and a model that trains while one watches."""

from collections.abc import Sequence

import anywidget
import traitlets

from attnlib._checks import require_count
from attnlib.model import TransformerModel
from attnlib.relations import concord
from attnlib.training import RECIPES
from attnlib.widgets._base import set_fixed, summary_trait
from attnlib.widgets._browser_code import browser_code, style_sheet

COUNTS = [1, 2, 4, 8, 16]
MOST_SEEDS = 1000  # what a reader can tell apart
HELD_OUT = 300  # sentences; the browser is asked about them again and again while it trains
SENTENCE = "the big king gave a very strange sister their nephew ."


class HeadLab(anywidget.AnyWidget):
    """A small model learns the language Concord in the reader's browser, with 1 to 16 heads.

    The reader chooses a number of heads and presses Train. Loss, right answers and every head's
    weights move while the model learns. Afterwards it answers the reader's own sentences, with all
    heads or with some of them muted. Model and training are `RECIPES["concord"]`; the browser
    begins with other random weights than torch, so its numbers are its own. In a notebook::

        widget = HeadLab(num_heads=2)
        widget                                     # show it
        widget.trained = True                      # press Train
        widget.muted = [0]                         # heads are counted from 0
        widget.observe(lambda change: print(change["new"]), "num_heads")

    Traits that a reader changes:
        num_heads (int): 1, 2, 4, 8 or 16.
        seed (int): which first weights and sentences the training draws, 0 to 999.
        trained (bool): whether models are trained as soon as they are chosen.
        sentence (str): the sentence that is shown, one of Concord.
        head (int): the head that is enlarged, 0-based; of those that the model has, the nearest.
        muted (list of int): heads that are left out, 0-based, in order.

    Traits that are fixed: counts (list of int), held_out (int), and spec and recipe (dict), which
    say what model is trained, and how.

    Args:
        num_heads, seed, sentence, muted: at the start.

    Raises:
        TypeError: a number that isn't one; a sentence that isn't text.
        ValueError, traitlets.TraitError: another number of heads; a seed that's too large; words
            that are no sentence of the language, with what may stand there; a head that no model
            has.
    """

    _esm = browser_code("head_lab.js")
    _css = style_sheet("head_lab.css")
    summary = summary_trait(
        "A small model is trained in the browser with 1, 2, 4, 8 or 16 heads; one sees its loss, "
        "which answers it gets right, and where each head looks."
    )

    counts = traitlets.List(traitlets.Int(), COUNTS, read_only=True).tag(sync=True)
    held_out = traitlets.Int(HELD_OUT, read_only=True).tag(sync=True)
    spec = traitlets.Dict(read_only=True).tag(sync=True)
    recipe = traitlets.Dict(read_only=True).tag(sync=True)
    num_heads = traitlets.Int(1).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    trained = traitlets.Bool(False).tag(sync=True)
    sentence = traitlets.Unicode(SENTENCE).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    muted = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(
        self,
        num_heads: int = 1,
        *,
        seed: int = 0,
        sentence: str = SENTENCE,
        muted: Sequence[int] = (),
    ) -> None:
        for name, value in (("num_heads", num_heads), ("seed", seed)):
            require_count(name, value)
        recipe = RECIPES["concord"]
        model = TransformerModel.of_sizes(recipe.task, **{**recipe.model, "num_heads": 1})
        set_fixed(self, {"spec": model.spec(), "recipe": recipe.as_json()})
        super().__init__(num_heads=num_heads, seed=seed, sentence=sentence, muted=list(muted))

    def __repr__(self) -> str:
        """Say what is shown."""
        state = "trained" if self.trained else "not trained"
        return f"HeadLab({self.num_heads} heads, seed {self.seed}, {state}, muted={self.muted})"

    @traitlets.validate("num_heads")
    def _count_is_offered(self, proposal: dict) -> int:
        if proposal["value"] not in COUNTS:
            raise traitlets.TraitError(
                f"num_heads must be one of {COUNTS}, got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.validate("seed")
    def _seed_is_small(self, proposal: dict) -> int:
        if not 0 <= proposal["value"] < MOST_SEEDS:
            raise traitlets.TraitError(
                f"seed must be from 0 to {MOST_SEEDS - 1}, got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.validate("sentence")
    def _sentence_is_of_the_language(self, proposal: dict) -> str:
        try:
            return str(concord.read(proposal["value"]))
        except ValueError as error:
            raise traitlets.TraitError(f"sentence: {error}") from None

    @traitlets.validate("head")
    def _head_exists(self, proposal: dict) -> int:
        self._require_heads("head", [proposal["value"]])
        return proposal["value"]

    @traitlets.validate("muted")
    def _muted_heads_exist(self, proposal: dict) -> list[int]:
        heads = sorted(set(proposal["value"]))
        self._require_heads("muted", heads)
        return heads

    def _require_heads(self, name: str, heads: list[int]) -> None:
        wrong = [head for head in heads if not 0 <= head < COUNTS[-1]]
        if wrong:
            raise traitlets.TraitError(
                f"{name} must name heads from 0 to {COUNTS[-1] - 1} (0-based), got {wrong[0]}"
            )
