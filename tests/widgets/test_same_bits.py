"""A browser trains, bit for bit, the models that torch trains."""

import pytest
from tools.same_bits import START, message_of

from attnlib.training import RECIPES, train

pytestmark = pytest.mark.everyday  # what every page with such a model says of it

SHORT = {"steps": 12, "warmup": 3, "batch": 8}
TRAININGS = {
    "concord": (RECIPES["concord"], 0),
    "concord, 1 head": (RECIPES["concord"].changed(model={"num_heads": 1}, steps=60), 3),
    **{
        f"names, {h} heads": (RECIPES["names"].changed(model={"num_heads": h}, steps=60), h)
        for h in (1, 2, 4, 8)
    },
    "two layers, causal": (RECIPES["induction"].changed(pool=None, **SHORT), 1),
    "lookup": (RECIPES["lookup"].changed(**SHORT), 2),
    "diagonals": (RECIPES["diagonals"].changed(**SHORT), 5),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_a_browser_trains_torchs_model(model_page, name):
    recipe, seed = TRAININGS[name]
    model_page.evaluate(START, message_of(recipe, seed))
    wanted = train(recipe, seed=seed, progress=False)  # meanwhile
    model_page.wait_for_function("window.ended", timeout=120_000)
    losses, end = model_page.evaluate("[losses, ended]")
    assert losses == pytest.approx(wanted.losses, abs=1e-12)
    assert end == wanted.digest
