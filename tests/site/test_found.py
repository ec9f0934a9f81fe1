"""The page of bugs that were found shows what its own code printed."""

import json
import re

from tools import ROOT

BLOCKS = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
PAGE = (ROOT / "book" / "found.md").read_text(encoding="utf-8")
KEPT = json.loads((ROOT / "benchmarks/results/found-cpu.json").read_text(encoding="utf-8"))


def test_the_page_shows_what_its_code_printed_with_the_versions_that_it_names():
    shown = [{"code": code, "printed": printed} for code, printed in BLOCKS.findall(PAGE)]
    assert shown == KEPT["runs"], "run python benchmarks/found.py"
    asked = {version.split("+")[0] for version in KEPT["versions"].values()}
    assert set(re.findall(r"\d+\.\d+\.\d+", PAGE)) == asked
    direct = [code for code, _ in BLOCKS.findall(PAGE) if "diagnose" not in code]
    assert len(direct) == PAGE.count("**Setting:**")  # each bug is shown without diagnose, too
