"""The browser's models, held equal to attnlib.model: answers, weights, gradients.

That they also train as torch trains, step by step, test_same_bits.py asks.
"""

import random
from dataclasses import asdict

import pytest
import torch
from playwright.sync_api import Error
from tools.browser_models import (
    NORMS,
    as_told,
    block_spec,
    build,
    flat,
    forbidding,
    model_spec,
    sentences_of,
)

from attncourse.tasks import concord, pack
from attncourse.training import answer_loss, evaluate
from attnlib.model import TransformerModel
from attnlib.patterns import relation_mass

pytestmark = pytest.mark.everyday  # the engine of every widget that trains

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
  const batch = model.pack(sentences, {forbidden});
  const options = {headMasks};
  const answers = model.forward(batch, options);
  const loss = model.loss(batch, answers);
  model.backward(batch);
  const gradients = () => Object.fromEntries(
    model.parameters.map(({name, gradient}) => [name, [...gradient]]));
  const listed = (record) => Object.fromEntries(
    Object.entries(record).map(([name, values]) => [name, [...values]]));
  const found = {
    loss,
    gradients: gradients(),
    logits: Object.fromEntries(model.readouts.map(({name, size}) =>
      [name, [...answers.logits[name].subarray(0, size * batch.rows)]])),
    weights: model.blocks.map(({attention: {h}}, i) =>
      [...answers.weights[i].subarray(0, h * batch.pairs)]),
  };
  const single = sentences.map((sentence) => {
    const {logits, weights} = model.answer(sentence, {...options, forbidden});
    return {logits: listed(logits), weights: weights.map((map) => [...map])};
  });
  const due = model.pack(sentences, {onlyDue: true, forbidden});
  const lossOfDue = model.loss(due, model.forward(due, options));
  model.backward(due);
  return {...found, single, ofDue: {loss: lossOfDue, gradients: gradients()}};
