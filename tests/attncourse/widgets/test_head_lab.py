"""HeadLab's Python side: its state, its traits, its refusals."""

import json
import re
from functools import partial

import pytest
import torch
from tools import ROOT
from tools.refusing import refusals

from attncourse import data
from attncourse.tasks import concord, lookup
from attncourse.training import RECIPES
from attncourse.widgets import HeadLab
from attnlib.model import TransformerModel
from attnlib.norms import RMSNorm


def test_it_trains_what_the_recipe_trains():
    recipe = RECIPES["concord"]
    state, small = HeadLab().get_state(), HeadLab(4, small=True)
    assert small.counts == [1, 2, 4]
    assert all(getattr(small, name) == state[name] for name in ("spec", "recipe", "held_out"))
    assert "1, 2 or 4 heads" in small.summary != state["summary"]
    (block,) = state["spec"]["blocks"]
    for count in state["counts"]:
        block |= {"num_heads": count, "num_kv_heads": count}
        sizes = {**recipe.model, "num_heads": count}
        assert state["spec"] == TransformerModel.of_sizes(recipe.task, **sizes).spec()
    assert state["recipe"] == recipe.as_json()


def test_what_is_given_is_shown_and_at_the_start_nothing_is_trained_or_muted():
    widget = HeadLab()
    assert (widget.num_heads, widget.seed, widget.trained, widget.head) == (1, 1, False, 0)
    assert (widget.muted, widget.forbidden, widget.weights) == ([], "", b"")
    assert str(concord.read(widget.sentence)) == widget.sentence
    options = {"muted": [2, 0, 2], "forbidden": "verb>object", "forbidden_in": 3}
    widget = HeadLab(4, seed=7, sentence="A king saw the nun", **options)
    assert (widget.sentence, widget.muted) == ("a king saw the nun .", [0, 2])
    assert widget.forbidden_in == 3
    told = "HeadLab(4 heads, seed 7, not trained, muted=[0, 2], forbidden='verb>object')"
    assert repr(widget) == told
    widget = HeadLab(2, task="diagonals", symbols=4, steps=1200, mlp=True, forbidden="3 back")
    assert (widget.task, widget.symbols, widget.steps, widget.mlp) == ("diagonals", 4, 1200, True)
    assert HeadLab(task="induction", muted=[31]).muted == [31]  # of two layers


def test_the_recipes_are_those_of_the_course_with_smaller_batches_and_models_are_its_own():
    widget = HeadLab()
    assert widget.recipes["induction"] == RECIPES["induction-short"].as_json()
    for name, recipe in widget.recipes.items():
        assert recipe["model"] == dict(RECIPES[name].model)
        assert recipe["task"] == RECIPES[name].task.name
    for seed in range(3):
        digest = data.read_card("induction-short", seed).digest
        assert digest.startswith(widget.induction_digests[f"4 {seed}"])
    results = ROOT / "benchmarks" / "results" / "heads-concord-cpu.json"
    measured = json.loads(results.read_text(encoding="utf-8"))
    told = {heads: measured[heads]["same best head"] for heads in widget.ours}
    assert widget.ours == told, "run python benchmarks/heads.py sharing"


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


def of_own_class():
    """A model that may compute something else, whatever it says of itself."""
    model = own_model()
    model.__class__ = type("OwnModel", (TransformerModel,), {})
    return model


def with_nan():
    model = own_model()
    model.blocks[0].attention.W_q.weight.data[0, 0] = torch.nan
    return model


NO_MODELS = {
    "OwnModel": of_own_class,
    "positions": lambda: own_model(positions="rotary"),
    "feed_forward.activation='relu'": lambda: own_model(d_ff=9, activation="relu"),
    "final_norm.gain=False": lambda: own_model(norm=partial(RMSNorm, gain=False)),
    "dropout=0.1": lambda: own_model(dropout=0.1),
    "one block": lambda: own_model(num_layers=2),
    "120 words, 9 positions": lambda: TransformerModel.of_sizes(lookup(), 48, 6),
    "blocks.0.attention.W_q.weight": with_nan,
    "524,288 numbers": lambda: own_model(256, 4, d_ff=2048),
}


@pytest.mark.parametrize("named", NO_MODELS)
def test_a_model_that_the_browser_cannot_train_is_refused(named):
    error = TypeError if named == "OwnModel" else ValueError
    with pytest.raises(error, match=rf"^(model\b.*)?{re.escape(named)}"):
        HeadLab(model=NO_MODELS[named]())


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        HeadLab: {
            "num_heads": [2.0], "seed": ["1"], "sentence": [3], "muted": [3, None, ["0"]],
            "forbidden_in": ["0"], "steps": [400.0], "mlp": [1], "small": [1],
            "from_weights": [1],
        },
    },
    ValueError: {
        HeadLab: {
            "num_heads": [5], "seed": [1000],
            "sentence": ["no king", "the zebra saw a king", "the king saw"],
            "muted": [[0, -1], [16]], "forbidden": ["verb>verb"], "forbidden_in": [16],
            "task": ["chess", 3], "symbols": [7], "steps": [401], "from_weights": [True],
        },
        partial(HeadLab, task="lookup"): {"forbidden": [3]},
        partial(HeadLab, small=True): {
            "num_heads": [8], "muted": [[4]], "forbidden": ["verb>object"], "task": ["lookup"],
        },
        partial(HeadLab, model=own_model()): {"small": [True], "task": ["lookup"]},
        partial(HeadLab, task="induction"): {"muted": [[32]]},
    },
})  # fmt: skip
