"""A browser trains, bit for bit, the models that torch trains."""

import pytest
from tools.same_bits import START, TRAININGS, message_of

from attncourse.data import load_sweep, read_card
from attncourse.training import train
from attncourse.widgets import HeadLab

pytestmark = pytest.mark.everyday  # what every page with such a model says of it


@pytest.mark.parametrize("name", TRAININGS)
def test_a_browser_trains_torchs_model(model_page, name):
    recipe, seed = TRAININGS[name]
    model_page.evaluate(START, message_of(recipe, seed))
    wanted = train(recipe, seed=seed, progress=False)  # meanwhile
    model_page.wait_for_function("window.ended", timeout=120_000)
    losses, end = model_page.evaluate("[losses, ended]")
    assert losses == pytest.approx(wanted.losses, abs=1e-12)
    assert end == wanted.digest


def test_the_labs_know_the_digests_of_models_that_are_kept():
    card = read_card("concord", 0)
    known = HeadLab().digests
    assert known["4 0"] == card.digest[:8]
    sides = load_sweep("sides")
    trained = [of for of in sides.trainings if of["trial"] == "both readouts"]
    assert all(known[f"{of['heads']} {of['seed']}"] == of["digest"][:8] for of in trained)
    others = {of["digest"][:8] for of in sides.trainings if of["trial"] != "both readouts"}
    assert trained and others and not others & {*known.values()}
