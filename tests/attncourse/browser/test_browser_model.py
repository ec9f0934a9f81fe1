"""The browser's engine, held equal to Python: languages, models' answers, gradients, trainings.

That models also train as torch trains them, step by step, test_same_bits.py asks.
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

# What a message to a worker says of a task, and the same task here.
TASKS = {
    "concord": ({}, concord),
    "names": ({}, names),
    "lookup": ({"slots": 3, "values": 2}, lookup(slots=3, values=2)),
    "diagonals": (
        {"offsets": [1, 2, 5], "symbols": 7, "length": 9},
        diagonals((1, 2, 5), symbols=7, length=9),
    ),
    "induction": (
        {"symbols": 9, "length": 23, "chunks": [4, 3], "filler": 0},
        induction(symbols=9, length=23, chunks=(4, 3), filler=0),
    ),
}


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
  const {spec, weights, sentences, headMasks = null, forbidden = null, numbers} = given;
  const {TransformerModel} = attnModules["engine/model.js"];
  const Numbers = numbers === "float32" ? Float32Array : Float64Array;
  const model = new TransformerModel(spec, {Numbers});
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
  const batch = model.pack(sentences, {onlyDue: true, forbidden}); // as a training does
  const loss = model.loss(batch, model.forward(batch, {headMasks}));
  model.backward(batch);
  const gradients = model.parameters.map(({name, gradient}) => [name, [...gradient]]);
  return {answers, loss, gradients};
""")


def drawn(rng):
    """A model of any form, sentences of its task, muted heads, and a look that is forbidden."""
    divisor = lambda number: rng.choice([n for n in range(1, number + 1) if number % n == 0])  # noqa: E731
    (_, task), d, layers = rng.choice([*TASKS.values()]), rng.randint(1, 12), rng.randint(1, 3)
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
    return model, sentences, rng.choice([None, masks]), forbidden


def as_tensors(masks):
    return masks and [None if mask is None else torch.tensor(mask).double() for mask in masks]


def assert_near(found, wanted, least=0.0):
    """Fail if a number is further from what it should be than a small share of the largest."""
    wanted = wanted.detach().flatten()
    found = torch.tensor(found, dtype=torch.float64)
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= max(1e-10 * wanted.abs().max(), least)


def as_given(model, sentences):
    """What a page is given of a model and of sentences."""
    told = [*map(as_told, sentences)]
    return {"spec": model.spec(), "weights": flat(model.state_dict()), "sentences": told}


def assert_torchs(page, model, sentences, masks, forbidden):
    """Fail unless the browser finds what torch finds: answers, the loss and its gradients."""
    options = {"headMasks": masks, "forbidden": forbidden}
    found = page.evaluate(COMPUTE, as_given(model, sentences) | options)
    batch = pack(sentences)
    options = {"head_masks": as_tensors(masks), "need_weights": True}
    with forbidding(model, batch, forbidden):
        said = model(batch.tokens, key_mask=batch.key_mask, **options)
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
    for seed in range(40):
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


EVALUATE = with_model("""
  const {evaluate} = attnModules["engine/evaluation.js"];
  return evaluate(model, sentences, given.relations, {headMasks, forbidden});
""")


@pytest.mark.parametrize(
    ("masks", "head", "numbers"),
    [(None, 3, "float64"), ([[0, 1, 1, 0], None], None, "float32")],
)
def test_an_evaluation_is_pythons(model_page, masks, head, numbers):
    model = build(concord, 16, 4, 2)
    sentences = concord.sentences(30, seed=1)
    forbidden = {"relation": "verb>object", "head": head, "layer": 1}
    options = {"headMasks": masks, "forbidden": forbidden, "numbers": numbers}
    options["relations"] = [*map(asdict, concord.relations)]
    found = model_page.evaluate(EVALUATE, as_given(model, sentences) | options)
    masks = as_tensors(masks)
    batch = pack(sentences)
    options = {"key_mask": batch.key_mask, "head_masks": masks, "need_weights": True}
    with forbidding(model, batch, forbidden):
        wanted = evaluate(model, sentences, concord.relations, head_masks=masks)
        said = model(batch.tokens, **options)
    for what in ("readouts", "relations", "loss", "joint"):
        assert found[what] == pytest.approx(getattr(wanted, what), rel=1e-5)
    assert 0 < wanted.joint < 1
    for layer, weights in enumerate(said.weights):
        for name, partners in batch.partners.items():
            heads = relation_mass(weights.detach(), partners).heads
            assert found["mass"][name][layer] == pytest.approx(heads.tolist(), rel=1e-5)


