"""The README's Python is code that runs."""

import re

from tools import ROOT

from attndoctor import museum

README = ROOT / "README.md"


def test_the_examples_run_one_after_the_other(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert names["weights"].shape == (1, 4, 7, 7)
    assert "Healthy." in capsys.readouterr().out


def test_bugs_are_counted():
    counted = f"{len(museum.EXHIBITS)} known bugs"
    assert counted in README.read_text(encoding="utf-8"), f"README should say {counted}"
