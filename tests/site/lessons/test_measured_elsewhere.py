"""What pages say of programs in `benchmarks` stands in these programs' results.

A lesson can't load them: downloaded as a notebook, it runs where there is no such folder.
"""

import json
import re

from tools import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def results_of(table):
    """The results of `benchmarks/heads.py`, by what was trained."""
    measured = json.loads((RESULTS / f"heads-{table}-cpu.json").read_text(encoding="utf-8"))
    return {name: found for name, found in measured.items() if name not in ("measured on", "goals")}


def test_in_one_of_four_other_languages_the_side_hardly_parts_heads():
    """L08, at "Who shares": with other endings the side may hardly matter."""

    def gap_of_sides(language):
        """How much more often two relations share if their partners stand on the same side."""
        together, across = (language["shared by side"][name] for name in ("same side", "across"))
        return together[0] / together[1] - across[0] / across[1]

    own, *others = results_of("concord-endings").values()
    assert [language["seeds"] for language in others] == [5] * 4
    assert all(language["shared by side"]["rivals"][0] == 0 for language in (own, *others))
    hardly = [gap_of_sides(language) < 0.1 < gap_of_sides(own) for language in others]
    assert hardly.count(True) == 1


def test_what_the_coin_is_after_more_sentences():
    """L08: with 128 sentences per step some models find whom a pronoun means, in another way."""
    found = results_of("concord-long")["4 heads"]["relations"]["predicate>noun"]
    assert found["right"][-1] > 0.9 and found["largest mass"][-1] < 0.6


def test_on_what_l10_says_that_was_measured():
    """Once somebody measures on a GPU, L10 has to say so: now it says that nobody did."""
    for file in sorted(RESULTS.glob("*.json")):
        if file.name.startswith("heads-"):
            continue  # what was learned, not how fast: the same on every machine
        measured_on = json.loads(file.read_text(encoding="utf-8"))["measured on"]
        assert "gpu" not in measured_on, file.name


def test_the_page_shows_what_its_code_printed_with_the_versions_that_it_names():
    page = (ROOT / "book/found.md").read_text(encoding="utf-8")
    kept = json.loads((RESULTS / "found-cpu.json").read_text(encoding="utf-8"))
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    shown = [{"code": code, "printed": printed} for code, printed in blocks]
    assert shown == kept["runs"], "run python benchmarks/found.py"
    asked = {version.split("+")[0] for version in kept["versions"].values()}
    assert set(re.findall(r"\d+\.\d+\.\d+", page)) == asked
    direct = [code for code, _ in blocks if "diagnose" not in code]
    assert len(direct) == page.count("**Setting:**")  # each bug is shown without diagnose, too
