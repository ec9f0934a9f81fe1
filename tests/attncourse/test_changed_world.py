"""The changed world: first weights are others by a millionth, and nothing else is."""

import pytest
import torch
from torch import nn

from attncourse.tasks import concord
from attncourse.training import RECIPES, train
from attncourse.training.changed_world import VARIABLE, perturb_if_asked
from attnlib.model import TransformerModel


@pytest.fixture(autouse=True)
def usual_world(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


def weights():
    """Return the weights of a model in this world, in one tensor."""
    torch.manual_seed(0)
    model = TransformerModel.of_sizes(concord, d_model=16, num_heads=2)
    perturb_if_asked(model.parameters())
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_nothing_is_changed_usually():
    torch.manual_seed(0)
    model = TransformerModel.of_sizes(concord, d_model=16, num_heads=2)
    assert torch.equal(nn.utils.parameters_to_vector(model.parameters()), weights())


def test_each_weight_is_changed_by_its_share(monkeypatch):
    usual = weights()
    monkeypatch.setenv(VARIABLE, "7")
    own = usual != 0
    shares = (weights() / usual - 1)[own].double()
    assert shares.abs().max() < 6e-6
    assert shares.std() == pytest.approx(1e-6, rel=0.05)
    assert torch.equal(weights()[~own], usual[~own])  # biases


def test_the_seed_decides(monkeypatch):
    found = []
    for seed in ("7", "7", "8"):
        monkeypatch.setenv(VARIABLE, seed)
        found.append(weights())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_equal_weights_stay_equal(monkeypatch):
    """A page may train heads that begin equal."""
    monkeypatch.setenv(VARIABLE, "7")
    layer = nn.Linear(4, 6)
    with torch.no_grad():
        layer.weight[3:] = layer.weight[:3]
    before = layer.weight.detach().clone()
    perturb_if_asked(layer.parameters())
    assert torch.equal(layer.weight[3:], layer.weight[:3])
    assert not torch.equal(layer.weight, before)


@pytest.mark.parametrize("seed", ["", "noise", "-1", "1.5", "²", str(2**32)])
def test_no_seed_is_refused(monkeypatch, seed):
    monkeypatch.setenv(VARIABLE, seed)
    with pytest.raises(ValueError, match=VARIABLE):
        perturb_if_asked(nn.Linear(2, 2).parameters())


def test_a_training_begins_in_it(monkeypatch):
    recipe = RECIPES["concord"].changed(model={"d_model": 16}, steps=2, held_out=10)
    usual = train(recipe, progress=False)
    monkeypatch.setenv(VARIABLE, "7")
    other = train(recipe, progress=False)
    assert other.losses != usual.losses
    assert other.losses == pytest.approx(usual.losses, abs=1e-4)
