"""Training in the browser, in a worker of a page opened from a folder: what it tells, refuses."""

import pytest
from tools.browser_models import RECIPE, start_message

pytestmark = pytest.mark.everyday  # the engine of every widget that trains

# Trains in a worker; returns all that it told, and what it answers in the end.
IN_A_WORKER = """(message) => new Promise((resolve) => {
  const told = {losses: [], evaluation: [], maps: []};
  const {ask, close} = attnModules["engine/trainer.js"].startTraining(message, {
    losses: ({steps, losses}) => told.losses.push([steps, losses.length]),
    evaluation: ({steps, ...rest}) => told.evaluation.push([steps, rest]),
    maps: ({steps, weights}) => told.maps.push([steps, weights.map((map) => [...map])]),
    done: async (done) => {
      const evaluation = await ask("evaluation");
      const [answer] = await ask("answers", {sentences: [message.reports.shown]});
      close();
      resolve({told, done, evaluation, maps: answer.weights.map((map) => [...map])});
    },
    error: (reason) => resolve({error: reason}),
  });
})"""


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_worker_tells_how_a_training_goes(model_page, repeatable):
    message = start_message(recipe=RECIPE | {"repeatable": repeatable})
    found = model_page.evaluate(IN_A_WORKER, message)
    told, done = found["told"], found["done"]
    assert told["losses"] == [[6, 6], [12, 6], [18, 6], [20, 2]]
    assert [steps for steps, _ in told["evaluation"]] == [0, 8, 16, 20]
    assert told["evaluation"][-1][1] == found["evaluation"] != told["evaluation"][0][1]
    assert [steps for steps, _ in told["maps"]] == [0, 20]
    assert told["maps"][-1][1] == found["maps"] != told["maps"][0][1]
    assert done["steps"] == 20 and done["seconds"] > 0
    assert (done["digest"] is None) != repeatable  # of others test_same_bits.py asks


ENDED = """(message) => new Promise((resolve) => {
  const training = attnModules["engine/trainer.js"].startTraining(message, {
    done: () => resolve("done"),
    error: async (reason) => resolve([reason, await training.ask("weights").catch(String)]),
  });
  training.resume(); // may be called at once
  setTimeout(() => resolve(["nothing was told", null]), 20_000);
})"""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"task": {"name": "poker"}}, '"poker"'),
        ({"task": {"name": "given", "sentences": [{"ids": [1]}]}}, "answers that are due"),
        ({"weights": None}, "token_embedding.weight"),
        ({"reports": {"maps": 0}}, "reports.maps"),
        ({"recipe": RECIPE | {"lr": 1e30}}, "a smaller lr"),
        ({"recipe": RECIPE | {"steps": 0.5}}, "steps"),
        ({"recipe": RECIPE | {"ends_at": 2}}, "ends_at"),
    ],
)
def test_a_training_that_can_not_be_is_refused_in_words(model_page, changes, named):
    found, after = model_page.evaluate(ENDED, start_message(**changes))
    assert named in found and "should be" in found
    assert after == f"Error: {found}"


FAILS_LATER = """attnModules["engine/worker_code.js"].MODULES.unshift(
  ["more", "() => { setTimeout(() => { throw new Error('later'); }); }"])"""


def test_an_error_between_messages_is_told(model_page):
    model_page.reload()
    model_page.evaluate(FAILS_LATER)
    found, after = model_page.evaluate(ENDED, start_message())
    model_page.reload()
    assert "Uncaught Error: later" in found
    assert after == f"Error: {found}"
