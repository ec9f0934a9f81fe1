"""The browser's engine, held equal to Python: languages, models' answers, gradients, trainings.

That models also train as torch trains them, step by step on the same sentences, test_same_bits.py
asks.
"""

import random
from dataclasses import asdict
from functools import partial

import pytest
import torch
from playwright.sync_api import Error
from tools.browser_models import as_told, flat, forbidding

from attncourse.tasks import concord, diagonals, induction, lookup, names, pack
from attncourse.training import RECIPES, answer_loss, evaluate
from attnlib.model import TransformerModel
from attnlib.norms import LayerNorm, RMSNorm
from attnlib.patterns import relation_mass

pytestmark = pytest.mark.everyday  # the engine of every widget that trains

TASKS = (
    concord, names, lookup(slots=3, values=2), diagonals((1, 2, 5), symbols=7, length=9),
    induction(symbols=9, length=23, chunks=(4, 3), filler=0),
)  # fmt: skip


def build(task, *sizes, **options) -> TransformerModel:
    """A model in float64, with parameters that hide nothing and are float32 numbers, too.

    They lie around those that a new model has, so far that none is 0 or 1.
    """
    model = TransformerModel.of_sizes(task, *sizes, **options, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.4).copy_(parameter.float())
    return model


MAKE = """
  const {spec, weights, sentences, headMasks = null, forbidden = null} = given;
  const {TransformerModel} = attnModules["engine/model.js"];
  const model = new TransformerModel(spec, {Numbers: Float64Array});
  model.load(weights);
"""


def with_model(code):
    return f"(given) => {{{MAKE}{code}}}"


COMPUTE = with_model("""
  const before = model.pack(Array(5).fill({ids: Array(spec.length).fill(0)}));
  model.forward(before); // nothing of it may be left
  const listed = (record) => Object.fromEntries(
    Object.entries(record).map(([name, values]) => [name, [...values]]));
  const answers = sentences.map((sentence) => {
    const {logits, weights} = model.answer(sentence, {headMasks, forbidden});
    return {logits: listed(logits), weights: weights.map((map) => [...map])};
  });
  const {evaluate} = attnModules["engine/evaluation.js"];
  const evaluation = evaluate(model, sentences, given.relations, {headMasks, forbidden});
  const batch = model.pack(sentences, {onlyDue: true, forbidden}); // as a training does
  const loss = model.loss(batch, model.forward(batch, {headMasks}));
  model.backward(batch);
  const gradients = model.parameters.map(({name, gradient}) => [name, [...gradient]]);
  return {answers, evaluation, loss, gradients};
""")


def drawn(rng):
    """A task, a model of any form, sentences, muted heads, and a look that is forbidden."""
    divisor = lambda number: rng.choice([n for n in range(1, number + 1) if number % n == 0])  # noqa: E731
    task, d, layers = rng.choice(TASKS), rng.randint(1, 12), rng.randint(1, 3)
    h = divisor(d)
    model = build(
        task, d, h, layers, num_kv_heads=divisor(h), d_ff=rng.choice([0, rng.randint(1, 9)]),
        norm=partial(rng.choice([LayerNorm, RMSNorm]), eps=rng.choice([1e-5, 1e-3])),
        norm_position=rng.choice(["pre", "post", None]), bias=rng.choice([True, False]),
    )  # fmt: skip
    sentences = [*task.sentences(rng.randint(1, 4), seed=rng.randrange(1000))]
    masks = [rng.choice([None, rng.choices([0.0, 1.0, 0.5], k=h)]) for _ in range(layers)]
    forbidden = None
    if task.relations and rng.random() < 0.7:
        relation, head = rng.choice(task.relations).name, rng.choice([None, rng.randrange(h)])
        forbidden = {"relation": relation, "head": head, "layer": rng.randrange(layers)}
    return task, model, sentences, rng.choice([None, masks]), forbidden


def assert_near(found, wanted, least=0.0):
    """Fail if a number is further from what it should be than a small share of the largest."""
    wanted = wanted.detach().flatten()
    found = torch.tensor(found, dtype=torch.float64)
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= max(1e-10 * wanted.abs().max(), least)


