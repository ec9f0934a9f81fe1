"""What the browser's GPT of names makes up is drawn as torch draws it."""

import pytest
import torch
from tools.browser_models import flat

from attncourse.tasks import names
from attncourse.training import RECIPES
from attnlib.model import TransformerModel, generate

RECIPE = RECIPES["names"]


def new_model(num_heads=4, seed=0):
    """The recipe's model with float32 numbers, computed with in float64."""
    torch.manual_seed(seed)
    model = TransformerModel.of_sizes(names, **{**RECIPE.model, "num_heads": num_heads})
    return model.double()


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
  const rng = attnModules["engine/rng.js"].sfc32(5);
  return Array.from({length: number}, () => goneOn(model, [26], 26, options, rng));
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
