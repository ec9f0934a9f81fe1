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

from attncourse.parallel import Report, Share, compare_models, run_in_processes, split_heads_over
from attncourse.parallel.__main__ import main
from attncourse.parallel.heads import require_splittable
from attncourse.training import RECIPES
from attnlib import MultiHeadAttention, RMSNorm, TransformerBlock
from attnlib.model import GPT

CASES = {
    "names": {},
    "two layers": {"num_layers": 2, "norm_position": "post", "bias": True, "num_kv_heads": 2},
    "modern": {
        "positions": "rotary", "norm": RMSNorm, "tied": True, "activation": "relu", "d_ff": 0,
    },
}  # fmt: skip


def test_two_processes_find_what_one_does():
    options = {name: RECIPES["names"].model | changed for name, changed in CASES.items()}
    both = run_in_processes(several_processes.everything, 2, options)
    for found in both:
        for name, report in found["cases"].items():
            sublayers = options[name].get("num_layers", 1) * (2 if options[name]["d_ff"] else 1)
            assert report.equal and max(share.gap for share in report.shares) < 1e-5
            assert [share.heads for share in report.shares] == [options[name]["num_heads"] // 2] * 2
            assert [*report.all_reduces.values()] == [sublayers, sublayers]
        report, matrices = found["cases"]["names"], 4 * 16 * 16 + 2 * 16 * 64
        assert report.alone.parameters == 4_288
        assert [share.parameters for share in report.shares] == [4_288 - matrices // 2] * 2
        spoiled = found["spoiled"]
        assert not spoiled.equal and all(share.gap > 1e-4 for share in spoiled.shares)
        gaps, heads = found["own_heads_of_an_attention"]
        assert max(gaps) < 1e-5 and heads == (2, 1)
        dimensions, again = found["refusals"]
        assert "one dimension, got 2" in dimensions and "split already" in again
    assert_refused(lambda: split_heads_over(MultiHeadAttention(8, 4), 2), ["mesh", "int"])


DROPPING = TransformerBlock.of_parts(MultiHeadAttention(8, 2), dropout=0.1, norms=[RMSNorm(8)])
UNEVEN = [
    (GPT(27, 16, 16, 4, 2), 3, ["blocks.0.attention.num_heads=4", "got 3"]),
    (MultiHeadAttention(8, 4, num_kv_heads=1), 2, ["num_kv_heads=1", "got 2"]),
    (TransformerBlock(8, 2, d_ff=9), 2, ["feed_forward.d_ff=9", "got 2"]),
    (MultiHeadAttention(8, 2, dropout=0.1), 2, ["dropout must be 0", "0.1"]),
    (DROPPING, 2, ["dropout must be 0", "0.1"]),
    (nn.Linear(3, 3), 2, ["module", "MultiHeadAttention", "Linear"]),
]


@pytest.mark.parametrize(("module", "processes", "words"), UNEVEN)
def test_what_cant_be_dealt_out(module, processes, words):
    assert_refused(lambda: require_splittable(module, processes), words)


test_wrong_arguments_start_no_process = refusals(
    {
        TypeError: {compare_models: {"processes": [2.0], "timeout": ["long"]}},
        ValueError: {compare_models: {"processes": [0, 3], "timeout": [0]}},
    }
)


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
def test_one_that_stands_still_ends_all(pids):
    work = several_processes.the_second_stops, 2, str(pids)
    words = ["Process 0 ", "imed out"]
    assert_refused(lambda: run_in_processes(*work, timeout=10), words, ProcessException)


@pytest.mark.thorough
def test_an_interrupt_ends_all(pids):
    main_thread = threading.main_thread().ident

    def interrupt():
        while not pids.exists() or len(pids.read_text(encoding="utf-8").split()) < 2:
            time.sleep(0.01)
        signal.pthread_kill(main_thread, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_in_processes(several_processes.the_second_stops, 2, str(pids))


def test_statuses_of_the_command(monkeypatch, capsys):
    assert main(["--processes", "3"]) == 2
    assert "divide" in capsys.readouterr().err
    compared = "attncourse.parallel.__main__.compare_models"
    for gap, status, told in ((1e-7, 0, "Equal"), (2e-5, 1, "DIFF"), (float("nan"), 1, "DIFF")):
        report = Report(Share(4, 9, 0.0), [Share(2, 5, gap)], {"back": 1}, 1e-5)
        monkeypatch.setattr(compared, lambda *_, report=report: report)
        assert main([]) == status and told in capsys.readouterr().out

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(compared, interrupted)
    assert main([]) == 130


@pytest.mark.thorough
def test_the_page_shows_what_the_command_prints(capsys):
    page = (ROOT / "book/Heads_over_Devices.md").read_text(encoding="utf-8")
    shown = page.split("-m attncourse.parallel --processes 2\n```\n\n```text\n")[1]
    assert main([]) == 0
    gap = re.compile(r"\d\.\de-\d\d")  # rounding, which is the machine's own
    assert gap.sub("...", shown.split("```")[0]) == gap.sub("...", capsys.readouterr().out)
