"""HeadLab: a slider over the number of heads, and a model that trains while one watches."""

import json
from collections.abc import Sequence
from pathlib import Path

import traitlets

from attncourse.tasks import concord
from attncourse.training import RECIPES
from attncourse.widgets._base import CourseWidget, browser_files, summary_trait
from attncourse.widgets._inputs import require_one_of, require_within
from attncourse.widgets._known_digests import known_digests
from attncourse.widgets.head_lab.model import checked_form, counts_of, weights_of
from attndoctor.support.printing import counted
from attnlib.checks import checked_list, require_count, require_flag, require_text
from attnlib.model import TransformerModel

# How many of our models share a best head, and of how many: benchmarks/heads.py writes it.
OURS = json.loads((Path(__file__).parent / "sharing.json").read_text(encoding="utf-8"))
COUNTS = [1, 2, 4, 8, 16]
SMALL_COUNTS = [1, 2, 4]
SUMMARY = (
    "A small model is trained in the browser with 1, 2, 4, 8 or 16 heads; you see its loss, "
    "which answers it gets right, and where each head looks."
)
SMALL_SUMMARY = (
    "A small model is trained in the browser with 1, 2 or 4 heads; you see what it answers about "
    "a verb's subject and its object, how often it is right, and where each head looks from there."
)
SYMBOLS = [4, 8, 16]
STEPS = [400, 1200, 3000]
MOST_SEEDS = 1000  # what a reader can tell apart
HELD_OUT = 300  # sentences, on which the browser evaluates again and again while it trains
SENTENCE = "the big king gave a very strange sister their nephew ."

# The tasks with two needs. A browser learns them from small batches in seconds; with this learning
# rate a single head may find its way to both answers of "diagonals", too.
NEEDS = {
    "lookup": RECIPES["lookup"].changed(batch=32, lr=4e-3),
    "diagonals": RECIPES["diagonals"].changed(batch=32, lr=1e-2, betas=(0.9, 0.98)),
}
OTHERS = {**NEEDS, "induction": RECIPES["induction-short"]}
TASKS = ["concord", *OTHERS]


