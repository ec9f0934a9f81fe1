"""Batches over several processes: the same weights; and the commands that compare."""

import os
import subprocess
import sys

import pytest
import torch
from tools import several_processes
from tools.refusing import assert_refused

from attncourse.parallel import ProcessEndedError, TrainingReport, compare_trainings, together
from attncourse.parallel.__main__ import main
from attncourse.parallel.data_parallel import own_part
from attncourse.parallel.reports import TrainingShare
from attncourse.parallel.traffic import Sent
from attncourse.tasks import names, pack
from attncourse.training import RECIPES

pytestmark = pytest.mark.thorough

RECIPE = RECIPES["names"]
FEW = RECIPE.changed(held_out=20)


def test_weights_and_losses_are_those_of_one_process(capsys):
    assert main(["data", "--steps", "8"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["alone", "32", "4,288"] in lines
    assert [line[:3] for line in lines if line[:1] in (["0"], ["1"])] == [
        ["0", "16", "4,288"], ["1", "16", "4,288"],
    ]  # fmt: skip
    text = " ".join(word for line in lines for word in line)
    sent = f"In the last step each process has sent: 1 all-reduce, {4_288 * 8:,} bytes"
    assert sent in text  # each gradient once, float64
    assert "Equal: no weight and no loss is off by more than 1e-09." in text


def test_parts_need_not_be_equally_large():
    report = compare_trainings(3, recipe=FEW.changed(batch=8), steps=4)
    assert report.equal and [one.sentences for one in report.shares] == [3, 3, 2]


def test_the_mean_of_means_is_another_loss():
    report = together(several_processes.train_with_plain_means, 2, FEW, 0, 4)[0]
    assert not report.equal and report.loss > 1e-5


def test_parts_make_up_the_batch():
    batch = pack(names.sentences(7, seed=1))
    parts = [own_part(batch, rank, 3) for rank in range(3)]
    assert [len(part.tokens) for part in parts] == [3, 2, 2]
    for rank, part in enumerate(parts):
        assert torch.equal(part.tokens, batch.tokens[rank::3])
        assert torch.equal(part.key_mask, batch.key_mask[rank::3])
        assert torch.equal(part.answers["next"], batch.answers["next"][rank::3])


def test_a_training_ends_when_a_process_is_killed():
    with pytest.raises(ProcessEndedError, match="process 1 was ended by SIGKILL"):
        together(several_processes.train_until_one_is_killed, 2, FEW, 0, 8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"processes": 33}, ["processes", "32 sentences", "33"]),
        ({"steps": 0}, ["steps", "0"]),
        ({"steps": 21, "recipe": RECIPE.changed(steps=20)}, ["steps", "at most the", "20", "21"]),
        ({"seed": 0.5}, ["seed", "float"]),
        ({"recipe": None}, ["recipe", "None"]),
        ({"recipe": RECIPE.changed(model={"num_heads": 5})}, ["d_model", "num_heads=5"]),
        ({"recipe": RECIPE.changed(model={"dropout": 0.1})}, ["blocks.0", "dropout", "0.1"]),
    ],
    ids=[
        "processes",
        "no steps",
        "steps of a recipe",
        "seed",
        "recipe",
        "heads",
        "dropout",
    ],
)
def test_wrong_arguments_start_no_process(arguments, words, monkeypatch):
    monkeypatch.setattr("attncourse.parallel.processes.start_processes", None)
    assert_refused(lambda: compare_trainings(**arguments), words)


def test_the_command_compares_models(capsys):
    assert main(["tensor", "--processes", "2", "--num-heads", "8", "--num-layers", "2"]) == 0
    output = capsys.readouterr().out
    rows = [line.split() for line in output.splitlines()]
    assert [row[:2] for row in rows[1:4]] == [["alone", "8"], ["0", "4"], ["1", "4"]]
    assert "2 blocks" in output and output.count("4 all-reduces") == 2
    assert "Equal: no output and no gradient is off by more than 1e-05." in output


def test_a_difference_has_a_status_of_its_own(monkeypatch, capsys):
    share = TrainingShare(16, 4_288, float("nan"))
    report = TrainingReport(share, [share], (3.0, 2.0), 0.0, 1, Sent({}, 0), (1.0, 1.0), 1e-9)
    monkeypatch.setattr("attncourse.parallel.__main__.compare_trainings", lambda *_, **__: report)
    assert main(["data"]) == 1
    assert "DIFFERENT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["tensor", "--processes", "3"], "num_heads must be divisible"),
        (["tensor", "--num-heads", "5"], "d_model must be divisible"),
        (["data", "--processes", "-1"], "processes must be at least 1"),
        (["data", "--timeout", "0"], "timeout must be"),
    ],
    ids=str,
)
def test_what_cant_be_followed_is_told(command, words, capsys):
    assert main(command) == 2
    told = capsys.readouterr()
    assert told.err.startswith("Not compared: ") and words in told.err and not told.out


def test_a_rank_that_torchrun_has_not_given_silences_nobody(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")  # as a scheduler or a shell may leave it
    assert main(["data", "--steps", "0"]) == 2
    assert "steps must be at least 1" in capsys.readouterr().err


def test_whoever_reads_may_go(monkeypatch):
    share = TrainingShare(16, 4_288, 0.0)
    report = TrainingReport(share, [share], (3.0, 2.0), 0.0, 1, Sent({}, 0), (1.0, 1.0), 1e-9)
    monkeypatch.setattr("attncourse.parallel.__main__.compare_trainings", lambda *_, **__: report)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert main(["data"]) == 0


def test_an_interrupt_has_a_status_of_its_own(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("attncourse.parallel.__main__.compare_models", interrupted)
    assert main(["tensor"]) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_below_torchrun():
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
        "-m", "attncourse.parallel", "data", "--steps", "3",
    ]  # fmt: skip
    result = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Equal: ") == 1  # one process speaks for all