def assert_torchs(page, task, model, sentences, masks, forbidden):
    """Fail unless the browser finds what torch finds: answers, shares, the loss, its gradients."""
    given = {"spec": model.spec(), "weights": flat(model.state_dict())}
    given |= {"headMasks": masks, "forbidden": forbidden, "sentences": [*map(as_told, sentences)]}
    given["relations"] = [*map(asdict, task.relations)]
    found = page.evaluate(COMPUTE, given)
    batch = pack(sentences)
    head_masks = masks and [mask and torch.tensor(mask).double() for mask in masks]
    options = {"key_mask": batch.key_mask, "head_masks": head_masks, "need_weights": True}
    with forbidding(model, batch, forbidden):
        said = model(batch.tokens, **options)
        wanted = evaluate(model, sentences, task.relations, head_masks=head_masks)
    evaluation = found["evaluation"]
    for what in ("readouts", "relations", "loss", "joint"):
        assert evaluation[what] == pytest.approx(getattr(wanted, what))
    for name, layers in evaluation["mass"].items():
        for own, weights in zip(layers, said.weights, strict=True):
            heads = relation_mass(weights.detach(), batch.partners[name]).heads
            assert own == pytest.approx(heads.tolist())
    for i, (sentence, answer) in enumerate(zip(sentences, found["answers"], strict=True)):
        T = len(sentence)
        for name, logits in said.logits.items():
            assert_near(answer["logits"][name], logits[i, :T])
        for own, weights in zip(answer["weights"], said.weights, strict=True):
            assert_near(own, weights[i, :, :T, :T])
    loss = answer_loss(said.logits, batch.answers)
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-10)
    names_of, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
    largest = max(gradient.abs().max().item() for gradient in gradients)
    least = 1e-12 * max(largest, 0.1)  # a norm of width 1 leaves gradients that are rounding alone
    assert [name for name, _ in found["gradients"]] == [*names_of]
    for (_, own), gradient in zip(found["gradients"], gradients, strict=True):
        assert_near(own, gradient, least)


def test_models_of_all_forms_are_torchs(model_page):
    for seed in range(30):
        assert_torchs(model_page, *drawn(random.Random(seed)))


ROUND = """(multiples) => {
  const {roundToGrid} = attnModules["engine/grid.js"];
  const values = Float64Array.from(multiples, (multiple) => multiple * 2 ** -20);
  roundToGrid(values);
  return Array.from(values, (value) => [value * 2 ** 20, Object.is(value, -0)]);
}"""


def test_weights_are_rounded_half_to_even_and_there_is_one_zero(model_page):
    multiples = [n / 4 for n in range(-5000, 5001)]
    found = model_page.evaluate(ROUND, multiples)
    assert found == [[round(multiple), False] for multiple in multiples]  # as Python rounds


def test_erf(model_page):
    x = torch.cat([torch.linspace(-7, 7, 1401, dtype=torch.float64), torch.tensor([1e-12, 30.0])])
    found = model_page.evaluate('x => x.map(attnModules["shared/erf.js"].erf)', x.tolist())
    assert found == pytest.approx(torch.erf(x).tolist(), rel=5e-16)


SMALL = TransformerModel.of_sizes(concord, 8, 2, d_ff=6).spec()
REFUSED = {
    "vocabulary_size": {"vocabulary_size": 0},
    "positions": {"positions": ["sinusoidal"]},
    "dropout": {"blocks": [SMALL["blocks"][0] | {"dropout": 0.1}]},
    "num_heads": {"blocks": [SMALL["blocks"][0] | {"num_heads": 3}]},
}


@pytest.mark.parametrize("named", REFUSED)
def test_what_no_model_has_is_refused_by_name(model_page, named):
    with pytest.raises(Error, match="should be") as caught:
        model_page.evaluate(with_model(""), {"spec": SMALL | REFUSED[named], "weights": {}})
    assert named in str(caught.value)


RECIPE = RECIPES["concord"].changed(steps=20, batch=8, warmup=5, held_out=5).as_json()


def start_message(**changes):
    """A training of the small model that a worker can start."""
    sentences = [*map(as_told, concord.sentences(40, seed=0))]
    return {
        "spec": SMALL,
        "recipe": RECIPE,
        "task": {"name": "given", "sentences": sentences, "heldOut": sentences[:5]},
        "weights": flat(build(concord, 8, 2, d_ff=6).state_dict()),
        "reports": {"losses": 6, "evaluation": 8, "maps": 20, "shown": sentences[6]},
    } | changes


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


