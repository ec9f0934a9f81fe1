"""What a lesson says of models that a program has trained stands in that program's results."""

import json
import re

from tools import ROOT

RESULTS = ROOT / "benchmarks" / "results"
NUMBERS = {"one": 1, "four": 4, "five": 5}


def results_of(table):
    """The results of `benchmarks/heads.py`, by what was trained."""
    path = RESULTS / f"heads-{table}-cpu.json"
    measured = json.loads(path.read_text(encoding="utf-8"))
    return {name: found for name, found in measured.items() if name not in ("measured on", "goals")}


def said_in_l08(pattern):
    """The words that L08 has for a pattern's groups, wherever it says such a sentence."""
    said = " ".join((ROOT / "book" / "L08_What_Heads_Learn.md").read_text("utf-8").split())
    return re.findall(pattern, said)


def told_in_l08(pattern):
    """The numbers that L08 tells in a sentence."""
    [words] = said_in_l08(pattern)
    return [NUMBERS[word] if word in NUMBERS else float(word) for word in words]


def gap_of_sides(language):
    """How much more often two relations share if their partners stand on the same side."""
    together, across = (language["shared by side"][name] for name in ("same side", "across"))
    return together[0] / together[1] - across[0] / across[1]


def test_who_shares_a_head_in_other_languages():
    own, *others = results_of("concord-endings").values()
    assert all(language["shared by side"]["rivals"][0] == 0 for language in (own, *others))

    [seeds] = {language["seeds"] for language in others}
    hardly = [gap_of_sides(language) < 0.1 < gap_of_sides(own) for language in others]
    assert told_in_l08(
        r"in (\w+) ways, (\w+) seeds each, the side hardly parts heads in (\w+) of the four"
    ) == [len(others), seeds, sum(hardly)]


def test_what_the_coin_is_after_more_sentences():
    assert said_in_l08(r"With 128 sentences per step some models do better")
    found = results_of("concord-long")["4 heads"]["relations"]["predicate>noun"]
    assert found["right"][-1] > 0.9 and found["largest mass"][-1] < 0.6


def test_on_what_l10_says_that_was_measured():
    """Once somebody measures on a GPU, L10 says on which one, and when."""
    said = " ".join((ROOT / "book" / "L10_Making_Attention_Fast.md").read_text("utf-8").split())
    [processor] = re.findall(
        r"All of them were made on a processor \((.+?)\), none on a GPU: so this page has no times",
        said,
    )
    for file in sorted(RESULTS.glob("*.json")):
        if file.name.startswith("heads-"):
            continue  # what was learned, not how fast: the same on every machine
        measured_on = json.loads(file.read_text(encoding="utf-8"))["measured on"]
        assert measured_on["processor"] == processor and "gpu" not in measured_on, file.name
