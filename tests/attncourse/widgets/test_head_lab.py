"""HeadLab's Python side: its state, its traits, its refusals."""

import json
import re
from functools import partial

import pytest
import torch
import traitlets
from tools import ROOT

from attncourse.tasks import concord, lookup
from attncourse.training import RECIPES
from attncourse.widgets import HeadLab
from attnlib.attention import MultiHeadAttention
from attnlib.model import TransformerModel
from attnlib.norms import RMSNorm
from attnlib.positions import RotaryPositions


def test_it_trains_what_the_recipe_trains():
    recipe = RECIPES["concord"]
    state = HeadLab().get_state()
    (block,) = state["spec"]["blocks"]
    for count in state["counts"]:
        block |= {"num_heads": count, "num_kv_heads": count}
        sizes = {**recipe.model, "num_heads": count}
        assert state["spec"] == TransformerModel.of_sizes(recipe.task, **sizes).spec()
    assert state["recipe"] == recipe.as_json()


def test_at_the_start_nothing_is_trained_or_muted():
    widget = HeadLab()
    assert (widget.num_heads, widget.seed, widget.trained) == (1, 1, False)
    assert (widget.head, widget.muted) == (0, [])
    assert str(concord.read(widget.sentence)) == widget.sentence


def test_what_is_given_is_shown():
    widget = HeadLab(4, seed=7, sentence="A king saw the nun", muted=[2, 0, 2])
    assert (widget.num_heads, widget.seed) == (4, 7)
    assert widget.sentence == "a king saw the nun ."
    assert widget.muted == [0, 2]
    assert repr(widget) == "HeadLab(4 heads, seed 7, not trained, muted=[0, 2])"
    widget.trained = True
    assert "not" not in repr(widget)
    assert repr(HeadLab()).startswith("HeadLab(1 head, seed ")


def test_a_forbidden_look_is_one_of_the_tasks_relations():
    widget = HeadLab(4, forbidden="verb>object", forbidden_in=3)
    assert (widget.forbidden, widget.forbidden_in) == ("verb>object", 3)
    assert repr(widget).endswith("muted=[], forbidden='verb>object')")
    widget.forbidden_in = None
    assert HeadLab(task="diagonals", forbidden="3 back").forbidden_in is None
    assert (HeadLab().forbidden, HeadLab().forbidden_in) == ("", None)


def test_the_smallest_form_has_few_numbers_of_heads_and_the_same_model():
    small, whole = HeadLab(4, small=True), HeadLab()
    assert small.counts == [1, 2, 4]
    for name in ("spec", "recipe", "held_out"):
        assert getattr(small, name) == getattr(whole, name)
    assert "1, 2 or 4 heads" in small.summary != whole.summary
    with pytest.raises(ValueError, match=re.escape("one of [1, 2, 4], got 8")):
        HeadLab(8, small=True)
    with pytest.raises(ValueError, match="from 0 to 3, got 4"):
        HeadLab(4, small=True, muted=[4])


def test_tasks_with_two_needs_are_chosen_as_a_reader_does():
    widget = HeadLab(2, task="diagonals", symbols=4, steps=1200, mlp=True)
    assert (widget.task, widget.symbols, widget.steps, widget.mlp) == ("diagonals", 4, 1200, True)
    assert repr(widget) == "HeadLab(diagonals, 2 heads, seed 1, not trained, muted=[])"
    widget.beside = [1, 7]
    widget.task = "lookup"
    for name, recipe in widget.recipes.items():
        model = RECIPES[name].model
        assert recipe["model"] == dict(model) and recipe["task"] == RECIPES[name].task.name
        assert all(model["d_model"] % count == 0 for count in widget.counts)


@pytest.mark.parametrize("options", [{"small": True}, {"model": "own"}])
def test_the_smallest_form_and_a_readers_model_learn_concord_alone(options):
    if "model" in options:
        options = {"model": own_model()}
    with pytest.raises(ValueError, match=re.escape("task must be one of ['concord']")):
        HeadLab(task="lookup", **options)


def own_model(d_model=48, num_heads=6, **options):
    return TransformerModel.of_sizes(concord, d_model, num_heads, **options)


def test_a_readers_model_gives_its_form_and_its_weights():
    model = own_model(d_ff=32, norm=RMSNorm, num_kv_heads=3, norm_position="post", bias=True)
    widget = HeadLab(model=model, from_weights=True)
    assert widget.spec == model.spec()
    assert widget.num_heads == 6 and widget.from_weights
    assert widget.counts == [2, 4, 6, 8, 16]  # two heads share one of keys and values
    numbers = torch.frombuffer(bytearray(widget.weights), dtype=torch.float32)
    assert torch.equal(numbers, torch.cat([x.flatten() for x in model.state_dict().values()]))
    assert HeadLab(2, model=model).num_heads == 2
    widget.head, widget.muted = 15, [15]
    assert HeadLab(model=own_model(24, 24)).counts == [1, 2, 4, 8, 24]
    assert HeadLab().weights == b""


class OwnAttention(MultiHeadAttention):
    """An attention that isn't attnlib's own."""


class OwnModel(TransformerModel):
    """A model that computes something else, whatever it says of itself."""

    def forward(self, *args, **options):
        return None

    def spec(self):
        return own_model().spec()


def of_another_class():
    model = own_model()
    model.__class__ = OwnModel
    return model


def with_own_attention():
    model = own_model()
    model.blocks[0].attention = OwnAttention(48, 6)
    return model