""")


def drawn(rng):
    """A model of any shape, sentences of different lengths, muted heads, forbidden looks."""
    d, yes = rng.randint(1, 12), lambda: rng.random() < 0.5
    divisor = lambda number: rng.choice([n for n in range(1, number + 1) if number % n == 0])  # noqa: E731

    def norm():
        kind = rng.choice([*NORMS])
        bias = {"bias": yes()} if kind == "LayerNorm" else {}
        return NORMS[kind] | {"eps": rng.choice([1e-5, 1e-3])} | bias

    def block():
        h, d_ff = divisor(d), rng.choice([None, rng.randint(1, 9)])
        made = block_spec(h, d_ff, rng.choice(["pre", "post", None]), num_kv_heads=divisor(h))
        network = d_ff and {"d_ff": d_ff, "bias": yes()}
        norms = [norm() for _ in made["norms"]]
        changes = {"bias": yes(), "residual": rng.random() < 0.7, "norms": norms}
        return made | changes | {"feed_forward": network}

    spec = model_spec(
        [block() for _ in range(rng.randint(1, 3))],
        vocabulary_size=rng.randint(1, 9),
        length=rng.randint(1, 9),
        d_model=d,
        causal=yes(),
        final_norm=rng.choice([None, norm()]),
        readouts={name: rng.randint(1, 9) for name in rng.choice(["A", "B", "AB", ["next", "A"]])},
        readout_bias=yes(),
    )
    lengths = [rng.randint(1, spec["length"]) for _ in range(rng.randint(1, 4))]
    sentences = sentences_of(spec, lengths, rng)
    next(iter(sentences[0].answers.values()))[0] = 0  # one is due at least
    heads = [block["num_heads"] for block in spec["blocks"]]
    masks = [rng.choice([None, rng.choices([0.0, 1.0, 0.5], k=h)]) for h in heads]
    forbidden = {"relation": "to", "head": rng.choice([None, rng.randrange(min(heads))])}
    forbidden |= rng.choice([{}, {"layer": rng.randrange(len(heads))}])
    return spec, sentences, rng.choice([None, masks]), rng.choice([None, forbidden])


def as_tensors(masks):
    return masks and [None if mask is None else torch.tensor(mask).double() for mask in masks]


def compute(model, sentences, masks, forbidden):
    """What torch finds: loss, logits and weights of each sentence, gradients."""
    batch = pack(sentences)
    options = {"head_masks": as_tensors(masks), "need_weights": True}
    with forbidding(model, batch, forbidden):
        said = model(batch.tokens, key_mask=batch.key_mask, **options)
    loss = answer_loss(said.logits, batch.answers)
    gradients = torch.autograd.grad(loss, [*model.parameters()], materialize_grads=True)
    lengths = [*enumerate(map(len, sentences))]
    return {
        "loss": loss.item(),
        "logits": {
            name: torch.cat([x[i, :T].flatten() for i, T in lengths])
            for name, x in said.logits.items()
        },
        "weights": [
            torch.cat([x[i, :, :T, :T].flatten() for i, T in lengths]) for x in said.weights
        ],
        "gradients": dict(zip(dict(model.named_parameters()), gradients, strict=True)),
    }


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
    """Fail unless the browser finds what torch finds, one sentence by one, too."""
    options = {"headMasks": masks, "forbidden": forbidden}
    found = page.evaluate(COMPUTE, as_given(model, sentences) | options)
    wanted = compute(model, sentences, masks, forbidden)
    for way in (found, found["ofDue"]):
        assert way["loss"] == pytest.approx(wanted["loss"], rel=1e-10)
    for name, logits in wanted["logits"].items():
        assert_near(found["logits"][name], logits)
        assert found["logits"][name] == [x for one in found["single"] for x in one["logits"][name]]
    for layer, weights in enumerate(wanted["weights"]):
        assert_near(found["weights"][layer], weights)
        single = [x for one in found["single"] for x in one["weights"][layer]]
        assert found["weights"][layer] == single
    assert list(found["gradients"]) == list(wanted["gradients"])
    largest = max(gradient.abs().max().item() for gradient in wanted["gradients"].values())
    least = 1e-12 * max(largest, 0.1)  # a norm of width 1 leaves gradients that are rounding alone
    for name, gradient in wanted["gradients"].items():
        for way in (found, found["ofDue"]):
            assert_near(way["gradients"][name], gradient, least)


def test_models_of_all_shapes_are_torchs(model_page):
    for seed in range(100):
        spec, *others = drawn(random.Random(seed))
        assert_torchs(model_page, build(spec), *others)


DECAY = """([multiples, rates, weightDecay]) => {
  const {AdamW} = attnModules["engine/adamw.js"];
  const {roundToGrid} = attnModules["engine/grid.js"];
  const values = Float64Array.from(multiples, (multiple) => multiple * 2 ** -20);
  const gradient = new Float64Array(values.length);
  const optimizer = new AdamW([{values, gradient}], {weightDecay});
  return rates.map((rate) => {
    optimizer.step(rate);
    const before = [...values];
    roundToGrid(values);
    return [before, Array.from(values, (value) => [value, Object.is(value, -0)])];
  });
}"""


@pytest.mark.parametrize("weight_decay", [2**-3, 0.2])
def test_a_weight_without_a_gradient_decays_as_torchs_even_between_two(model_page, weight_decay):
    """Halfway between two multiples the last bit decides, and 1/256 x 1/8 leads there."""
    multiples = [*range(-5000, 5001)]
    rates = [2**-8, 4e-3, 1.3e-4]
    weights = torch.tensor(multiples, dtype=torch.float64) / 2**20
    weights.grad = torch.zeros_like(weights)
    optimizer = torch.optim.AdamW([weights], weight_decay=weight_decay, fused=True)
    found = model_page.evaluate(DECAY, [multiples, rates, weight_decay])
    for rate, (before, after) in zip(rates, found, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        assert before == weights.tolist()
        weights.copy_((weights * 2**20).round() / 2**20)  # half to even
        assert after == [[value, False] for value in weights.tolist()]  # and no negative zero


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
    [
        (None, 3, "float64"),
        (None, None, "float32"),
        ([[0, 1, 1, 0], None], None, "float32"),
    ],
)
def test_an_evaluation_is_pythons(model_page, masks, head, numbers):
    model = build(TransformerModel.of_sizes(concord, 16, 4, 2).spec())
    sentences = concord.sentences(30, seed=1)
    forbidden = {"relation": "verb>object", "head": head}
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


BLOCK = block_spec(2, 6)
RIGHT = model_spec([BLOCK])
NO_MODELS = {
    "vocabulary_size": 0, "causal": None, "readouts": {"A": 0}, "positions": ["sinusoidal"],
    "final_norm": NORMS["RMSNorm"] | {"eps": -1},
}  # fmt: skip
NO_BLOCKS = {"num_heads": 3, "norms": [], "dropout": 0.1, "rotary": {"base": 1e4}}
REFUSED = [
    *((name, {"spec": RIGHT | {name: value}}) for name, value in NO_MODELS.items()),
    *((name, {"spec": model_spec([BLOCK | {name: value}])}) for name, value in NO_BLOCKS.items()),
    ('"W"', {"weights": {"W": [1.0]}}),
    ("final_norm.gain", {"weights": {"final_norm.gain": [1.0]}}),
    ("length of sentence 0", {"sentences": [{"ids": [1] * 8}]}),
    ("a word of sentence 1", {"sentences": [{"ids": [1]}, {"ids": [11]}]}),
    ("an answer A", {"sentences": [{"ids": [1], "answers": {"A": [5]}}]}),
    ("headMasks[0]", {"headMasks": [[1]]}),
    ("the forbidden relation", {"forbidden": {"relation": "a>b", "head": None}}),
    ("the forbidden head", {"forbidden": {"relation": "a>b", "head": 2}}),
]
CALL = with_model("""
  model.forward(model.pack(sentences, {forbidden}), {headMasks});
""")


@pytest.mark.parametrize(("named", "changes"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(model_page, named, changes):
    given = {"spec": RIGHT, "sentences": [{"ids": [0]}]}
    weights = {} if "spec" in changes else flat(build(RIGHT).state_dict())
    given |= changes | {"weights": weights | changes.get("weights", {})}
    with pytest.raises(Error, match="should be") as caught:
        model_page.evaluate(CALL, given)
    assert named in str(caught.value)
