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
from tools.refusing import assert_refused
from torch import nn

from attncourse.tasks import concord, names
from attncourse.training import GRID, RECIPES, FixedWeights, digest, train
from attncourse.training.first_weights import initial_model
from attncourse.training.grid import round_to_grid
from attnlib.model import TransformerModel
from attnlib.rng import Sfc32

TRAINING = """
from attncourse.training import FixedWeights, RECIPES, train
short = {"batch": 8, "steps": 30, "warmup": 3, "held_out": 20}
for name in ("concord", "names", "induction", "lookup"):
    make = {"make": FixedWeights} if name == "lookup" else {}
    recipe = RECIPES[name].changed(**{**short, "pool": 64 if name == "induction" else None})
    print(name, train(recipe, seed=3, progress=False, **make).digest)
"""


def test_trainings_in_several_threads_give_the_same_bits():
    """Random numbers and the default dtype are those of the whole program."""
    recipe = RECIPES["concord"].changed(model={"d_model": 8}, batch=4, steps=10, held_out=4)
    seeds = [0, 1] * 4
    alone = [train(recipe, seed=seed, progress=False).digest for seed in seeds]
    with ThreadPoolExecutor(len(seeds)) as pool:
        together = pool.map(lambda seed: train(recipe, seed=seed, progress=False).digest, seeds)
        assert [*together] == alone
    assert torch.get_default_dtype() == torch.float32


def test_every_instruction_set_gives_the_same_bits():
    """Sums are added in other orders there: float32 parts at the first step."""
    told = set()
    for capability in ("default", "avx2", None):
        environment = os.environ | ({"ATEN_CPU_CAPABILITY": capability} if capability else {})
        command = [sys.executable, "-c", TRAINING]
        told.add(subprocess.check_output(command, env=environment, text=True))
    assert len(told) == 1 and len(told.pop().split()) == 8


@given(st.integers(-(2**31) + 1, 2**31 - 1), st.sampled_from([0.0, 0.25, 0.5, 0.75]))
def test_weights_are_rounded_half_to_even(multiple, part):
    weight = torch.tensor([(multiple + part) * GRID], dtype=torch.float64)
    round_to_grid([weight])
    wanted = round(multiple + part)  # Python rounds half to even, too
    assert weight.item() / GRID == wanted


def test_there_is_one_zero():
    weight = torch.tensor([-0.0, -1e-9, 1e-9], dtype=torch.float64)
    round_to_grid([weight])
    assert not torch.signbit(weight).any() and not weight.any()


def test_a_digest_is_of_whole_multiples_in_the_order_of_the_state_dict():
    model = nn.ModuleDict({"b": nn.Linear(2, 1), "a": nn.Linear(1, 1, bias=False)})
    numbers = [3, -5, 2**20, 7]
    state = zip(model.state_dict().values(), ([[3, -5]], [2**20], [[7]]), strict=True)
    for weight, multiples in state:
        weight.copy_(torch.tensor(multiples) * GRID)
    assert digest(model) == hashlib.sha256(struct.pack("<4i", *numbers)).hexdigest()


def test_random_weights_have_no_digest():
    assert_refused(lambda: digest(TransformerModel.of_sizes(names, 8, 2)), ["2^-20"])
    assert_refused(lambda: digest(torch.zeros(3)), ["model", "Tensor"])


def test_what_is_returned_has_the_digest_that_was_trained():
    run = train(RECIPES["concord"].changed(steps=5, batch=8, held_out=20), progress=False)
    assert all(weight.dtype == torch.float32 for weight in run.model.parameters())
    assert run.digest == digest(run.model) and run.digest[:8] in repr(run)


@pytest.mark.parametrize("repeatable", [True, False])
def test_first_weights_are_those_that_the_generator_draws(repeatable):
    recipe = RECIPES["names"].changed(
        model={"readout_std": None, "embedding_std": 0.3, "bias": True}, repeatable=repeatable
    )
    torch.manual_seed(8)  # of torch's own numbers they don't depend
    state = initial_model(recipe, 5, TransformerModel.of_sizes).state_dict()
    rng = Sfc32(5, stream=1)
    embedding = state["token_embedding.weight"]
    wanted = torch.tensor([0.3 * rng.normal() for _ in range(embedding.numel())])
    torch.testing.assert_close(embedding.flatten().float(), wanted, rtol=0, atol=GRID)
    for _ in range(state["position_embedding.weight"].numel()):
        rng.normal()
    matrix = state["blocks.0.attention.W_q.weight"]
    bound = (6 / (16 + 16)) ** 0.5
    drawn = [bound * (2 * rng.uniform() - 1) for _ in range(matrix.numel())]
    torch.testing.assert_close(matrix.flatten().float(), torch.tensor(drawn), rtol=0, atol=GRID)
    assert not state["blocks.0.attention.W_q.bias"].any()
    assert (state["final_norm.gain"] == 1).all()


def test_a_module_of_ones_own_keeps_its_own_first_weights_on_the_grid():
    made_one = initial_model(RECIPES["lookup"], 2, FixedWeights)
    torch.manual_seed(2)
    own = FixedWeights(RECIPES["lookup"].task, **RECIPES["lookup"].model)
    assert made_one.keys.weight.dtype == torch.float64
    assert abs(made_one.keys.weight.std() / own.keys.weight.std() - 1) < 0.3
    digest(made_one)  # refuses what isn't on the grid
    assert torch.get_default_dtype() == torch.float32


def test_a_quick_training_is_in_float32():
    quick = RECIPES["concord"].changed(repeatable=False, steps=3, batch=8, held_out=20)
    seen = []
    train(quick, progress=False, watch=lambda model: seen.append(model.final_norm.gain.dtype))
    assert seen == [torch.float32] and concord is quick.task
    state = initial_model(quick, 0, TransformerModel.of_sizes).state_dict()
    assert all(weight.dtype == torch.float32 for weight in state.values())
