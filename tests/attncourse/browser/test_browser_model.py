"""The browser's models, held equal to attnlib.model: answers, weights, gradients, steps."""

import dataclasses
import random
from contextlib import nullcontext

import pytest
import torch
from playwright.sync_api import Error
from tools.browser_models import (
    NORMS,
    RECIPE,
    block_spec,
    build,
    flat,
    forbidding,
    model_spec,
    padded,
    round_to_grid,
    sentences_of,
)

from attncourse.tasks import concord, pack
from attncourse.training import RECIPES, Recipe, answer_loss, evaluate
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
    """A model of any shape, sentences of different lengths, a factor for each head or none."""
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
    sentences = sentences_of(spec, lengths, seed=rng.randint(0, 999))
    next(iter(sentences[0]["answers"].values()))[0] = 0  # one is due at least
    heads = [block["num_heads"] for block in spec["blocks"]]
    masks = [rng.choice([None, rng.choices([0.0, 1.0, 0.5], k=h)]) for h in heads]
    return spec, sentences, rng.choice([None, masks])


def as_tensors(masks):
    return masks and [None if mask is None else torch.tensor(mask).double() for mask in masks]


def compute(model, sentences, masks=None):
    """What torch finds: loss, logits and weights of each sentence, gradients."""
    tokens, key_mask, answers = padded(sentences)
    said = model(tokens, key_mask=key_mask, head_masks=as_tensors(masks), need_weights=True)
    loss = answer_loss(said.logits, answers)
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    lengths = key_mask.sum(1).tolist()
    return {
        "loss": loss.item(),
        "logits": {
            name: torch.cat([x[i, :T].flatten() for i, T in enumerate(lengths)])
            for name, x in said.logits.items()
        },
        "weights": [
            torch.cat([x[i, :, :T, :T].flatten() for i, T in enumerate(lengths)])
            for x in said.weights
        ],
        "gradients": {
            name: torch.zeros_like(parameter) if gradient is None else gradient
            for (name, parameter), gradient in zip(model.named_parameters(), gradients, strict=True)
        },
    }


def assert_near(found, wanted, share, floor=0.0):
    """Assert that no number is further from what it should be than a share of the largest."""
    wanted = wanted.detach().flatten()
    found = torch.tensor(found, dtype=torch.float64)
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= max(share * wanted.abs().max(), floor)


def computed(page, spec, weights, sentences, masks=None, numbers="float64", forbidden=None):
    """What the browser finds."""
    given = {"spec": spec, "weights": flat(weights), "sentences": sentences}
    given |= {"headMasks": masks, "numbers": numbers, "forbidden": forbidden}
    return page.evaluate(COMPUTE, given)


def assert_torchs(page, model, sentences, masks, numbers, share, floor, forbidden=None, hooks=None):
    """Assert that the browser finds what torch finds; what is forbidden, hooks forbid to torch.

    Numbers may differ by a share of the largest of their tensor; gradients also by a share,
    `floor`, of the largest of the whole model.
    """
    with hooks or nullcontext():
        wanted = compute(model, sentences, masks)
    weights = model.state_dict()
    found = computed(page, model.spec(), weights, sentences, masks, numbers, forbidden)
    for way in (found, found["ofDue"]):
        assert way["loss"] == pytest.approx(wanted["loss"], rel=share)
    for name, logits in wanted["logits"].items():
        assert_near(found["logits"][name], logits, share)
        assert found["logits"][name] == [x for one in found["single"] for x in one["logits"][name]]
    for layer, weights in enumerate(wanted["weights"]):
        assert_near(found["weights"][layer], weights, share)
        single = [x for one in found["single"] for x in one["weights"][layer]]
        assert found["weights"][layer] == single
    assert list(found["gradients"]) == list(wanted["gradients"])
    largest = max(gradient.abs().max().item() for gradient in wanted["gradients"].values())
    largest = max(largest, 0.1)  # a norm of width 1 leaves gradients that are rounding alone
    for name, gradient in wanted["gradients"].items():
        for way in (found, found["ofDue"]):
            assert_near(way["gradients"][name], gradient, share, floor * largest)


def test_models_of_all_shapes_are_torchs(model_page):
    for seed in range(100):
        spec, sentences, masks = drawn(random.Random(seed))
        assert_torchs(model_page, build(spec), sentences, masks, "float64", 1e-10, 1e-12)


def test_a_model_may_have_no_layers(model_page):
    like = build(model_spec([block_spec()]))
    weights = {n: x for n, x in like.state_dict().items() if not n.startswith("blocks")}
    sentences = [{"ids": [3, 1, 4], "answers": {"A": [0, 1, 2], "B": [None] * 3}}]
    found = computed(model_page, model_spec(), weights, sentences)
    x = weights["token_embedding.weight"][[3, 1, 4]] + weights["position_embedding.weight"][:3]
    logits = like.final_norm(x) @ weights["readouts.B.weight"].T
    assert_near(found["logits"]["B"], logits, 1e-12)
    assert found["weights"] == []


