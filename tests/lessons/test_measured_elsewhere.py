"""What a lesson says of models that a program has trained stands in that program's results."""

import json
import re
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
NUMBERS = {"none": 0, "three": 3, "four": 4, "five": 5, "seven": 7, "twelve": 12}


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


def shared_homes(homes):
    """In how many models two learned relations have the same best head, by the two."""
    learned = sorted(set(homes) - {"predicate>noun"})
    return {
        frozenset(couple): sum(map(int.__eq__, *(homes[name] for name in couple)))
        for couple in combinations(learned, 2)
    }


def gap_of_sides(language):
    """How much more often two relations share if their partners stand on the same side."""
    together, across = (language["shared by side"][name] for name in ("same side", "across"))
    return together[0] / together[1] - across[0] / across[1]


def test_who_shares_a_head_in_other_languages():
    own, *others = results_of("concord-endings").values()
    assert all(language["shared by side"]["rivals"][0] == 0 for language in (own, *others))

    [seeds] = {len(language["loss"]) for language in others}
    moving = [sum(language["same best head"]["verb>subject & their>owner"]) for language in others]
    assert told_in_l08(
        r"in (\w+) ways, with (\w+) seeds each\), verb > subject and their > owner share in (\w+) "
        r"of five models, or in (\w+)\."
    ) == [len(others), seeds, min(moving), max(moving)]


def test_what_one_head_leaves_unlearned():
    found = results_of("concord")
    [missed] = said_in_l08(
        r"with one head, ([\w> ]+) and ([\w> ]+) stay unlearned, and with two all but "
        r"predicate > noun are learned"
    )
    for relation in missed:
        assert max(found["1 head"]["right"][relation.replace(" ", "")]) < 0.5
    for trained in (found["2 heads"], results_of("concord-sides")["concord, 2 heads"]):
        right = trained["right"]
        assert min(min(right[name]) for name in right if name != "predicate>noun") > 0.9


def test_who_shares_one_of_two_heads():
    trained = results_of("concord-sides")["concord, 2 heads"]
    found = trained["shared by side"]
    told = told_in_l08(r"With twelve seeds it is (\d+) of (\d+), and (\d+) of (\d+)")
    assert told == [*found["across"], *found["rivals"]]

    # Where both sides share a head at all, so could rivals. (Relations by readout and side.)
    in_a = {"determiner>noun": "right", "adjective>noun": "right"} | dict.fromkeys(
        ("verb>subject", "pronoun>noun", "their>owner"), "left"
    )
    in_b = {"verb>object": "right", "their>thing": "right", "adjective>adverb": "left"}
    side = in_a | in_b
    couples = [couple for couple in combinations(side, 2) if side[couple[0]] != side[couple[1]]]
    rivals = [couple for couple in couples if couple[0].split(">")[0] == couple[1].split(">")[0]]
    across = [couple for couple in couples if couple not in rivals]
    apart = [(one, other) for one, other in across if (one in in_a) != (other in in_a)]
    homes = trained["best head"]
    seeds = range(len(trained["loss"]))

    def sharing(couples, seed):
        return sum(homes[one][seed] == homes[other][seed] for one, other in couples)

    serving = [seed for seed in seeds if sharing(across, seed) > 0]
    counts = [
        (sum(sharing(some, seed) for seed in serving), len(some) * len(serving))
        for some in (across, rivals, apart)
    ]
    assert told_in_l08(
        r"In (\w+) of the (\w+) models each side has a head of its own. In the other (\w+), (\d+) "
        r"of (\d+) pairs across share, and (\d+) of (\d+) rivals. \(Of pairs across that answer "
        r"in different readouts, as rivals do, (\d+) of (\d+)\.\)"
    ) == [len(seeds) - len(serving), len(seeds), len(serving), *counts[0], *counts[1], *counts[2]]


def test_which_couples_share_most():
    homes = results_of("concord-sides")["concord, 4 heads"]["best head"]
    shared = shared_homes(homes)
    most = {couple: count for couple, count in shared.items() if count >= 10}
    [told] = said_in_l08(
        r"two couples share in ten or more of the four-headed models: ([\w> ]+) with ([\w> ]+) "
        r"\((\d+)\), ([\w> ]+) with ([\w> ]+) \((\d+)\)"
    )
    names = [name.replace(" ", "") for name in told]
    assert most == {frozenset(names[i : i + 2]): int(names[i + 2]) for i in range(0, len(names), 3)}


def test_how_much_the_direction_explains():
    sides = results_of("concord-sides")["without B, 4 heads"]
    assert len(sides["loss"]) == 12
    assert told_in_l08(
        r"With twelve seeds, `benchmarks/heads.py concord-sides`, it is (\d+) of (\d+), and "
        r"(\d+) of (\d+) on one side"
    ) == [*sides["shared by side"]["across"], *sides["shared by side"]["same side"]]
    shared = shared_homes(sides["best head"])
    same_endings = ("determiner>noun", "adjective>noun"), ("pronoun>noun", "their>owner")
    alike = sum(shared[frozenset(couple)] for couple in same_endings)
    of_alike = len(same_endings) * len(sides["loss"])
    together, of = sides["shared by side"]["same side"]
    assert told_in_l08(r": (\d+) of (\d+) with the same endings, (\d+) of (\d+) with others") == [
        alike, of_alike, together - alike, of - of_alike
    ]  # fmt: skip
    gaps = [gap_of_sides(results_of("concord-endings")[name]) for name in ("concord", "all alike")]
    assert said_in_l08("Where all answer alike, even the direction hardly parts heads") and (
        gaps[0] > 5 * gaps[1] and gaps[1] < 0.1
    )


def test_what_the_coin_is_after_more_sentences():
    found = results_of("concord-long")["4 heads"]
    [worst, best, most] = told_in_l08(
        r"With 128 sentences per step four heads get ([.\d]+) to ([.\d]+) of these words right, in "
        r"some other way: still no head has more than about ([.\d]+) on the right noun"
    )
    right = found["right"]["predicate>noun"]
    assert [worst, best, len(right)] == [round(min(right), 2), round(max(right), 2), 5]
    assert abs(max(found["largest mass"]["predicate>noun"]) - most) < 0.005


def test_on_what_l10_says_that_was_measured():
    """Once somebody measures on a GPU, L10 says on which one, and when."""
    said = " ".join((ROOT / "book" / "L10_Making_Attention_Fast.md").read_text("utf-8").split())
    [processor] = re.findall(
        r"All of them were made on a processor \((.+?)\), none on a GPU: so this page has no times",
        said,
    )
    for file in sorted(RESULTS.glob("*.json")):
        measured_on = json.loads(file.read_text(encoding="utf-8"))["measured on"]
        assert measured_on["processor"] == processor and "gpu" not in measured_on, file.name