SMALL = TransformerModel.of_sizes(concord, 8, 2, d_ff=6).spec()
REFUSED = [
    ("vocabulary_size", {"spec": SMALL | {"vocabulary_size": 0}}),
    ("positions", {"spec": SMALL | {"positions": ["sinusoidal"]}}),
    ("dropout", {"spec": SMALL | {"blocks": [SMALL["blocks"][0] | {"dropout": 0.1}]}}),
    ("num_heads", {"spec": SMALL | {"blocks": [SMALL["blocks"][0] | {"num_heads": 3}]}}),
    ("final_norm.gain", {"weights": {"final_norm.gain": [1.0]}}),
    ("length of sentence 0", {"sentences": [{"ids": [1] * 99}]}),
    ("a word of sentence 1", {"sentences": [{"ids": [1]}, {"ids": [999]}]}),
    ("an answer A", {"sentences": [{"ids": [1], "answers": {"A": [999]}}]}),
    ("headMasks[0]", {"headMasks": [[1]]}),
    ("the forbidden relation", {"forbidden": {"relation": "a>b", "head": None}}),
    ("the forbidden head", {"forbidden": {"relation": "a>b", "head": 2}}),
]
CALL = with_model("""
  model.forward(model.pack(sentences, {forbidden}), {headMasks});
""")


@pytest.mark.parametrize(("named", "changes"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(model_page, named, changes):
    given = {"spec": SMALL, "sentences": [{"ids": [0]}]}
    weights = {} if "spec" in changes else flat(build(concord, 8, 2, d_ff=6).state_dict())
    given |= changes | {"weights": weights | changes.get("weights", {})}
    with pytest.raises(Error, match="should be") as caught:
        model_page.evaluate(CALL, given)
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
        ({"recipe": RECIPE | {"lr": 1e30}}, "a smaller lr"),
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


@pytest.fixture
def ask(model_page):
    """Return what asks the engine's modules for the value of an expression."""
    modules = ("language", "names", "tasks")
    listed = ", ".join(f'attnModules["engine/{name}.js"]' for name in modules)
    head = f"const [{', '.join(modules)}] = [{listed}];"
    return lambda expression, x=None: model_page.evaluate(f"(x) => {{ {head} {expression} }}", x)


@pytest.mark.parametrize("name", TASKS)
def test_a_seed_gives_the_same_sentences_none_of_those_held_out(ask, name):
    options, task = TASKS[name]
    message = {"seed": 7, "heldOut": 300, "evaluated": 20, "options": options}
    evaluated, fresh, relations = ask(
        """const [name, message] = x;
        const { next, heldOut, relations } = tasks.TASKS[name](message);
        return [heldOut, Array.from({ length: 400 }, next), relations];""",
        [name, message],
    )
    wanted = task.sentences(300, seed=2**31)
    assert evaluated == [as_told(sentence) for sentence in wanted[:20]]
    others = task.sentences(400, seed=7, without=wanted)
    assert fresh == [as_told(sentence) for sentence in others]
    assert relations == [{"name": own.name, "readout": own.readout} for own in task.relations]


def read_here(read, text):
    """What is read here, or why not."""
    try:
        return as_told(read(text))
    except ValueError as error:
        return str(error)


def test_what_is_typed_is_read_or_refused_in_the_same_words_and_the_same_may_come_next(ask):
    chooser, beginnings = random.Random(0), []
    texts = [
        "The king that I feared   saw this BIG monk", "the kign saw a monk", "the king saw the",
        "the ball saw the ball", "the king saw the nun . the", "the big " * 12, "  ",
    ]  # fmt: skip
    for sentence in concord.sentences(400, seed=8):
        words = list(sentence.words)
        beginnings.append(" ".join(words[: chooser.randrange(len(words) + 1)]))
        words[chooser.randrange(len(words))] = chooser.choice(concord.vocabulary)  # spoilt
        texts.append(" ".join(words))
    odd = ["Emma", "mellen", "", "a b", "jürgen", "a" * 16]
    for task, there, own in ((concord, "language.concord", texts), (names, "names.names", odd)):
        read = ask(
            f"""return x.map((text) => {{
              try {{ return {there}.read(text); }} catch (error) {{ return error.message; }}
            }});""",
            own,
        )
        assert read == [read_here(task.read, text) for text in own]
        assert {type(found) for found in read} == {str, dict}
    follow = ask("return x.map(language.concord.nextWords)", beginnings)
    assert follow == [list(concord.next_words(beginning)) for beginning in beginnings]


def test_names_break_the_same_rules(ask):
    drawn = names.texts(300, seed=4)
    spoilt = [
        name[:place] + letter + name[place + cut :]
        for i, name in enumerate(drawn)
        for place, letter, cut in [(i % len(name), "aeknlrs"[i % 7], i % 2)]
    ]
    texts = [*drawn, *spoilt, "", "n", "x" * 16]
    found = ask("return x.map((name) => names.names.brokenRules(name));", texts)
    assert found == [list(names.broken_rules(text)) for text in texts]
    kinds = {"shape", "harmony", "doubling", "ending"}
    assert {rule for broken in found for rule in broken} == kinds
