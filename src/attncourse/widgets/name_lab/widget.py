"""NameLab: a small GPT that learns to make up names while one watches."""

from functools import cache

import traitlets

from attncourse.tasks import names
from attncourse.training import RECIPES, held_out_sentences
from attncourse.training.sampling import name_guesses
from attncourse.widgets._base import CourseWidget, browser_files, summary_trait
from attncourse.widgets._inputs import require_one_of, require_within
from attncourse.widgets._known_digests import known_digests
from attndoctor.support.printing import counted
from attnlib.checks import require_count, require_number, require_text
from attnlib.model import TransformerModel

RECIPE = RECIPES["names"]
COUNTS = [1, 2, 4, 8]
MOST_SEEDS = 1000  # what a reader can tell apart
HELD_OUT = 300  # names, on which the browser evaluates again and again while it trains
COUNTED = 5_000  # names that guesses which only count have seen
HOTTEST = 2
LETTERS = names.length - 1  # the most that a name has
BEGINNING = "mel"


class NameLab(CourseWidget):
    """A small GPT learns in the reader's browser to make up names that keep four rules.

    The model is that of `RECIPES["names"]`, the names are `attncourse.tasks.names`. The reader
    chooses a number of heads and presses Train. The loss on names that are held out falls past what
    guesses cost that don't look back (all letters alike; how common each is; the letter before),
    towards that of an oracle that knows the rules. Meanwhile the model makes up names, each of them
    checked. A beginning that the reader types shows the chances of the next letter, and where each
    head looks from the last one. The browser trains, bit for bit, what `train` does. In a
    notebook::

        widget = NameLab(num_heads=2)
        widget                                     # show it
        widget.trained = True                      # press Train
        widget.beginning = "tol"
        widget.observe(lambda change: print(change["new"]), "num_heads")

    Traits that a reader changes:
        num_heads (int): 1, 2, 4 or 8, into which 16 numbers per letter are cut.
        seed (int): which first weights and names the training draws, 0 to 999.
        trained (bool): whether models are trained as soon as they are chosen.
        digest (str): the first eight digits of the digest of the model that is shown, once it is
            trained. The browser sets it; a saved state or link so names the model that it shows.
        beginning (str): the beginning of a name, at most 15 letters from a to z, or none.
        temperature (float): of sampling, 0 to 2; at 0 always the likeliest letter comes.
        top_k (int): from how many of the likeliest letters is drawn, 1 to 27, the end among them.
        draw (int): which names are drawn, 0 to 999.

    Args:
        num_heads, seed, beginning, temperature, top_k: at the start.
    """

    _esm, _css = browser_files("name_lab")
    summary = summary_trait(
        "A small GPT is trained in the browser on names that keep four rules, with 1, 2, 4 or 8 "
        "heads; it shows its loss, names that it makes up, and what it expects after a beginning."
    )

    counts = traitlets.List(traitlets.Int(), COUNTS, read_only=True).tag(sync=True)
    held_out = traitlets.Int(HELD_OUT, read_only=True).tag(sync=True)
    spec = traitlets.Dict(read_only=True).tag(sync=True)
    recipe = traitlets.Dict(RECIPE.as_json(), read_only=True).tag(sync=True)
    digests = traitlets.Dict(read_only=True).tag(sync=True)
    guesses = traitlets.Dict(read_only=True).tag(sync=True)
    num_heads = traitlets.Int(4).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    trained = traitlets.Bool(False).tag(sync=True)
    digest = traitlets.Unicode("").tag(sync=True)
    beginning = traitlets.Unicode(BEGINNING).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    top_k = traitlets.Int(len(names.vocabulary)).tag(sync=True)
    draw = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        num_heads: int = 4,
        *,
        seed: int = 0,
        beginning: str = BEGINNING,
        temperature: float = 1.0,
        top_k: int = len(names.vocabulary),
    ) -> None:
        numbers = {"num_heads": num_heads, "seed": seed, "top_k": top_k}
        for name, value in numbers.items():
            require_count(name, value)
        require_number("temperature", temperature)
        require_one_of("num_heads", num_heads, COUNTS)
        require_within("seed", seed, 0, MOST_SEEDS - 1)
        require_within("top_k", top_k, 1, len(names.vocabulary))
        require_within("temperature", temperature, 0, HOTTEST)
        beginning = _checked_beginning(beginning)
        model = TransformerModel.of_sizes(names, **{**RECIPE.model, "num_heads": COUNTS[0]})
        super().__init__(
            spec=model.spec(),
            guesses=dict(_guesses()),
            digests=known_digests(RECIPE.name),
            beginning=beginning,
            temperature=float(temperature),
            **numbers,
        )

    def __repr__(self) -> str:
        heads = counted(self.num_heads, "head")
        state = "trained" if self.trained else "not trained"
        return f"NameLab({heads}, seed {self.seed}, {state}, beginning={self.beginning!r})"


def _checked_beginning(beginning: str) -> str:
    """Return the beginning of a name in small letters, or raise if no name begins so."""
    require_text("beginning", beginning)
    try:
        return names.spelled(names.read(beginning).ids) if beginning else ""
    except ValueError as error:
        raise ValueError(f"beginning: {error}") from None


@cache
def _guesses() -> dict[str, float]:
    held_out = held_out_sentences(RECIPE.changed(held_out=HELD_OUT))
    return name_guesses(names.sentences(COUNTED, seed=0, without=held_out), held_out)