def test_a_worker_tells_how_a_training_goes(model_page):
    message = start_message(recipe=RECIPE | {"repeatable": False})
    found = model_page.evaluate(IN_A_WORKER, message)
    told, done = found["told"], found["done"]
    assert told["losses"] == [[6, 6], [12, 6], [18, 6], [20, 2]]
    assert [steps for steps, _ in told["evaluation"]] == [0, 8, 16, 20]
    assert told["evaluation"][-1][1] == found["evaluation"] != told["evaluation"][0][1]
    assert [steps for steps, _ in told["maps"]] == [0, 20]
    assert told["maps"][-1][1] == found["maps"] != told["maps"][0][1]
    assert done["steps"] == 20 and done["seconds"] > 0
    assert done["digest"] is None  # of others test_same_bits.py asks


ENDED = """(message) => new Promise((resolve) => {
  const training = attnModules["engine/trainer.js"].startTraining(message, {
    done: () => resolve("done"),
    error: async (reason) => resolve([reason, await training.ask("weights").catch(String)]),
  });
})"""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"task": {"name": "poker"}}, '"poker"'),
        ({"recipe": RECIPE | {"lr": 1e30}}, "a smaller lr"),
        ({"recipe": RECIPE | {"ends_at": 2}}, "ends_at"),
        ({"weights": {}}, "token_embedding.weight should be"),
        ({"weights": {"W_z": [1.0]}}, '["W_z"]'),
        ({"weights": {"token_embedding.weight": [1.0]}}, "x 8 numbers, but is 1"),
    ],
)
def test_a_training_that_can_not_be_is_refused_in_words(model_page, changes, named):
    found, after = model_page.evaluate(ENDED, start_message(**changes))
    assert named in found and "should be" in found
    assert after == f"Error: {found}"


BROKEN = """() => {
  window.Worker = class extends Worker {
    constructor() { super("data:,throw new Error('broken')"); }
  };
}"""


def test_a_worker_that_breaks_down_is_told(model_page):
    model_page.evaluate(BROKEN)
    found, after = model_page.evaluate(ENDED, start_message())
    model_page.reload()
    assert "broke down: " in found and "broken" in found and after == f"Error: {found}"


READ = """([module, task, texts]) => texts.map((text) => {
  try { return attnModules[module][task].read(text); } catch (error) { return error.message; }
})"""


def read_here(read, text):
    """What is read here, or why not."""
    try:
        return as_told(read(text))
    except ValueError as error:
        return str(error)


def test_what_is_typed_is_read_or_refused_in_the_same_words_and_the_same_may_come_next(model_page):
    chooser, beginnings = random.Random(0), []
    texts = [
        "The king that I feared   saw this BIG monk", "the kign saw a monk", "the king saw the",
        "the ball saw the ball", "the king saw the nun . the", "the big " * 12, "  ",
        "the king's {offer}", "the $& saw",
    ]  # fmt: skip
    for sentence in concord.sentences(400, seed=8):
        words = list(sentence.words)
        beginnings.append(" ".join(words[: chooser.randrange(len(words) + 1)]))
        words[chooser.randrange(len(words))] = chooser.choice(concord.vocabulary)  # spoilt
        texts.append(" ".join(words))
    odd = ["Emma", "", "o'neil", "a b", "jürgen", "a" * 16]
    for name in names.texts(300, seed=4):  # of which nearly all break a rule then
        place = chooser.randrange(len(name))
        odd.append(name[:place] + chooser.choice("aeknlrs") + name[place + chooser.randrange(2) :])
    broken = model_page.evaluate(
        "(texts) => texts.map(attnModules['engine/names.js'].names.brokenRules)", odd
    )
    assert broken == [list(names.broken_rules(text)) for text in odd]
    assert {rule for own in broken for rule in own} == {"shape", "harmony", "doubling", "ending"}
    for task, there, own in ((concord, "language", texts), (names, "names", odd)):
        read = model_page.evaluate(READ, [f"engine/{there}.js", task.name, own])
        assert read == [read_here(task.read, text) for text in own]
        assert {type(found) for found in read} == {str, dict}
    follow = model_page.evaluate(
        "(texts) => texts.map(attnModules['engine/language.js'].concord.nextWords)", beginnings
    )
    assert follow == [list(concord.next_words(beginning)) for beginning in beginnings]
