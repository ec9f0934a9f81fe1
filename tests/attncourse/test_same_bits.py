"""A training gives the same bits on every machine; its digest says which model it is."""

import hashlib
import os
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import assert_named
from tools.tiny_task import TINY, tiny_training
from torch import nn

from attncourse.grid import round_to_grid
from attncourse.training import GRID, RECIPES, FixedWeights, digest, train
from attncourse.training.first_weights import initial_model
from attnlib.model import TransformerModel
from attnlib.rng import Sfc32

TRAINING = """
import torch
from attncourse.training import FixedWeights, RECIPES, train
torch.set_num_threads(1)
short = {"batch": 8, "steps": 30, "warmup": 3, "held_out": 20}
for name in ("concord", "names", "induction", "lookup"):
    make = {"make": FixedWeights} if name == "lookup" else {}
    recipe = RECIPES[name].changed(**{**short, "pool": 64 if name == "induction" else None})
    print(name, train(recipe, seed=3, progress=False, **make).digest)
"""


@pytest.mark.thorough
def test_every_instruction_set_gives_the_same_bits():
    """Sums are added in other orders there: float32 parts at the first step."""
    told = set()
    for environment in ({"ATEN_CPU_CAPABILITY": "default"}, {}):
        command = [sys.executable, "-c", TRAINING]
        told.add(subprocess.check_output(command, env=os.environ | environment, text=True))
    assert len(told) == 1 and len(told.pop().split()) == 8


def test_trainings_in_several_threads_give_the_same_bits():
    """Random numbers and the default dtype are those of the whole program."""

    def trained(seed):
        return train(TINY, seed=seed, progress=False, stop=10).losses

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(trained, [0, 1] * 4)] == [trained(0), trained(1)] * 4
    assert torch.get_default_dtype() == torch.float32


@given(st.integers(-(2**31) + 1, 2**31 - 1), st.sampled_from([0.0, 0.25, 0.5, 0.75]))
def test_weights_are_rounded_half_to_even_and_there_is_one_zero(multiple, part):
    weight = torch.tensor([(multiple + part) * GRID, -0.0, -1e-9], dtype=torch.float64)
    round_to_grid([weight])
    wanted = round(multiple + part)  # Python rounds half to even, too
    assert (weight / GRID).tolist() == [wanted, 0, 0]
    assert not torch.signbit(weight[1:]).any()


def test_a_digest_is_of_whole_multiples_in_the_order_of_the_state_dict():
    model = nn.ModuleDict({"b": nn.Linear(2, 1), "a": nn.Linear(1, 1, bias=False)}).double()
    wanted = [[[3, -5]], [1 - 2**31], [[2**31 - 1]]]  # the largest that there are
    for weight, multiples in zip(model.state_dict().values(), wanted, strict=True):
        weight.copy_(torch.tensor(multiples) * torch.tensor(GRID).double())
    stored = struct.pack("<4i", 3, -5, 1 - 2**31, 2**31 - 1)
    assert digest(model) == hashlib.sha256(stored).hexdigest()
    for other in (2.0**31 * GRID, GRID / 2):
        model["a"].weight.data.fill_(other)
        assert_named(ValueError, r"model must .* got others in a\.weight", lambda: digest(model))
    assert_named(TypeError, "model", lambda: digest(torch.zeros(3)))
    assert {weight.dtype for weight in tiny_training().model.parameters()} == {torch.float32}


@pytest.mark.parametrize("repeatable", [True, False])
def test_first_weights_are_those_that_the_generator_draws(repeatable):
    readout_std = None if repeatable else 0.5
    options = {"readout_std": readout_std, "embedding_std": 0.3, "bias": True}
    recipe = RECIPES["names"].changed(model=options, repeatable=repeatable)
    torch.manual_seed(8)  # of torch's own numbers they don't depend
    model = initial_model(recipe, 5, TransformerModel.of_sizes)
    assert torch.get_default_dtype() == torch.float32
    rng = Sfc32(5, stream=1)
    for name, weight in model.named_parameters():
        assert weight.dtype == (torch.float64 if repeatable else torch.float32)
        if name.endswith(("bias", "gain")):
            wanted = [float(name.endswith("gain"))] * weight.numel()
        elif "embedding" in name or (name.startswith("readouts") and not repeatable):
            std = 0.3 if "embedding" in name else 0.5
            wanted = [std * rng.normal() for _ in range(weight.numel())]
        else:  # Xavier-uniform
            bound = (6 / sum(weight.shape)) ** 0.5
            wanted = [bound * (2 * rng.uniform() - 1) for _ in range(weight.numel())]
        assert weight.flatten().tolist() == pytest.approx(wanted, rel=0, abs=GRID)
    if repeatable:
        digest(model)  # refuses what isn't on the grid


def test_a_module_of_ones_own_keeps_its_own_first_weights_on_the_grid():
    recipe = RECIPES["lookup"]
    made, again, other = (initial_model(recipe, seed, FixedWeights) for seed in (2, 2, 3))
    own = FixedWeights(recipe.task, **recipe.model)
    assert made.keys.weight.dtype == torch.float64
    assert abs(made.keys.weight.std() / own.keys.weight.std() - 1) < 0.3
    assert digest(again) == digest(made) != digest(other)
