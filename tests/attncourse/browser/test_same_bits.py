"""A browser trains, bit for bit, the models that torch trains.

A whole training test_head_lab_small.py asks.
"""

import pytest
from tools import browser_models
from tools.engines import wait_for

from attncourse.data import load_sweep, read_card
from attncourse.training import RECIPES, train
from attncourse.widgets import HeadLab
from attnlib.model import TransformerModel

SHORT = {"steps": 12, "warmup": 3, "batch": 8}
TRAININGS = {  # recipe and seed
    "concord": (RECIPES["concord"].changed(model={"num_heads": 1}, steps=60), 3),
    "names": (RECIPES["names"].changed(model={"num_heads": 8}, steps=60), 8),
    "two layers, causal": (RECIPES["induction"].changed(pool=None, **SHORT), 1),
    "lookup": (RECIPES["lookup"].changed(**SHORT), 2),
    "diagonals": (RECIPES["diagonals"].changed(**SHORT), 5),
}
# Starts a training. In the end `ended` is the page's: the digest, or an error.
START = """(message) => {
  window.ended = "";
  const {close} = attnModules["engine/trainer.js"].startTraining(message, {
    done: ({digest}) => {
      close();
      window.ended = digest ?? "no digest";
    },
    error: (reason) => { window.ended = reason; },
  });
}"""


def assert_trains_torchs_model(page, name):
    recipe, seed = TRAININGS[name]
    kind, *_ = recipe.task.name.split("-")  # sizes stand behind
    task = {"name": kind, "seed": seed, "heldOut": recipe.held_out, "evaluated": 0}
    spec = TransformerModel.of_sizes(recipe.task, **recipe.model).spec()
    page.evaluate(START, {"spec": spec, "recipe": recipe.as_json(), "task": task})
    wait_for(page, "() => window.ended", seconds=120)
    assert page.evaluate("() => window.ended") == train(recipe, seed=seed, progress=False).digest


@pytest.mark.everyday  # what every page with such a model says of it
@pytest.mark.parametrize("name", TRAININGS)
def test_a_browser_trains_torchs_model(model_page, name):
    assert_trains_torchs_model(model_page, name)


@pytest.mark.parametrize("name", ["concord", "names"])
def test_other_engines_do_in_a_page_that_is_opened_from_a_folder(engine, name, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(browser_models.page_source(), encoding="utf-8")
    engine.open(path.as_uri())
    assert_trains_torchs_model(engine, name)


def test_the_labs_know_the_digests_of_models_that_are_kept():
    card = read_card("concord", 0)
    known = HeadLab().digests
    assert known["4 0"] == card.digest[:8]
    sides = load_sweep("sides")
    trained = [of for of in sides.trainings if of["trial"] == "both readouts"]
    assert all(known[f"{of['heads']} {of['seed']}"] == of["digest"][:8] for of in trained)
    others = {of["digest"][:8] for of in sides.trainings if of["trial"] != "both readouts"}
    assert trained and others and not others & {*known.values()}
