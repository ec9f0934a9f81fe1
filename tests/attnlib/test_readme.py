"""The README's Python is code that runs."""

import re

import pytest
from tools import ROOT

from attnlib import museum

README = ROOT / "README.md"


def test_the_examples_run_one_after_the_other(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert names["weights"].shape == (1, 4, 7, 7)
    assert names["maps"].shape == (1, 4, 256, 256)
    assert names["maps"].sum(-1) == pytest.approx(1, abs=1e-5)
    assert "Healthy." in capsys.readouterr().out


def test_bugs_are_counted():
    counted = f"{len(museum.EXHIBITS)} known bugs"
    assert counted in README.read_text(encoding="utf-8"), f"README should say {counted}"