def with_rotary_positions():
    model = own_model()
    model.blocks[0].attention = MultiHeadAttention(48, 6, rotary=RotaryPositions())
    return model


def without_gain():
    return own_model(norm=partial(RMSNorm, gain=False))


def with_nan():
    model = own_model()
    with torch.no_grad():
        model.blocks[0].attention.W_q.weight[0, 0] = torch.nan
    return model


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda: torch.nn.Linear(2, 2), TypeError, "got Linear: the browser has learned positions"),
        (of_another_class, TypeError, "attnlib TransformerModel, got OwnModel: the browser has"),
        (with_own_attention, TypeError, r"got .*OwnAttention; the browser has learned positions"),
        (with_rotary_positions, ValueError, r"no rotary positions, got RotaryPositions.*: the br"),
        (lambda: own_model(positions="rotary"), ValueError, "no rotary positions, got Rotary"),
        (lambda: own_model(positions="sinusoidal"), ValueError, "no positions='sinusoidal': the b"),
        (lambda: own_model(positions=None), ValueError, "no positions=None: the browser has"),
        (
            lambda: own_model(d_ff=9, activation="relu"),
            ValueError,
            "no feed_forward.activation='relu': the browser",
        ),
        (without_gain, ValueError, "no final_norm.gain=False: the browser"),
        (lambda: own_model(dropout=0.1), ValueError, "no dropout, got dropout=0.1: the browser"),
        (lambda: own_model(num_layers=2), ValueError, "one block, got 2: the browser"),
        (
            lambda: TransformerModel.of_sizes(lookup(), 48, 6),
            ValueError,
            r"language Concord, with 89 words, .* got 120 words, 9 positions and \{'first': 8",
        ),
        (with_nan, ValueError, r"blocks.0.attention.W_q.weight must be finite"),
        (lambda: own_model(256, 4, d_ff=2048), ValueError, "at most 524,288 numbers, got"),
    ],
)
def test_a_model_that_the_browser_cannot_train_is_refused_in_words(model, error, message):
    with pytest.raises(error, match=message):
        HeadLab(model=model())


def test_the_smallest_form_has_its_own_model_and_weights_belong_to_one():
    with pytest.raises(ValueError, match="small must be False with a model"):
        HeadLab(model=own_model(), small=True)
    with pytest.raises(ValueError, match="from_weights must be False without a model"):
        HeadLab(from_weights=True)


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (TypeError, "num_heads must be an int", {"num_heads": 2.0}),
        (ValueError, "num_heads must be one of [1, 2, 4, 8, 16], got 5", {"num_heads": 5}),
        (TypeError, "seed must be an int", {"seed": "1"}),
        (ValueError, "seed must be from 0 to 999, got 1000", {"seed": 1000}),
        (TypeError, "sentence must be a string", {"sentence": 3}),
        (ValueError, "sentence: ", {"sentence": "no king"}),
        (
            ValueError,
            "got 'zebra' as word 2; there may stand",
            {"sentence": "the zebra saw a king"},
        ),
        (ValueError, "got its end after 'the king saw'", {"sentence": "the king saw"}),
        (TypeError, "muted must be a list", {"muted": 3}),
        (TypeError, "muted must be a list", {"muted": None}),
        (TypeError, "each of muted must be an int", {"muted": ["0"]}),
        (ValueError, "each of muted must be at least 0, got -1", {"muted": [0, -1]}),
        (ValueError, "each of muted must be from 0 to 15, got 16", {"muted": [16]}),
        (ValueError, "forbidden must be one of ['', 'deter", {"forbidden": "verb>verb"}),
        (ValueError, "forbidden must be one of ['', 'question", {"task": "lookup", "forbidden": 3}),
        (ValueError, "forbidden must be one of ['']", {"small": True, "forbidden": "verb>object"}),
        (TypeError, "forbidden_in must be an int", {"forbidden_in": "0"}),
        (ValueError, "forbidden_in must be from 0 to 15, got 16", {"forbidden_in": 16}),
        (
            ValueError,
            "task must be one of ['concord', 'lookup', 'diagonals', 'induction']",
            {"task": "chess"},
        ),
        (ValueError, "task must be one of", {"task": 3}),
        (ValueError, "symbols must be one of [4, 8, 16], got 7", {"symbols": 7}),
        (TypeError, "steps must be an int", {"steps": 400.0}),
        (ValueError, "steps must be one of [400, 1200, 3000], got 401", {"steps": 401}),
        (TypeError, "mlp must be True or False", {"mlp": 1}),
        (TypeError, "small must be True or False", {"small": 1}),
        (TypeError, "from_weights must be True or False", {"from_weights": 1}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, options):
    with pytest.raises(error, match=re.escape(message)):
        HeadLab(**options)


def test_what_is_trained_stays_as_it_is():
    widget = HeadLab()
    for name in ("spec", "recipe", "recipes", "ours", "counts", "held_out", "weights"):
        with pytest.raises(traitlets.TraitError, match=name):
            setattr(widget, name, getattr(widget, name))


def test_our_counts_are_those_that_were_measured():
    results = ROOT / "benchmarks" / "results" / "heads-concord-cpu.json"
    measured = json.loads(results.read_text(encoding="utf-8"))
    names = ["1 head", *(f"{h} heads" for h in (2, 4, 8, 16))]
    told = {heads: measured[heads]["same best head"] for heads in names}
    assert HeadLab().ours == told, "run python benchmarks/heads.py sharing"
