"""Training in the browser, in a worker of a page opened from a folder: what it tells, refuses."""

import pytest
from playwright.sync_api import Error
from tools.browser_models import RECIPE, start_message

from attncourse.tasks import lookup
from attnlib.model import TransformerModel

pytestmark = pytest.mark.everyday  # the engine of every widget that trains

# Trains in a worker; returns all that it told.
IN_A_WORKER = """(message) => new Promise((resolve) => {
  const told = [];
  const note = (kind) => (content) => told.push([kind, content]);
  const {ask, close} = attnModules["engine/trainer.js"].startTraining(message, {
    losses: note("losses"),
    evaluation: note("evaluation"),
    maps: ({steps, logits, weights}) =>
      note("maps")({steps, A: [...logits.A], weights: weights.map((map) => [...map])}),
    done: async (content) => {
      note("done")(content);
      const trained = await ask("weights");
      const listed = Object.entries(trained).map(([name, values]) => [name, [...values]]);
      close();
      const kind = trained["readouts.A.weight"].constructor.name;
      resolve({told, weights: Object.fromEntries(listed), kind});
    },
    error: (reason) => resolve({error: reason}),
  });
})"""
ON_THE_PAGE = """({spec, weights, task, recipe, reports}) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const {numbersFor, Training} = attnModules["engine/training.js"];
  const {TASKS} = attnModules["engine/tasks.js"];
  const model = new TransformerModel(spec, {Numbers: numbersFor(recipe)});
  model.load(weights);
  const training = new Training(model, TASKS.given(task), recipe);
  const first = training.evaluate();
  const losses = Array.from({length: recipe.steps}, () => training.step());
  const maps = model.answer(reports.shown);
  const listed = Object.entries(model.weights()).map(([name, values]) => [name, [...values]]);
  return {
    losses,
    evaluations: [first, training.evaluate()],
    A: [...maps.logits.A],
    maps: maps.weights.map((map) => [...map]),
    weights: Object.fromEntries(listed),
  };
}"""


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_worker_trains_as_the_page_would(model_page, repeatable):
    message = start_message(recipe=RECIPE | {"repeatable": repeatable})
    found = model_page.evaluate(IN_A_WORKER, message)
    wanted = model_page.evaluate(ON_THE_PAGE, message)
    told = found["told"]

    def steps_of(kind):
        return [content["steps"] for own, content in told if own == kind]

    losses = [content["losses"] for kind, content in told if kind == "losses"]
    assert steps_of("losses") == [6, 12, 18, 20]
    assert [len(some) for some in losses] == [6, 6, 6, 2]
    assert [loss for some in losses for loss in some] == wanted["losses"]
    assert steps_of("evaluation") == [0, 8, 16, 20] and steps_of("maps") == [0, 20]
    evaluations = [content for kind, content in told if kind == "evaluation"]
    assert evaluations[0] == {"steps": 0, **wanted["evaluations"][0]}
    assert evaluations[-1] == {"steps": 20, **wanted["evaluations"][1]}
    maps = [content for kind, content in told if kind == "maps"]
    assert maps[-1] == {"steps": 20, "A": wanted["A"], "weights": wanted["maps"]}
    assert maps[0]["weights"] != maps[-1]["weights"]
    assert told[-1][0] == "done" and told[-1][1]["steps"] == 20 and told[-1][1]["seconds"] > 0
    assert found["weights"] == wanted["weights"] and found["kind"] == "Float32Array"
    assert (told[-1][1]["digest"] is None) != repeatable  # of others test_same_bits.py asks


# Trains for long; pauses, goes on, stops; returns how many steps had been taken each time.
PAUSED = """async (message) => {
  let steps = 0;
  let finish;
  const done = new Promise((resolve) => { finish = resolve; });
  const on = {losses: (told) => { steps = told.steps; }, done: finish, error: finish};
  const training = attnModules["engine/trainer.js"].startTraining(message, on);
  const {sentences} = message.task;
  const ask = () => training.ask("answers", {sentences: sentences.slice(0, 2)});
  const until = async (isTrue) => { while (!isTrue()) await ask(); };
  await until(() => steps > 0);
  training.pause();
  await ask();
  const paused = steps;
  for (let i = 0; i < 20; i++) await ask();
  const still = steps;
  training.pause();
  training.resume();
  training.resume();
  await until(() => steps > still);
  training.stop();
  const last = await done;
  const {loss} = await training.ask("evaluation");
  training.resume(); // a training that was stopped stays so
  for (let i = 0; i < 5; i++) await ask();
  const again = await training.ask("evaluation");
  const left = [ask(), new Promise((resolve) => setTimeout(() => resolve("no answer"), 20_000))];
  training.close();
  const unanswered = await Promise.race(left).catch((error) => error.message);
  const refused = await ask().catch((error) => error.message);
  return {paused, still, steps, last, loss, again: again.loss, unanswered, refused};
}"""