class HeadLab(CourseWidget):
    """A small model learns a language in the reader's browser, with 1 to 16 heads.

    The reader chooses a number of heads and presses Train. Loss, right answers and every head's
    weights move while the model learns. Afterwards it answers the reader's own sentences, with all
    heads or with some of them muted, or with a look forbidden: where no word may look at its
    partner in a relation, one sees which answers hang on that look. Another model may stand beside
    it. The language is Concord, with model
    and training of `RECIPES["concord"]`; or one of two tasks with two needs at one place, "lookup"
    and "diagonals" of `attncourse.tasks`, whose symbols, steps and MLP are the reader's choice; or
    "induction", which two layers learn, with `RECIPES["induction-short"]`. The browser trains, bit
    for bit, what `train` does.

    A model of one's own may be given. The browser then trains models of its form, from random
    weights (drawn with `embedding_std` 0.02) and with numbers of heads that its width and its
    groups allow. If asked, it shows the given weights as they came, and trains on from there. Done
    are LayerNorm and RMSNorm before, after or nowhere, grouped heads, biases, feed-forward networks
    and causal models; refused are rotary positions, dropout, several layers, and parts that
    aren't attnlib's. The given model stays as it is. In a notebook::

        widget = HeadLab(num_heads=2)
        widget                                     # show it
        widget.trained = True                      # press Train
        widget.muted = [0]                         # heads are counted from 0
        widget.forbidden = "verb>object"           # no verb looks at its object
        widget.observe(lambda change: print(change["new"]), "num_heads")

    Traits that a reader changes:
        task (str): "concord", "lookup", "diagonals" or "induction".
        symbols (int): how many values a key may have, or how many symbols there are: 4, 8 or 16.
        steps (int): 400, 1200 or 3000.
        mlp (bool): whether an MLP follows the attention. Concord is always trained for 400
            steps and induction for 300, without one.
        num_heads (int): 1, 2, 4, 8 or 16; of each layer.
        seed (int): which first weights and sentences the training draws, 0 to 999. From a few
            of them two heads don't learn Concord.
        trained (bool): whether models are trained as soon as they are chosen. Another task, opened
            by its tab, is shown as it was left, or untrained with the fewest heads, and waits.
        digest (str): the first eight digits of the digest of the model that is shown, once it is
            trained. The browser sets it; a saved state or link so names the model that it shows.
        from_weights (bool): whether the given model's weights are shown, and trained on, where the
            number of heads is its own.
        sentence (str): the sentence that is shown, one of Concord.
        head (int): the head that is enlarged, 0-based; of those that the model has, the nearest.
            In two layers heads are counted on: of two with two heads each, 2 is the first one of
            the second layer.
        muted (list of int): heads that are left out, 0-based, in order.
        forbidden (str): a relation of the task, such as "verb>object", or empty. No word may look
            at its partner in it: the score of that look is minus infinity, and the rest of the row
            sums to 1. The browser trains as if nothing was forbidden. A relation that the task
            doesn't have forbids nothing. Of two layers the second one is meant.
        forbidden_in (int or None): the head that this is forbidden to, 0-based; of those that the
            model has, the nearest. None for all.
        beside (list of int): the number of heads and the seed of a model that is shown beside, or
            empty.

    Traits that are fixed: counts, symbol_counts, step_counts (list of int), small (bool), held_out
    (int); spec and recipe (dict), which say what model learns Concord, and how, and recipes (dict),
    which says so of the other tasks; ours (dict), of how many of our models of that recipe two
    relations share a head; digests (dict), eight digits of models of that recipe that the course
    has trained, by heads and seed ("2 0"); induction_digests (dict), those of the two layers of
    "induction"; and weights (bytes), those of a given model as float32,
    little endian, in the order of its `state_dict()`.

    Args:
        num_heads, task, symbols, steps, mlp, seed, sentence, muted, forbidden, forbidden_in,
            from_weights: at the start. Left out, num_heads is 1, or that of the given model; seed
            is 1.
        model: an `attnlib.model.TransformerModel` of one layer for `attncourse.tasks.concord`; it
            learns Concord alone.
        small: True for the smallest form, as it opens the course: 1, 2 or 4 heads, what a verb
            answers about its subject and its object, and where each head looks from the verb. It
            shows Concord alone.

    Raises:
        TypeError, ValueError: an argument isn't as above, with what may stand there; a model that
            the browser can't train, with the reason.
    """

    _esm, _css = browser_files("head_lab")
    summary = summary_trait(SUMMARY)

    counts = traitlets.List(traitlets.Int(), COUNTS, read_only=True).tag(sync=True)
    small = traitlets.Bool(False, read_only=True).tag(sync=True)
    symbol_counts = traitlets.List(traitlets.Int(), SYMBOLS, read_only=True).tag(sync=True)
    step_counts = traitlets.List(traitlets.Int(), STEPS, read_only=True).tag(sync=True)
    held_out = traitlets.Int(HELD_OUT, read_only=True).tag(sync=True)
    weights = traitlets.Bytes(b"", read_only=True).tag(sync=True)
    spec = traitlets.Dict(read_only=True).tag(sync=True)
    recipe = traitlets.Dict(read_only=True).tag(sync=True)
    recipes = traitlets.Dict(
        {name: recipe.as_json() for name, recipe in OTHERS.items()}, read_only=True
    ).tag(sync=True)
    ours = traitlets.Dict(OURS, read_only=True).tag(sync=True)
    digests = traitlets.Dict(read_only=True).tag(sync=True)
    induction_digests = traitlets.Dict(read_only=True).tag(sync=True)
    task = traitlets.Unicode("concord").tag(sync=True)
    symbols = traitlets.Int(8).tag(sync=True)
    steps = traitlets.Int(400).tag(sync=True)
    mlp = traitlets.Bool(False).tag(sync=True)
    num_heads = traitlets.Int(1).tag(sync=True)
    seed = traitlets.Int(1).tag(sync=True)
    trained = traitlets.Bool(False).tag(sync=True)
    digest = traitlets.Unicode("").tag(sync=True)
    from_weights = traitlets.Bool(False).tag(sync=True)
    sentence = traitlets.Unicode(SENTENCE).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    muted = traitlets.List(traitlets.Int()).tag(sync=True)
    forbidden = traitlets.Unicode("").tag(sync=True)
    forbidden_in = traitlets.Int(None, allow_none=True).tag(sync=True)
    beside = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(
        self,
        num_heads: int | None = None,
        *,
        task: str = "concord",
        symbols: int = 8,
        steps: int = 400,
        mlp: bool = False,
        model: TransformerModel | None = None,
        from_weights: bool = False,
        seed: int = 1,
        sentence: str = SENTENCE,
        muted: Sequence[int] = (),
        forbidden: str = "",
        forbidden_in: int | None = None,
        small: bool = False,
    ) -> None:
        require_flag("small", small)
        require_flag("from_weights", from_weights)
        require_flag("mlp", mlp)
        if small and model is not None:
            raise ValueError("small must be False with a model: the smallest form has its own")
        if from_weights and model is None:
            raise ValueError("from_weights must be False without a model, got True")
        recipe = RECIPES["concord"]
        counts, weights = SMALL_COUNTS if small else COUNTS, b""
        if model is None:
            own = TransformerModel.of_sizes(recipe.task, **{**recipe.model, "num_heads": 1})
            spec = own.spec()
        else:
            spec, weights = checked_form(model), weights_of(model)
            counts = counts_of(spec, COUNTS)
        if num_heads is None:
            (block,) = spec["blocks"]
            num_heads = block["num_heads"]
        numbers = {"num_heads": num_heads, "symbols": symbols, "steps": steps, "seed": seed}
        for name, value in numbers.items():
            require_count(name, value)
        require_within("seed", seed, 0, MOST_SEEDS - 1)
        require_one_of("num_heads", num_heads, counts)
        require_one_of("task", task, ["concord"] if small or model is not None else TASKS)
        require_one_of("symbols", symbols, SYMBOLS)
        require_one_of("steps", steps, STEPS)
        relations = [] if small else [relation.name for relation in RECIPES[task].task.relations]
        require_one_of("forbidden", forbidden, ["", *relations])
        layers = OTHERS["induction"].model["num_layers"] if task == "induction" else 1
        most = layers * counts[-1]
        if forbidden_in is not None:
            _require_head("forbidden_in", forbidden_in, most)
        super().__init__(
            counts=counts,
            small=small,
            weights=weights,
            spec=spec,
            recipe=recipe.as_json(),
            digests=known_digests(recipe.name),
            induction_digests={} if small else known_digests(OTHERS["induction"].name),
            summary=SMALL_SUMMARY if small else SUMMARY,
            task=task,
            mlp=mlp,
            from_weights=from_weights,
            sentence=_checked_sentence(sentence),
            muted=_checked_heads(muted, most),
            forbidden=forbidden,
            forbidden_in=forbidden_in,
            **numbers,
        )

    def __repr__(self) -> str:
        state = "trained" if self.trained else "not trained"
        task = "" if self.task == "concord" else f"{self.task}, "
        heads = counted(self.num_heads, "head")
        look = f", forbidden={self.forbidden!r}" if self.forbidden else ""
        return f"HeadLab({task}{heads}, seed {self.seed}, {state}, muted={self.muted}{look})"


def _checked_sentence(sentence: str) -> str:
    require_text("sentence", sentence)
    try:
        return str(concord.read(sentence))
    except ValueError as error:
        raise ValueError(f"sentence: {error}") from None


def _checked_heads(muted: Sequence[int], most: int) -> list[int]:
    heads = checked_list("muted", muted)
    for head in heads:
        _require_head("each of muted", head, most)
    return sorted(set(heads))


def _require_head(name: str, head: int, most: int) -> None:
    require_count(name, head)
    require_within(name, head, 0, most - 1)