TRAIN = with_model("""
  const {Training} = attnModules["engine/training.js"];
  const {TASKS} = attnModules["engine/tasks.js"];
  const training = new Training(model, TASKS.given({sentences}), given.recipe);
  return Array.from({length: given.recipe.steps}, () => training.step());
""")
TRAINED = [
    model_spec([block_spec(4)], vocabulary_size=89, length=20, d_model=64),
    model_spec([block_spec(2, 48, "post")] * 2, d_model=16, length=20, causal=True),
    model_spec([block_spec(3, 30, bias=True, num_kv_heads=1)] * 3, d_model=12, length=20),
]


@pytest.mark.parametrize("spec", TRAINED)
def test_twenty_steps_are_torchs(model_page, spec):
    model = TransformerModel.of_spec(spec, dtype=torch.float64)
    round_to_grid(model)
    sentences = sentences_of(spec, [5 + i % 16 for i in range(96)])  # some come twice
    given_ = {"spec": spec, "weights": flat(model.state_dict()), "sentences": sentences}
    found = model_page.evaluate(TRAIN, given_ | {"recipe": RECIPE})
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    recipe, wanted = Recipe("short", concord, **RECIPE | {"betas": (0.9, 0.98)}), []
    for step in range(RECIPE["steps"]):
        optimizer.param_groups[0]["lr"] = recipe.learning_rate(step)
        batch = [sentences[i % 96] for i in range(8 * step, 8 * step + 8)]
        tokens, key_mask, answers = padded(batch)
        loss = answer_loss(model(tokens, key_mask=key_mask).logits, answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        round_to_grid(model)
        wanted.append(loss.item())
    assert wanted[-1] < wanted[0] - 0.1
    assert found == pytest.approx(wanted, abs=1e-12)


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


@pytest.mark.parametrize("weight_decay", [2**-3, 0.2, 0.0])
def test_a_weight_without_a_gradient_decays_as_torchs_even_between_two(model_page, weight_decay):
    """Halfway between two multiples the last bit decides, and 1/256 x 1/8 leads there."""
    multiples = [*range(-5000, 5001)]
    rates = [2**-8, *(RECIPES["concord"].learning_rate(step) for step in (0, 30, 399))]
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


RATES_OF = """(recipe) => Array.from({length: recipe.steps}, (_, step) =>
  attnModules["engine/training.js"].learningRate(recipe, step))"""


@pytest.mark.parametrize("name", RECIPES)
def test_the_learning_rate_is_pythons(model_page, name):
    recipe = RECIPES[name]
    found = model_page.evaluate(RATES_OF, recipe.as_json())
    assert found == [recipe.learning_rate(step) for step in range(recipe.steps)]
    model_page.evaluate('attnModules["engine/training.js"].checkRecipe', recipe.as_json())


EVALUATE = with_model("""
  const {evaluate} = attnModules["engine/evaluation.js"];
  return evaluate(model, sentences, given.relations, {headMasks, forbidden});
""")


@pytest.fixture
def of_concord():
    """A model, sentences of its task, and the same as the browser has them."""
    sentences = concord.sentences(30, seed=1)
    given = [dataclasses.asdict(sentence) for sentence in sentences]
    for sentence in given:
        pairs = sentence["partners"]
        sentence["partners"] = {
            name: {str(word): partner for word, partner in of.items()} for name, of in pairs.items()
        }
    return build(TransformerModel.of_sizes(concord, 16, 4, 2).spec()), sentences, given


def evaluated(page, model, sentences, masks=None, forbidden=None):
    given = {"spec": model.spec(), "weights": flat(model.state_dict()), "sentences": sentences}
    given["relations"] = [dataclasses.asdict(relation) for relation in concord.relations]
    return page.evaluate(EVALUATE, given | {"headMasks": masks, "forbidden": forbidden})


@pytest.mark.parametrize("masks", [None, [[0, 1, 1, 0], None]])
def test_an_evaluation_is_pythons(model_page, of_concord, masks):
    model, sentences, given = of_concord
    found = evaluated(model_page, model, given, masks)
    masks = as_tensors(masks)
    wanted = evaluate(model, sentences, concord.relations, head_masks=masks)
    mass = found.pop("mass")
    assert found.pop("readouts") == pytest.approx(wanted.readouts)
    assert found.pop("relations") == pytest.approx(wanted.relations)
    assert 0 < wanted.joint < 1
    assert found == pytest.approx({"loss": wanted.loss, "joint": wanted.joint})
    batch = pack(sentences)
    options = {"key_mask": batch.key_mask, "head_masks": masks, "need_weights": True}
    for layer, weights in enumerate(model(batch.tokens, **options).weights):
        for name, partners in batch.partners.items():
            heads = relation_mass(weights.detach(), partners).heads
            assert mass[name][layer] == pytest.approx(heads.tolist())


@pytest.mark.parametrize("numbers", ["float32", "float64"])
@pytest.mark.parametrize("masks", [None, [[1.0, 0.0, 1.0, 0.5], None]])
@pytest.mark.parametrize("head", [None, 0, 3])
def test_forbidden_looks_are_torchs(model_page, of_concord, head, masks, numbers):
    model, sentences, given = of_concord
    forbidden = {"relation": "verb>object", "head": head}
    partners = pack(sentences).partners["verb>object"]
    share = 1e-5 if numbers == "float32" else 1e-12
    hooks = forbidding(model, partners, head)
    assert_torchs(model_page, model, given, masks, numbers, share, share, forbidden, hooks)
    with forbidding(model, partners, head):
        wanted = evaluate(model, sentences, concord.relations)
    found = evaluated(model_page, model, given, forbidden=forbidden)
    assert found["relations"] == pytest.approx(wanted.relations)


def test_a_row_that_may_look_nowhere_has_no_weights_and_the_others_stay(model_page):
    spec = model_spec([block_spec()], causal=True)
    weights = build(spec).state_dict()
    answers = {"A": [0, 1, 2], "B": [None] * 3}
    sentence = {"ids": [3, 1, 4], "answers": answers, "partners": {"self": {"0": 0}}}
    plain, in_none, in_one, elsewhere = (
        computed(model_page, spec, weights, [sentence], forbidden=forbidden)["single"][0]
        for forbidden in (
            None,
            {"relation": "self", "head": None},
            {"relation": "self", "head": 1},
            {"relation": "self", "head": 1, "layer": 1},
        )
    )
    assert elsewhere == plain
    first_rows = {0: {*range(3)}, 1: {*range(9, 12)}}  # of each head's weights, 3 x 3
    for found, blind in ((in_none, first_rows[0] | first_rows[1]), (in_one, first_rows[1])):
        weights = [0 if i in blind else one for i, one in enumerate(plain["weights"][0])]
        assert found["weights"][0] == weights
        assert found["logits"]["B"][:3] != plain["logits"]["B"][:3]
        assert found["logits"]["B"][3:] == plain["logits"]["B"][3:]


BLOCK = block_spec(2, 6)
RMS = NORMS["RMSNorm"]
RIGHT = model_spec([BLOCK])
NO_MODELS = {
    "vocabulary_size": [0], "length": [2.5], "causal": [None], "readout_bias": [1],
    "readouts": [{}, {"A": 0}], "blocks": [3, [3]], "tied": [True], "positions": ["sinusoidal"],
    "final_norm": [{}, RMS | {"eps": -1}, {"kind": "LayerNorm", "eps": 0}, RMS | {"gain": False}],
}  # fmt: skip
NO_BLOCKS = {
    "num_heads": [3, 0], "num_kv_heads": [4], "bias": ["no"], "residual": [None], "dropout": [0.1],
    "attention_dropout": [0.1], "norm_position": ["in"], "norms": [[], [RMS], [RMS] * 3],
    "rotary": [{"base": 1e4}],
    "feed_forward": [6, {"d_ff": 0}, {"d_ff": 1}, {"d_ff": 6, "bias": True, "activation": "relu"}],
}  # fmt: skip
NO_INPUTS = {
    '"W"': [{"weights": {"W": [1.0]}}],
    "final_norm.gain": [{"weights": {"final_norm.gain": x}} for x in ([1.0], None, [None] * 8)],
    "a batch": [{"sentences": []}],
    "length of sentence 0": [{"sentences": [x]} for x in ({}, {"ids": []}, {"ids": [1] * 8})],
    "a word of sentence 1": [{"sentences": [{"ids": [1]}, {"ids": [11]}]}],
    "answers A of sentence 0": [{"sentences": [{"ids": [1], "answers": {"A": []}}]}],
    "an answer A": [{"sentences": [{"ids": [1], "answers": {"A": [5]}}]}],
    "headMasks": [{"headMasks": [[1, 1], None]}], "headMasks[0]": [{"headMasks": [[1]]}],
    "the forbidden relation": [{"forbidden": {"relation": "a>b", "head": None}}],
    "the forbidden head": [{"forbidden": {"relation": "a>b", "head": 2}}],
    "the model": [{"spec": None}],
}  # fmt: skip
REFUSED = [
    *((key, {"spec": RIGHT | {key: one}}) for key in NO_MODELS for one in NO_MODELS[key]),
    *((k, {"spec": model_spec([BLOCK | {k: one}])}) for k in NO_BLOCKS for one in NO_BLOCKS[k]),
    *((key, changes) for key in NO_INPUTS for changes in NO_INPUTS[key]),
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
