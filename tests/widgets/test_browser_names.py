"""The browser's GPT of names is torch's: its first weights, its steps, its sampling."""

import pytest
import torch
from tools.browser_models import flat

from attnlib.model import TransformerModel, generate
from attnlib.relations import names, pack
from attnlib.training import RECIPES, answer_loss

RECIPE = RECIPES["names"]


def new_model(num_heads=4, seed=0):
    """The recipe's model with float32 numbers, computed with in float64."""
    torch.manual_seed(seed)
    model = TransformerModel.of_sizes(names, **{**RECIPE.model, "num_heads": num_heads})
    return model.double()


def as_told(sentence):
    return {
        "ids": list(sentence.ids),
        "answers": {name: list(of) for name, of in sentence.answers.items()},
    }


DRAW = """([spec, options]) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const model = new TransformerModel(spec);
  model.draw(attnModules["engine/streams.js"].chanceOfWeights(3), options);
  return Object.fromEntries(model.parameters.map(({name, values}) => [name, [...values]]));
}"""


def spread(numbers):
    return torch.tensor(numbers).double().std().item()


def test_the_first_weights_are_spread_as_pythons(model_page):
    drawn = model_page.evaluate(DRAW, [new_model().spec(), RECIPE.as_json()["model"]])
    wanted = {"token_embedding.weight": 0.2, "position_embedding.weight": 0.2}
    wanted |= {"readouts.next.weight": 0.02}
    for name, parameter in new_model().named_parameters():
        std = wanted.get(name, parameter.std().item())
        assert torch.tensor(drawn[name]).double().std().item() == pytest.approx(
            std, rel=0.15, abs=1e-6
        )
    usual = model_page.evaluate(DRAW, [new_model().spec(), {}])
    assert torch.tensor(usual["token_embedding.weight"]).double().std().item() < 0.03


TRAIN = """({spec, weights, sentences, recipe, steps}) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const {Training} = attnModules["engine/training.js"];
  const model = new TransformerModel(spec);
  model.load(weights);
  const task = attnModules["engine/streams.js"].given({sentences});
  const training = new Training(model, task, recipe);
  const losses = Array.from({length: steps}, () => training.step());
  const gradients = model.parameters.map(({name, gradient}) => [name, [...gradient]]);
  return {losses, gradients: Object.fromEntries(gradients)};
}"""
STEPS = 12


@pytest.mark.parametrize("num_heads", [1, 2, 4, 8])
def test_its_first_steps_are_torchs(model_page, num_heads):
    model = new_model(num_heads)
    sentences = names.sentences(STEPS * RECIPE.batch, seed=0)
    message = {
        "spec": model.spec(),
        "weights": flat(model.state_dict()),
        "sentences": [as_told(one) for one in sentences],
        "recipe": RECIPE.as_json(),
        "steps": STEPS,
    }
    found = model_page.evaluate(TRAIN, message)
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=RECIPE.betas, weight_decay=RECIPE.weight_decay
    )
    losses = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RECIPE.learning_rate(step)
        batch = pack(sentences[step * RECIPE.batch : (step + 1) * RECIPE.batch])
        loss = answer_loss(model(batch.tokens, key_mask=batch.key_mask).logits, batch.answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1
    assert found["losses"] == pytest.approx(losses, abs=1e-4)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        wanted = parameter.grad.flatten().tolist()
        largest = max(map(abs, wanted))
        assert found["gradients"][name] == pytest.approx(wanted, abs=1e-3 * largest)


CHANCES = """([logits, temperature, topK]) =>
  [...attnModules["engine/sampling.js"].chancesOf(Float32Array.from(logits), {temperature, topK})]
"""


@pytest.mark.parametrize("temperature", [0, 1e-30, 0.5, 1, 2])
@pytest.mark.parametrize("top_k", [1, 5, 27])
def test_chances_are_those_that_generate_draws_from(model_page, temperature, top_k):
    logits = torch.randn(27, generator=torch.Generator().manual_seed(1)) * 3
    found = model_page.evaluate(CHANCES, [logits.tolist(), temperature, top_k])
    likely, places = logits.double().topk(1 if temperature == 0 else top_k)
    scaled = ((likely - likely[0]) / (temperature or 1)).nan_to_num()
    wanted = torch.zeros(27).double().scatter(0, places, scaled.softmax(0))
    assert found == pytest.approx(wanted.tolist(), abs=1e-9)


SAMPLE = """([spec, weights, options, number]) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const {goneOn} = attnModules["engine/sampling.js"];
  const model = new TransformerModel(spec);
  model.load(weights);
  const chance = attnModules["engine/chance.js"].makeChance(5);
  return Array.from({length: number}, () => goneOn(model, [26], 26, options, chance));
}"""


def test_the_likeliest_name_is_torchs(model_page):
    model = new_model()
    with torch.no_grad():
        model.readouts["next"].weight.mul_(60)  # no two letters alike
    options = {"temperature": 0, "topK": 27}
    (found,) = model_page.evaluate(SAMPLE, [model.spec(), flat(model.state_dict()), options, 1])
    wanted = generate(model, torch.tensor([[26]]), 16, temperature=0, stop=26)
    assert found == wanted[0].tolist() and len(found) > 2


def test_letters_come_as_often_as_their_chance_says(model_page):
    model = new_model()
    with torch.no_grad():
        model.readouts["next"].weight.mul_(60)
    options = {"temperature": 0.8, "topK": 4}
    found = model_page.evaluate(SAMPLE, [model.spec(), flat(model.state_dict()), options, 2000])
    first = torch.bincount(torch.tensor([ids[1] for ids in found]), minlength=27) / len(found)
    logits = model(torch.tensor([[26]])).logits["next"][0, 0]
    likely, places = logits.topk(4)
    wanted = torch.zeros(27).double().scatter(0, places, (likely / 0.8).softmax(0))
    assert (first - wanted).abs().max() < 0.05
    assert all(len(ids) <= 17 and 26 not in ids[1:-1] for ids in found)
