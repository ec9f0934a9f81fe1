"""The diagnosis as a test and as a command."""

import inspect
import json
import os
import subprocess
import sys

import pytest
import torch
from tools import ROOT
from tools.broken_attentions import scaled_by

from attndoctor import CallError, Diagnosis, check, diagnose
from attndoctor.__main__ import main
from attndoctor.diagnosis import CANNOT_BE_ASKED, UNLESS_MEANT
from attndoctor.museum import named
from attndoctor.museum.known_modules import MultiHeadedAttention

FILE = """
from dataclasses import dataclass
from pathlib import Path
import beside
import torch
from tools.broken_attentions import Plain, unscaled

@dataclass
class Sizes:
    width: int = beside.WIDTH

class Unscaled(Plain):
    scores = unscaled

class WithPositions(Plain):
    def scores(self, q, k):
        distances = torch.arange(k.shape[2]) - torch.arange(q.shape[2])[:, None]
        return super().scores(q, k) + distances

built = Plain(Sizes().width, 4)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "beside.py").write_text("WIDTH = 32\n")
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


def run(capsys, candidate):
    status = main([candidate])
    out, err = capsys.readouterr()
    return status, " ".join(out.split()), " ".join(err.split())


def test_a_check_passes_or_fails_with_the_diagnosis():
    assert check(MultiHeadedAttention).edges
    with pytest.raises(AssertionError, match='"no scale"'):
        check(scaled_by(lambda **_: 1))
    with pytest.raises(AssertionError, match='"-1e9 in half precision"'):
        check(MultiHeadedAttention, edges=True)


def test_a_check_that_cannot_be_asked_is_an_error():
    with pytest.raises(CallError, match="NoneType") as error:
        check(lambda d_model, num_heads: None)
    assert [entry.path.name for entry in error.traceback] == ["test_command.py", "diagnosis.py"]
    with pytest.raises(CallError) as error:
        check(lambda d_model, num_heads: 1 / 0)
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_the_command_passes_its_options_on(monkeypatch, file):
    asked = {}

    def remember(candidate, **options):
        asked.update(options)
        return Diagnosis(True, "")

    monkeypatch.setattr("attndoctor.__main__.diagnose", remember)
    told = """--num-heads 2 --causal always --mask hide --key-mask add --qkv heads --scale 0.5
        --no-bias --no-batch-first --no-out-projection --seconds none --edges"""
    assert main([f"{file}:Plain", *told.split(), "--mask-shape", "[T, T]"]) == 0
    assert asked == {
        "num_heads": 2, "causal": "always", "mask": "hide", "key_mask": "add", "qkv": "heads",
        "scale": 0.5, "bias": False, "batch_first": False, "out_projection": False,
        "seconds": None, "edges": True, "mask_shape": "[T, T]",
    }  # fmt: skip
    main([f"{file}:Plain"])
    usual = inspect.signature(diagnose).parameters
    assert asked == {name: usual[name].default for name in asked}


def test_the_command_prints_json(capsys, file):
    assert main([f"{file}:Unscaled", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["healthy"], found["first_seen_on"]) == (False, "self-attention")
    known = named("no scale")
    assert found["exhibits"] == [{n: getattr(known, n) for n in ("name", "cause", "hint")}]
    assert "forward(query, key, value)" in found["taken"] and "scale=1" in found["message"][0]
    assert found["versions"]["torch"] == torch.__version__
    assert main([f"{file}:Plain", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] and found["first_seen_on"] is None and found["exhibits"] == []
    assert Diagnosis(False, "", failed=("a", "b"), edges=("a",)).as_dict()["first_seen_on"] == "b"
    assert main([f"{file}:Sizes", "--json"]) == 2
    assert not json.loads(capsys.readouterr().out)["healthy"]


def test_the_command_runs_the_file_and_its_status_tells_what_came_of_it(capsys, file):
    status, out, err = run(capsys, f"{file}:built")
    assert status == 0 and str(file) in err and "d_model=32, num_heads=4" in out
    status, out, err = run(capsys, f"{file}:Sizes")
    assert (status, out) == (2, "") and "Sizes" in err
    status, out, _ = run(capsys, f"{file}:WithPositions")
    assert status == 2 and out.startswith(CANNOT_BE_ASKED)


NAMES = "dataclass, Path, Plain, unscaled, Sizes, Unscaled, WithPositions, built"


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        ("mine.py", "'mine.py'"),
        ("yours.py:Attention", "yours.py"),
        ("{file}:Atention", NAMES),
        ("{folder}/broken.py:Attention", "ZeroDivisionError: division by zero"),
        ("{folder}/notes.txt:Attention", "notes.txt"),
    ],
)
def test_mistakes_in_the_command_are_told(capsys, file, candidate, words):
    (file.parent / "broken.py").write_text("1 / 0\n")
    (file.parent / "notes.txt").write_text("Attention\n")
    assert main([candidate.format(file=file, folder=file.parent), "--json"]) == 2
    told = capsys.readouterr()
    assert words in " ".join(told.err.split())
    assert words in " ".join(json.loads(told.out)["message"])


def test_it_is_a_command(file):
    command = [sys.executable, "-m", "attndoctor", f"{file}:Unscaled"]
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=settings)
    assert done.returncode == 1 and done.stdout.startswith(UNLESS_MEANT)
