"""The browser's models, held equal to attnlib.model: answers, weights, gradients, steps."""

import dataclasses
import itertools
import re
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
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
from attncourse.training import RECIPES, answer_loss, evaluate
from attnlib.model import TransformerModel
from attnlib.patterns import relation_mass

pytestmark = pytest.mark.everyday  # the engine of every widget that trains

COMPUTE = """({spec, weights, sentences, headMasks, forbidden, numbers}) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const Numbers = {float32: Float32Array, float64: Float64Array}[numbers];
  const model = new TransformerModel(spec, {Numbers});
  model.load(weights);
  const before = model.pack(Array(5).fill({ids: Array(spec.length).fill(0)}));
  model.forward(before); // nothing of it may be left
  const batch = model.pack(sentences, {forbidden});
  const options = {headMasks};
  const answers = model.forward(batch, options);
  const loss = model.loss(batch, answers);
  model.backward(batch);
  const gradients = () => Object.fromEntries(
    model.parameters.map(({name, gradient}) => [name, [...gradient]]));
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
    const listed = Object.entries(logits).map(([name, values]) => [name, [...values]]);
    return {logits: Object.fromEntries(listed), weights: weights.map((map) => [...map])};
  });
  const due = model.pack(sentences, {onlyDue: true, forbidden});
  const lossOfDue = model.loss(due, model.forward(due, options));
  model.backward(due);
  return {...found, single, ofDue: {loss: lossOfDue, gradients: gradients()}};
}"""

readouts = st.dictionaries(st.sampled_from(["A", "B", "next"]), st.integers(1, 9), min_size=1)


@st.composite
def norms(draw):
    norm = NORMS[draw(st.sampled_from([*NORMS]))] | {"eps": draw(st.sampled_from([1e-5, 1e-3]))}
    return norm | {"bias": draw(st.booleans())} if norm["kind"] == "LayerNorm" else norm


@st.composite
def blocks(draw, d):
    h = draw(st.sampled_from([h for h in range(1, d + 1) if d % h == 0]))
    position = draw(st.sampled_from(["pre", "post", None]))
    d_ff = draw(st.none() | st.integers(1, 9))
    count = 0 if position is None else 1 + (d_ff is not None)
    network = None if d_ff is None else {"d_ff": d_ff, "bias": draw(st.booleans())}
    return block_spec(
        h,
        norm_position=position,
        num_kv_heads=draw(st.sampled_from([n for n in range(1, h + 1) if h % n == 0])),
        bias=draw(st.booleans()),
        feed_forward=network,
        norms=[draw(norms()) for _ in range(count)],
        residual=draw(st.sampled_from([True, True, False])),
    )


@st.composite
def specs(draw):
    d = draw(st.integers(1, 12))
    return model_spec(
        draw(st.lists(blocks(d), min_size=1, max_size=3)),
        vocabulary_size=draw(st.integers(1, 9)),
        length=draw(st.integers(1, 9)),
        d_model=d,
        causal=draw(st.booleans()),
        final_norm=draw(st.none() | norms()),
        readouts=draw(readouts),
        readout_bias=draw(st.booleans()),
    )


@st.composite
def batches(draw, spec):
    """Sentences of different lengths, one answer at least."""
    lengths = draw(st.lists(st.integers(1, spec["length"]), min_size=1, max_size=4))
    sentences = [
        {
            "ids": [draw(st.integers(0, spec["vocabulary_size"] - 1)) for _ in range(T)],
            "answers": {
                name: [draw(st.none() | st.integers(0, count - 1)) for _ in range(T)]
                for name, count in spec["readouts"].items()
            },
        }
        for T in lengths
    ]
    next(iter(sentences[0]["answers"].values()))[0] = 0
    return sentences


@st.composite
def head_masks(draw, spec):
    """A factor for each head of each layer, or none at all."""
    if draw(st.booleans()):
        return None
    factors = st.sampled_from([0.0, 1.0, 0.5])
    return [
        draw(st.none() | st.lists(factors, min_size=n, max_size=n))
        for n in (block["num_heads"] for block in spec["blocks"])
    ]


