"""Heads over several processes: what one process finds, and none is left behind."""

import os
import re
import signal
import threading
import time
from contextlib import suppress

import pytest
from tools import ROOT, several_processes
from tools.refusing import assert_refused, refusals
from torch import nn
from torch.multiprocessing.spawn import ProcessException

from attncourse.parallel import (
    Report,
    Share,
    compare_models,
    run_in_processes,
    split_heads_over,
)
from attncourse.parallel.__main__ import main
from attncourse.parallel.heads import require_splittable
from attncourse.training import RECIPES
from attnlib import MultiHeadAttention, RMSNorm, TransformerBlock
from attnlib.model import GPT

NAMES = RECIPES["names"].model
WITH = {
    "names": {},
    "two layers": {"num_layers": 2, "norm_position": "post", "bias": True},
    "no feed-forward network": {"d_ff": 0},
    "grouped keys": {"num_kv_heads": 2},
    "modern": {"positions": "rotary", "norm": RMSNorm, "tied": True, "activation": "relu"},
}
CASES = {name: {**NAMES, **options} for name, options in WITH.items()}


@pytest.fixture(scope="module")
def over_two():
    """What each of two processes has found, by what it was asked."""
    found = run_in_processes(several_processes.everything, 2, CASES)
    return {name: [one[name] for one in found] for name in found[0]}


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_those_of_one_process(over_two, case):
    options = CASES[case]
    sublayers = options.get("num_layers", 1) * (2 if options["d_ff"] else 1)
    for report in (reports[case] for reports in over_two["cases"]):
        assert report.equal and max(share.gap for share in report.shares) < 1e-5
        assert [share.heads for share in report.shares] == [options["num_heads"] // 2] * 2
        assert [*report.all_reduces.values()] == [sublayers, sublayers]
    if case == "names":  # matrices are halved, and the rest is whole
        matrices = 4 * 16 * 16 + 2 * 16 * 64
        assert report.alone.parameters == 4_288
        assert [share.parameters for share in report.shares] == [4_288 - matrices // 2] * 2


def test_two_processes_find_what_one_does(over_two):
    for report in over_two["spoiled"]:
        assert not report.equal and all(share.gap > 1e-4 for share in report.shares)
    for gaps, heads in over_two["own_heads_of_an_attention"]:
        assert max(gaps) < 1e-5 and heads == (2, 1)
    assert over_two["rank_and_sum"] == [(0, 30, 1), (1, 30, 1)]
    for dimensions, again in over_two["refusals"]:
        assert "one dimension, got 2" in dimensions and "split already" in again
    assert_refused(lambda: split_heads_over(MultiHeadAttention(8, 4), 2), ["mesh", "int"])


def dropping(part):
    """Return a block that drops out, in its attention or after it."""
    attention = MultiHeadAttention(8, 2, dropout=0.1 if part == "attention" else 0.0)
    return TransformerBlock.of_parts(attention, dropout=0.1 if part == "block" else 0.0, norms=[
        RMSNorm(8)
    ])  # fmt: skip


UNEVEN = {
    "heads of a model": (GPT(27, 16, 16, 4, 2), 3, ["blocks.0.attention.num_heads=4", "got 3"]),
    "key heads": (MultiHeadAttention(8, 4, num_kv_heads=1), 2, ["num_kv_heads=1", "got 2"]),
    "neurons": (TransformerBlock(8, 2, d_ff=9), 2, ["feed_forward.d_ff=9", "got 2"]),
    "dropped looks": (dropping("attention"), 2, ["attention.dropout", "0.1"]),
    "dropped results": (dropping("block"), 2, ["dropout must be 0", "0.1"]),
    "no attention": (nn.Linear(3, 3), 2, ["module", "MultiHeadAttention", "Linear"]),
}


@pytest.mark.parametrize("what", UNEVEN)
def test_what_cant_be_dealt_out(what):
    module, processes, words = UNEVEN[what]
    assert_refused(lambda: require_splittable(module, processes), words)


REFUSED = {
    TypeError: {compare_models: {"processes": [2.0], "timeout": ["long"]}},
    ValueError: {compare_models: {"processes": [0, 3], "timeout": [0]}},
}

test_wrong_arguments_start_no_process = refusals(REFUSED)


@pytest.fixture
def pids(tmp_path):
    """A file in which processes note themselves; after the test none of them lives."""
    file = tmp_path / "pids"
    yield file
    noted = file.read_text(encoding="utf-8").split()
    assert len(noted) == 2
    for pid in noted:
        with suppress(ProcessLookupError):
            os.kill(int(pid), 0)
            pytest.fail(f"process {pid} lives")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("does", "timeout", "words"),
    [
        ("raise", 60, ["Process 1 ", "ZeroDivisionError: by design"]),
        ("exit", 60, ["process 1 ", "exit code 7"]),
        ("leave", 60, ["Process 0 ", "Connection closed"]),
        ("SIGKILL", 60, ["process 1 ", "SIGKILL"]),
        ("SIGSTOP", 5, ["Process 0 ", "imed out"]),
    ],
)
def test_one_that_fails_ends_all(does, timeout, words, pids):
    assert_refused(
        lambda: run_in_processes(several_processes.the_second, 2, does, str(pids), timeout=timeout),
        words,
        ProcessException,
    )


@pytest.mark.thorough
def test_an_interrupt_ends_all(pids):
    main_thread = threading.main_thread().ident

    def interrupt():
        while not pids.exists() or len(pids.read_text(encoding="utf-8").split()) < 2:
            time.sleep(0.01)
        signal.pthread_kill(main_thread, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_in_processes(several_processes.the_second, 2, "sleep", str(pids))


def report_of(gap):
    return Report(Share(4, 9, 0.0), [Share(2, 5, gap)], {"back": 1}, 1e-5)


def interrupted():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("outcome", "status", "told"),
    [
        (lambda: report_of(1e-7), 0, "Equal"),
        (lambda: report_of(2e-5), 1, "DIFFERENT"),
        (lambda: report_of(float("nan")), 1, "DIFFERENT"),
        (interrupted, 130, "stopped"),
    ],
)
def test_statuses_of_the_command(outcome, status, told, monkeypatch, capsys):
    monkeypatch.setattr("attncourse.parallel.__main__.compare_models", lambda *_, **__: outcome())
    assert main([]) == status
    assert told in "".join(capsys.readouterr())


def test_what_cant_be_followed_is_told(capsys):
    assert main(["--processes", "3"]) == 2
    assert "divide" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_page_shows_what_the_command_prints(capsys):
    page = (ROOT / "book/Heads_over_Devices.md").read_text(encoding="utf-8")
    shown = page.split("-m attncourse.parallel --processes 2\n```\n\n```text\n")[1]
    assert main([]) == 0
    gap = re.compile(r"\d\.\de-\d\d")  # rounding, which is the machine's own
    assert gap.sub("...", shown.split("```")[0]) == gap.sub("...", capsys.readouterr().out)