def test_a_training_can_be_paused_asked_and_stopped(model_page):
    recipe = RECIPE | {"steps": 1_000_000, "warmup": 0}
    message = start_message(recipe=recipe, reports={"losses": 1, "evaluation": 1_000_000})
    found = model_page.evaluate(PAUSED, message)
    assert 0 < found["paused"] == found["still"] < found["last"]["steps"] == found["steps"]
    assert found["steps"] < 1_000_000
    assert found["again"] == found["loss"] < 10
    assert found["unanswered"] == found["refused"] == "The training was closed."


SIZES = [
    {"num_heads": 4},
    {"num_heads": 1, "num_layers": 3, "d_ff": 20, "norm_position": "post", "bias": True},
    {"num_heads": 2, "d_ff": 9, "norm_position": None},
    {"num_heads": 8, "d_ff": 0},
]


def test_a_model_of_sizes_is_pythons(model_page):
    found = model_page.evaluate(
        """(all) => all.map((sizes) => attnModules["engine/spec.js"].specOf(
          attnModules["engine/sequences.js"].makeLookup({slots: 3, values: 2}), sizes))""",
        [{"d_model": 8, **sizes} for sizes in SIZES],
    )
    task = lookup(slots=3, values=2)
    assert found == [TransformerModel.of_sizes(task, 8, **sizes).spec() for sizes in SIZES]


ASK = """async ([message, question, about]) => {
  const training = attnModules["engine/trainer.js"].startTraining(message, {});
  training.stop();
  try {
    return (await training.ask(question, about)).length;
  } finally {
    training.close();
  }
}"""


def test_a_question_that_can_not_be_answered_is_refused_alone(model_page):
    for question, about, named in (
        ("answer", {}, "a question should be"),
        ("answers", {"sentences": [{"ids": [99]}]}, "a word of sentence 0 should be"),
        ("evaluation", {"headMasks": [[0, 1]]}, "headMasks should be"),
    ):
        with pytest.raises(Error, match=named):
            model_page.evaluate(ASK, [start_message(), question, about])


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
        ({"spec": {}}, "vocabulary_size"),
        ({"reports": {"maps": 0}}, "reports.maps"),
        *(
            ({"recipe": RECIPE | {name: value}}, name)
            for name, value in (
                ("lr", 0), ("lr", 1e30), ("steps", 0.5), ("betas", [0.9]), ("ends_at", 2),
                ("held_out", 0), ("warmup", -1),
            )
        ),
    ],
)  # fmt: skip
def test_a_training_that_can_not_be_is_refused_in_words(model_page, changes, named):
    found, after = model_page.evaluate(ENDED, start_message(**changes))
    assert named in found and "should be" in found
    assert after == f"Error: {found}"


BROKEN = {
    "no workers": ("delete window.Worker", "browser starts none: Worker is not defined"),
    "refused": (
        "window.Worker = class { constructor() { throw new Error('not allowed here'); } }; 0",
        "browser starts none: not allowed here",
    ),
    "code with an error": (
        """attnModules["engine/worker_code.js"].MODULES[0][1] = "(" """,
        "The worker broke down: Uncaught SyntaxError",
    ),
    "an error between messages": (
        """attnModules["engine/worker_code.js"].MODULES.unshift(
          ["more", "() => { setTimeout(() => { throw new Error('later'); }); }"])""",
        "The worker broke down: Uncaught Error: later",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_page_without_a_worker_is_told_so(model_page, name):
    damage, reason = BROKEN[name]
    model_page.reload()
    model_page.evaluate(damage)
    found, after = model_page.evaluate(ENDED, start_message())
    model_page.reload()
    assert reason in found
    assert after == f"Error: {found}"