def compute(model, sentences, masks=None):
    """What torch finds: loss, logits and weights of each sentence, gradients."""
    tokens, key_mask, answers = padded(sentences)
    masks = masks and [None if m is None else torch.tensor(m).double() for m in masks]
    said = model(tokens, key_mask=key_mask, head_masks=masks, need_weights=True)
    loss = answer_loss(said.logits, answers)
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    names = [name for name, _ in model.named_parameters()]
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
            for name, parameter, gradient in zip(names, model.parameters(), gradients, strict=True)
        },
    }


def assert_near(found, wanted, share, floor=0.0):
    """Assert that no number is further from what it should be than a share of the largest."""
    wanted = wanted.detach().flatten()
    found = torch.tensor(found, dtype=torch.float64)
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= max(share * wanted.abs().max(), floor)


def computed(page, model, sentences, masks=None, numbers="float64", forbidden=None):
    """What the browser finds."""
    return page.evaluate(
        COMPUTE,
        {"spec": model.spec(), "weights": flat(model.state_dict()), "sentences": sentences}
        | {"headMasks": masks, "numbers": numbers, "forbidden": forbidden},
    )


def assert_torchs(page, model, sentences, masks, numbers, share, floor, forbidden=None, hooks=None):
    """Assert that the browser finds what torch finds; what is forbidden, hooks forbid to torch.

    Numbers may differ by a share of the largest of their tensor; gradients also by a share,
    `floor`, of the largest of the whole model.
    """
    with hooks or nullcontext():
        wanted = compute(model, sentences, masks)
    found = computed(page, model, sentences, masks, numbers, forbidden)
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


@given(st.data())
@settings(max_examples=100)
def test_models_of_all_shapes_are_torchs(model_page, data):
    spec = data.draw(specs())
    sentences, masks = data.draw(batches(spec)), data.draw(head_masks(spec))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    assert_torchs(model_page, build(spec), sentences, masks, "float64", 1e-10, 1e-12)


SHAPES = list(
    itertools.product([1, 2, 3], [1, 4, 12], [None, 40], ["pre", "post", None], [False, True])
)


@pytest.mark.thorough
@pytest.mark.parametrize(("layers", "h", "d_ff", "position", "causal"), SHAPES)
def test_float32_is_good_enough(model_page, layers, h, d_ff, position, causal):
    blocks = [block_spec(h, d_ff, position) for _ in range(layers)]
    sizes = {"vocabulary_size": 20, "length": 13, "d_model": 24}
    spec = model_spec(blocks, **sizes, causal=causal)
    muted = [[(head + layer) % 3 / 2 for head in range(h)] for layer in range(layers)]
    sentences = sentences_of(spec, [5, 13, 1, 8, 7, 12])
    assert_torchs(model_page, build(spec, 0.1), sentences, muted, "float32", 1e-5, 1e-7)


def test_a_model_may_have_no_layers(model_page):
    spec = model_spec()
    like = build(model_spec([block_spec()]))
    weights = {n: x for n, x in like.state_dict().items() if not n.startswith("blocks")}
    sentences = [{"ids": [3, 1, 4], "answers": {"A": [0, 1, 2], "B": [None] * 3}}]
    found = model_page.evaluate(
        COMPUTE,
        {"spec": spec, "weights": flat(weights), "sentences": sentences, "headMasks": None}
        | {"numbers": "float64"},
    )
    x = weights["token_embedding.weight"][[3, 1, 4]] + weights["position_embedding.weight"][:3]
    x = like.final_norm(x)
    assert_near(found["logits"]["B"], x @ weights["readouts.B.weight"].T, 1e-12)
    assert found["weights"] == []


TRAIN = """({spec, weights, sentences, recipe}) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const {Training} = attnModules["engine/training.js"];
  const {TASKS} = attnModules["engine/tasks.js"];
  const model = new TransformerModel(spec, {Numbers: Float64Array});
  model.load(weights);
  const training = new Training(model, TASKS.given({sentences}), recipe);
  return Array.from({length: recipe.steps}, () => training.step());
}"""
# The learning rate by hand: five steps up, flat to step 12, down along a line to a fiftieth.
RATES = [0.2, 0.4, 0.6, 0.8, *[1.0] * 9, *(1 - 0.98 * i / 7 for i in range(1, 8))]


