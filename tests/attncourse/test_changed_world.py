"""The changed world: first weights are others by a millionth, and nothing else is."""

from functools import partial

import pytest
import torch
from tools.refusing import assert_named
from tools.tiny_task import TINY, tiny_training
from torch import nn

from attncourse.training import train
from attncourse.training.changed_world import VARIABLE, perturb_if_asked


@pytest.fixture
def usual(monkeypatch):
    """Return weights in the usual world: by chance, some of them equal, some 0."""
    monkeypatch.delenv(VARIABLE, raising=False)
    weights = torch.randn(9, 999)
    weights[3:6] = weights[:3]
    weights[6] = 0
    return weights


def changed(usual):
    weights = nn.Parameter(usual.clone())
    perturb_if_asked([weights])
    return weights.detach()


def test_each_weight_is_changed_by_its_share_as_the_seed_decides(usual, monkeypatch):
    assert torch.equal(changed(usual), usual)
    monkeypatch.setenv(VARIABLE, "7")
    found, state = changed(usual), torch.get_rng_state()
    assert torch.equal(changed(usual), found) and torch.equal(torch.get_rng_state(), state)
    assert torch.equal(found[3:6], found[:3])  # a page may train heads that begin equal
    assert not found[6].any()
    shares = (found[usual != 0].double() / usual[usual != 0] - 1).abs()
    assert shares.max() < 3e-6 and shares.square().mean().sqrt() == pytest.approx(1e-6, rel=0.05)
    monkeypatch.setenv(VARIABLE, str(2**32 - 1))
    assert not torch.equal(changed(usual), found)


@pytest.mark.parametrize("seed", ["", "noise", "-1", "²", str(2**32)])
def test_no_seed_is_refused(monkeypatch, seed):
    monkeypatch.setenv(VARIABLE, seed)
    assert_named(ValueError, VARIABLE, partial(perturb_if_asked, [torch.ones(2)]))


def test_a_training_begins_in_it(monkeypatch):
    usual = tiny_training().losses[:2]
    monkeypatch.setenv(VARIABLE, "7")
    other = train(TINY, progress=False, stop=2).losses
    assert other != usual and other == pytest.approx(usual, abs=1e-4)
