"""The page of bugs that were found shows what its own code printed."""

import json
import re

from tools import ROOT

BLOCKS = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
PAGE = (ROOT / "book" / "found.md").read_text(encoding="utf-8")
KEPT = json.loads((ROOT / "benchmarks/results/found-cpu.json").read_text(encoding="utf-8"))


def test_the_page_shows_what_its_code_printed():
    shown = [{"code": code, "printed": printed} for code, printed in BLOCKS.findall(PAGE)]
    assert shown == KEPT["runs"], "run python benchmarks/found.py"


def test_the_page_names_the_versions_that_were_asked():
    asked = {version.split("+")[0] for version in KEPT["versions"].values()}
    assert set(re.findall(r"\d+\.\d+\.\d+", PAGE)) == asked


def test_each_bug_is_repeated_without_diagnose_in_six_lines():
    direct = [run["code"] for run in KEPT["runs"] if "diagnose" not in run["code"]]
    assert len(direct) == PAGE.count("**Setting:**")
    assert all(len([*filter(None, code.splitlines())]) <= 6 for code in direct)