@pytest.mark.parametrize(
    "spec",
    [
        model_spec([block_spec(4)], vocabulary_size=89, length=20, d_model=64),
        model_spec([block_spec(2, 48, "post")] * 2, d_model=16, length=20, causal=True),
        model_spec([block_spec(3, 30, bias=True, num_kv_heads=1)] * 3, d_model=12, length=20),
    ],
    ids=["one layer", "two, causal, post-norm", "three, grouped heads"],
)
def test_twenty_steps_are_torchs(model_page, spec):
    model = TransformerModel.of_spec(spec, dtype=torch.float64)
    round_to_grid(model)
    sentences = sentences_of(spec, [5 + i % 16 for i in range(96)])  # some come twice
    given_ = {"spec": spec, "weights": flat(model.state_dict()), "sentences": sentences}
    found = model_page.evaluate(TRAIN, given_ | {"recipe": RECIPE})
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    wanted = []
    for step, rate in enumerate(RATES):
        optimizer.param_groups[0]["lr"] = 4e-3 * rate
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


@pytest.mark.parametrize("weight_decay", [2**-3, 0.2, 0.01, 0.0])
def test_a_weight_without_a_gradient_decays_as_torchs_even_where_it_lies_between(
    model_page, weight_decay
):
    """Halfway between two multiples the last bit decides, and 1/256 x 1/8 leads there."""
    multiples = [*range(-5000, 5001)]
    rates = [2**-8, *(RECIPES["concord"].learning_rate(step) for step in (0, 30, 79, 390, 399))]
    weights = torch.tensor(multiples, dtype=torch.float64) / 2**20
    weights.grad = torch.zeros_like(weights)
    optimizer = torch.optim.AdamW([weights], weight_decay=weight_decay, fused=True)
    found = model_page.evaluate(DECAY, [multiples, rates, weight_decay])
    for rate, (before, after) in zip(rates, found, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        assert before == weights.tolist()
        weights.copy_((weights * 2**20).round() / 2**20)  # half to even
        assert [value for value, _ in after] == weights.tolist()
        assert not any(is_negative_zero for _, is_negative_zero in after)


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


def as_json(sentence):
    """A sentence of a task as the browser has it."""
    partners = {
        name: {str(word): partner for word, partner in pairs.items()}
        for name, pairs in sentence.partners.items()
    }
    return dataclasses.asdict(sentence) | {"partners": partners}


EVALUATE = """({spec, weights, sentences, relations, headMasks, forbidden}) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const {evaluate} = attnModules["engine/evaluation.js"];
  const model = new TransformerModel(spec, {Numbers: Float64Array});
  model.load(weights);
  return evaluate(model, sentences, relations, {headMasks, forbidden});
}"""


def evaluated(page, model, sentences, masks=None, forbidden=None):
    return page.evaluate(
        EVALUATE,
        {
            "spec": model.spec(),
            "weights": flat(model.state_dict()),
            "sentences": [as_json(sentence) for sentence in sentences],
            "relations": [dataclasses.asdict(relation) for relation in concord.relations],
            "headMasks": masks,
            "forbidden": forbidden,
        },
    )


@pytest.mark.parametrize("masks", [None, [[0, 1, 1, 0], None]])
def test_an_evaluation_is_pythons(model_page, masks):
    model = build(TransformerModel.of_sizes(concord, 16, 4, 2).spec())
    sentences = concord.sentences(30, seed=1)
    found = evaluated(model_page, model, sentences, masks)
    masks = masks and [None if mask is None else torch.tensor(mask).double() for mask in masks]
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
def test_forbidden_looks_are_torchs(model_page, head, masks, numbers):
    model = build(TransformerModel.of_sizes(concord, 16, 4, 2).spec())
    sentences = concord.sentences(30, seed=1)
    forbidden = {"relation": "verb>object", "head": head}
    given_ = [as_json(sentence) for sentence in sentences]
    share = 1e-5 if numbers == "float32" else 1e-12
    hooks = forbidding(model, pack(sentences).partners["verb>object"], head)
    assert_torchs(model_page, model, given_, masks, numbers, share, share, forbidden, hooks)
    with forbidding(model, pack(sentences).partners["verb>object"], head):
        wanted = evaluate(model, sentences, concord.relations)
    found = evaluated(model_page, model, sentences, forbidden=forbidden)
    assert found["relations"] == pytest.approx(wanted.relations)


def test_a_row_that_may_look_nowhere_has_no_weights_and_the_others_stay(model_page):
    model = build(model_spec([block_spec()], causal=True))
    answers = {"A": [0, 1, 2], "B": [None] * 3}
    sentence = {"ids": [3, 1, 4], "answers": answers, "partners": {"self": {"0": 0}}}
    plain, found = (
        computed(model_page, model, [sentence], forbidden=forbidden)["single"][0]
        for forbidden in (None, {"relation": "self", "head": 1})
    )
    assert found["weights"][0][9:12] == [0, 0, 0]
    assert found["weights"][0][:9] + found["weights"][0][12:] == (
        plain["weights"][0][:9] + plain["weights"][0][12:]
    )
    assert found["logits"]["B"][:3] != plain["logits"]["B"][:3]
    assert found["logits"]["B"][3:] == plain["logits"]["B"][3:]


# --- what is refused -----------------------------------------------------------------------------

BLOCK = block_spec(2, 6)
RMS = NORMS["RMSNorm"]
NO_MODELS = {
    "vocabulary_size": [0], "length": [2.5], "causal": [None], "readout_bias": [1],
    "readouts": [{}, {"A": 0}], "blocks": [3, [3]], "tied": [True], "positions": ["sinusoidal"],
    "final_norm": [{}, RMS | {"eps": -1}, {"kind": "LayerNorm", "eps": 0}, RMS | {"gain": False}],
}  # fmt: skip
NO_BLOCKS = {
    "num_heads": [3, 0], "num_kv_heads": [4], "bias": ["no"], "residual": [None], "dropout": [0.1],
    "attention_dropout": [0.1], "norm_position": ["in"], "norms": [[], [RMS]],
    "rotary": [{"base": 1e4}],
    "feed_forward": [
        6, {"d_ff": 0}, {"d_ff": 1}, {"d_ff": 6, "bias": True, "activation": "relu"},
    ],
}  # fmt: skip
REFUSED = [
    ("the model", None),
    ("norms", model_spec([BLOCK | {"norm_position": None}])),
    *((name, model_spec() | {name: value}) for name in NO_MODELS for value in NO_MODELS[name]),
    *(
        (name, model_spec([BLOCK | {name: value}]))
        for name in NO_BLOCKS
        for value in NO_BLOCKS[name]
    ),
]


@pytest.mark.parametrize(("named", "spec"), REFUSED)
def test_a_model_that_can_not_be_is_refused_by_name(model_page, named, spec):
    make = '(spec) => void new (attnModules["engine/model.js"].TransformerModel)(spec)'
    with pytest.raises(Error, match="should be") as caught:
        model_page.evaluate(make, spec)
    assert named in str(caught.value)


CALL = """([spec, weights, sentences, headMasks, forbidden]) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const model = new TransformerModel(spec);
  model.load(weights);
  model.forward(model.pack(sentences, {forbidden}), {headMasks});
}"""


@pytest.mark.parametrize(
    ("named", "changes"),
    [
        ('"W"', {"weights": {"W": [1.0]}}),
        *(
            ("final_norm.gain should be", {"weights": {"final_norm.gain": value}})
            for value in ([1.0], None, [None] * 8)
        ),
        ("a batch should be", {"sentences": []}),
        *(
            ("length of sentence 0 should be", {"sentences": [sentence]})
            for sentence in ({}, {"ids": []}, {"ids": [1] * 8})
        ),
        ("a word of sentence 1 should be", {"sentences": [{"ids": [1]}, {"ids": [11]}]}),
        ("answers A of sentence 0", {"sentences": [{"ids": [1], "answers": {"A": []}}]}),
        ("an answer A", {"sentences": [{"ids": [1], "answers": {"A": [5]}}]}),
        ("headMasks should be", {"masks": [[1, 1], None]}),
        ("headMasks[0] should be", {"masks": [[1]]}),
        ("the forbidden relation should be", {"forbidden": {"relation": "a>b", "head": None}}),
        ("the forbidden head should be", {"forbidden": {"relation": "a>b", "head": 2}}),
    ],
)
def test_weights_and_sentences_that_do_not_fit_are_refused_by_name(model_page, named, changes):
    spec = model_spec([BLOCK])
    weights = flat(build(spec).state_dict()) | changes.get("weights", {})
    given_ = [spec, weights, changes.get("sentences", [{"ids": [0]}])]
    given_ += [changes.get("masks"), changes.get("forbidden")]
    with pytest.raises(Error, match=re.escape(named)):
        model_page.evaluate(CALL, given_)
