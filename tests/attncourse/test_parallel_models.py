"""Heads over several processes: the same outputs and gradients, and what is sent for them."""

import pytest
import torch
from tools import several_processes
from tools.refusing import assert_refused
from torch import nn

from attncourse.parallel import compare_models, split_heads_over, together
from attncourse.parallel._checks import require_splittable
from attncourse.training import RECIPES
from attnlib import MultiHeadAttention, RMSNorm, TransformerBlock
from attnlib.model import GPT

NAMES = RECIPES["names"].model
WITH = {
    "names": {},
    "six heads": {"d_model": 12, "num_heads": 6, "d_ff": 20},
    "two layers": {"num_layers": 2},
    "biases": {"bias": True},
    "post-norm": {"norm_position": "post", "bias": True},
    "no norm": {"norm_position": None},
    "no feed-forward network": {"d_ff": 0},
    "grouped keys": {"num_kv_heads": 2},
    "modern": {"positions": "rotary", "norm": RMSNorm, "tied": True, "activation": "relu"},
}
CASES = {name: {**NAMES, **options} for name, options in WITH.items()}


@pytest.fixture(scope="module")
def over_two():
    """All cases over two processes."""
    return together(several_processes.compare_several, 2, CASES)


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_those_of_one_process(over_two, case):
    for _, reports in over_two:
        report = reports[case]
        assert report.equal and len(report.shares) == 2
        assert max(one.gradients for one in report.shares) < 1e-5


@pytest.mark.parametrize("case", CASES)
def test_each_process_holds_its_heads_and_sends_a_sum_per_sublayer(over_two, case):
    (tokens, reports), _ = over_two
    report, options = reports[case], CASES[case]
    layers = options.get("num_layers", 1)
    assert report.num_layers == layers
    assert [one.num_heads for one in report.shares] == [options["num_heads"] // 2] * 2
    sublayers = layers * (2 if options["d_ff"] else 1)
    for sent in (report.forward, report.backward):
        assert sent.counts == {"all-reduce": sublayers}
        assert sent.nbytes == sublayers * tokens * options["d_model"] * 4


def test_matrices_are_halved_and_the_rest_is_whole(over_two):
    report = over_two[0][1]["names"]
    matrices = 4 * 16 * 16 + 2 * 16 * 64
    assert report.alone.parameters == 4_288
    assert [one.parameters for one in report.shares] == [4_288 - matrices // 2] * 2


def test_three_processes_hold_two_of_six_heads_each():
    cases = {"six heads": {**CASES["six heads"], "d_ff": 21}}
    _, reports = together(several_processes.compare_several, 3, cases)[2]
    assert reports["six heads"].equal
    assert [one.num_heads for one in reports["six heads"].shares] == [2, 2, 2]


def test_a_spoiled_weight_is_noticed():
    report = together(several_processes.compare_a_spoiled_one, 2)[0]
    assert not report.equal and all(one.outputs > 1e-4 for one in report.shares)
    assert "DIFFERENT" in str(report)


def test_what_is_said_per_head_is_said_of_a_process_own_heads():
    for gaps, printed, numbers, own in together(several_processes.own_heads_of_an_attention, 2):
        assert max(gaps) < 1e-5
        assert "num_heads=2, num_kv_heads=1" in printed
        assert own == (numbers - 16) // 2 + 16  # all but the bias of W_o, which is added once


def test_what_cant_be_split_says_so_and_stays_as_it_was():
    for said in together(several_processes.refusals, 2):
        assert "one dimension, got 2" in said["two dimensions"]
        assert "W_q must be whole" in said["split already"]
        assert "same weights in all processes" in said["other weights"]
        assert "num_heads" in said["too few heads"] and "1 over 2" in said["too few heads"]


def dropping(part):
    """Return a block that drops out, in its attention or behind it."""
    attention = MultiHeadAttention(8, 2, dropout=0.1 if part == "attention" else 0.0)
    return TransformerBlock.of_parts(attention, dropout=0.1 if part == "block" else 0.0, norms=[
        RMSNorm(8)
    ])  # fmt: skip


def with_other_layer(name):
    """Return a block in which a layer isn't linear any more."""
    block = TransformerBlock(8, 2)
    part = block.attention if name in ("W_k", "W_o") else block.feed_forward
    setattr(part, name, nn.Sequential(getattr(part, name)))
    return block


UNEVEN = {
    "heads of a model": (GPT(27, 16, 16, 4, 2), 3, ["blocks.0.attention.num_heads", "4 over 3"]),
    "heads": (MultiHeadAttention(12, 6), 4, ["num_heads", "6 over 4", "[1, 2, 3, 6]"]),
    "one key head": (MultiHeadAttention(8, 4, num_kv_heads=1), 2, ["num_kv_heads", "1 over 2"]),
    "key heads": (MultiHeadAttention(8, 4, num_kv_heads=2), 4, ["num_kv_heads", "2 over 4"]),
    "neurons": (TransformerBlock(8, 2, d_ff=9), 2, ["feed_forward.d_ff", "9 over 2", "[1, 3, 9]"]),
    "dropped looks": (dropping("attention"), 2, ["attention.dropout", "0.1"]),
    "dropped results": (dropping("block"), 2, ["dropout must be 0", "0.1"]),
    "W_k": (with_other_layer("W_k"), 2, ["attention.W_k", "nn.Linear", "Sequential"]),
    "W_2": (with_other_layer("W_2"), 2, ["feed_forward.W_2", "nn.Linear", "Sequential"]),
    "no attention": (nn.Linear(3, 3), 2, ["module", "MultiHeadAttention", "Linear"]),
    "no module": ("model", 2, ["module", "str"]),
}


@pytest.mark.parametrize("what", UNEVEN)
def test_what_cant_be_dealt_out(what):
    module, processes, words = UNEVEN[what]
    assert_refused(lambda: require_splittable(module, processes), words)


def test_no_mesh():
    assert_refused(lambda: split_heads_over(MultiHeadAttention(8, 4), 2), ["mesh", "int"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"processes": 0}, ["processes", "at least 1", "0"]),
        ({"processes": 2.0}, ["processes", "float"]),
        ({"processes": 3}, ["num_heads", "4 over 3"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"seed": 2**31}, ["seed", "2^31", "2147483648"]),
        ({"recipe": "names"}, ["recipe", "names"]),
        ({"timeout": 0}, ["timeout", "above 0", "0"]),
        ({"timeout": "long"}, ["timeout", "str"]),
    ],
    ids=str,
)
def test_wrong_arguments_start_no_process(arguments, words, monkeypatch):
    monkeypatch.setattr("attncourse.parallel.processes.start_processes", None)
    assert_refused(lambda: compare_models(**arguments), words)


def test_comparing_leaves_random_numbers_alone(monkeypatch):
    monkeypatch.setattr("attncourse.parallel.tensor_parallel.from_first", lambda *_, **__: None)
    state = torch.get_rng_state()
    compare_models(2)
    assert torch.equal(torch.get_rng_state(), state)
