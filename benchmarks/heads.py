"""What the heads of small models learn, and how many are needed: what the lessons say, over seeds.

    python benchmarks/heads.py                      # everything: half an hour on a busy core
    python benchmarks/heads.py concord induction    # some of it
    python benchmarks/heads.py sharing              # what HeadLab shows of table concord, once more

One thread; each table is written to benchmarks/results/heads-<table>-cpu.json.

concord: the made language, fresh sentences, 32 per step. Shares of right answers, and the largest
mass that a head puts on the true partners: of the seeds the lowest, the median and the highest. In
how many models two relations have the same best head, of those that learned both.
concord-long: the same from a pool of 20,000 sentences, 128 per step.
concord-endings: the same with four heads, where other words share their answers.
lookup: two values at once. "fixed": attention alone, its weights from question and keys, never from
values. "model": the course's model, whose weights may depend on all that a token holds.
diagonals: the tokens one and three places back.
induction: what followed last time. Steps until half, and nine tenths, of it is right; how much the
best head of the last layer looks there.

Sweeps that a lesson shows are in `attncourse.training.SWEEPS`.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations

import torch
from measuring import RESULTS, save, show
from torch import Tensor

from attncourse.tasks import Batch, Sentence, Task, pack
from attncourse.tasks import concord as language
from attncourse.training import RECIPES, FixedWeights, Recipe, Trained, held_out_sentences, train
from attnlib.patterns import Scores, induction_score, relation_mass
from attnlib.rng import Sfc32

SHARING = RESULTS.parents[1] / "src" / "attncourse" / "widgets" / "head_lab" / "sharing.json"
HEADS = (1, 2, 4, 8, 16)
LEARNED = 0.9  # right answers from which on a relation counts as learned, as in HeadLab
FIVE, THREE = range(5), range(3)
PAIRS = [  # of relations that one word has to look for at once, and that it hasn't
    ("verb>subject", "verb>object"),
    ("their>owner", "their>thing"),
    ("adjective>noun", "adjective>adverb"),
    ("verb>object", "their>thing"),
    ("determiner>noun", "adjective>noun"),
    ("verb>subject", "their>owner"),
    ("determiner>noun", "verb>subject"),
]


ENDINGS = {  # which words answer with the same endings; Concord's own grouping is the first
    "concord": ("determiner adjective predicate", "verb", "pronoun their"),
    "their alone": ("determiner adjective predicate", "verb", "pronoun", "their"),
    "determiner alone": ("determiner", "adjective predicate", "verb", "pronoun their"),
    "each alone": ("determiner", "adjective", "predicate", "verb", "pronoun", "their"),
    "all alike": ("determiner adjective predicate verb pronoun their",),
}


class Endings(Task):
    """Concord's sentences, whose words answer in readout A with other endings.

    Args:
        groups: of each ending, which words share it.
    """

    name, causal, length = "concord-endings", language.causal, language.length
    vocabulary, relations = language.vocabulary, language.relations

    def __init__(self, groups: tuple[str, ...]) -> None:
        classes = language.data["classes"]
        answers = [f"{group}: {noun_class}" for group in groups for noun_class in range(classes)]
        self.readouts = {**language.readouts, "A": tuple(answers)}
        self.first = {  # the first of the answers of each relation
            relation.name: classes * place
            for relation in self.relations
            for place, group in enumerate(groups)
            if relation.readout == "A" and relation.name.split(">")[0] in group.split()
        }

    def draw(self, rng: Sfc32) -> Sentence:
        sentence = language.draw(rng)
        answers = list(sentence.answers["A"])
        for name, first in self.first.items():
            for place in sentence.partners[name]:
                answers[place] = first + answers[place] % language.data["classes"]
        return replace(sentence, answers={**sentence.answers, "A": tuple(answers)})


def masses_of(trained: Trained) -> dict[str, Scores]:
    """Return how much of each relation is in the weights of the last layer's heads."""
    batch, weights = watched(trained)
    return {name: relation_mass(weights, found) for name, found in batch.partners.items()}


def watched(trained: Trained) -> tuple[Batch, Tensor]:
    """Return the held-out sentences as a batch, and the last layer's weights on them."""
    batch = pack(held_out_sentences(trained.recipe))
    with torch.no_grad():
        answers = trained.model(batch.tokens, key_mask=batch.key_mask, need_weights=True)
    return batch, answers.weights[-1]


def runs(
    recipe: Recipe, heads: tuple[int, ...], seeds: range, **options
) -> Iterator[tuple[int, list[Trained]]]:
    """Train with each number of heads from each seed."""
    for h in heads:
        one = recipe.changed(model={"num_heads": h})
        yield h, [train(one, seed=seed, progress=False, **options) for seed in seeds]


def rounded(values: Iterable[float]) -> list[float]:
    """Return numbers with as many digits as mean something."""
    return [round(value, 4) for value in values]


def of_seeds(values: Iterable[float]) -> list[float]:
    """Return the lowest, the median and the highest of some seeds."""
    shares = list(values)
    return rounded([min(shares), statistics.median(shares), max(shares)])


def spread(values: list[float]) -> str:
    """Say the lowest and the highest."""
    low, high = f"{values[0]:.3f}", f"{values[-1]:.3f}"
    return low if low == high else f"{low}-{high}"


def relations_of(models: list[Trained]) -> dict:
    """What models of several seeds get right, where their heads look, and who shares a head."""
    finals, masses = [one.final for one in models], [masses_of(one) for one in models]
    return {
        "seeds": len(models),
        "loss": of_seeds(final.loss for final in finals),
        "relations": {
            name: {
                "right": of_seeds(final.relations[name] for final in finals),
                "largest mass": of_seeds(found[name].heads.max().item() for found in masses),
            }
            for name in masses[0]
        },
        "same best head": {
            f"{a} & {b}": shared_by(
                [found[a].best == found[b].best for found in masses],
                [min(final.relations[a], final.relations[b]) for final in finals],
            )
            for a, b in PAIRS
        },
        "shared by side": shared_by_side(models, masses),
    }


def shared_by(shared: list[bool], right: list[float]) -> list[int]:
    """Count models in which two relations share a best head, and those that learned both."""
    both = [one for one, share in zip(shared, right, strict=True) if share >= LEARNED]
    return [sum(both), len(both)]


def shared_by_side(models: list[Trained], masses: list[dict[str, Scores]]) -> dict[str, list[int]]:
    """Count how many pairs of learned relations share a best head, and of how many pairs.

    Rivals are what one word needs at once. Of the others, some have their partners on one side of
    the words that ask, some on both: these are across.
    """
    batch = pack(held_out_sentences(models[0].recipe))
    rightward = {name: looks_right(partners) for name, partners in batch.partners.items()}
    counts = {"rivals": [0, 0], "across": [0, 0], "same side": [0, 0]}
    for one, other in combinations(sorted(set(masses[0]) - {"predicate>noun"}), 2):
        kind = "same side" if rightward[one] == rightward[other] else "across"
        kind = "rivals" if one.split(">")[0] == other.split(">")[0] else kind
        counts[kind][0] += sum(found[one].best == found[other].best for found in masses)
        counts[kind][1] += len(masses)
    return counts


def looks_right(partners: Tensor) -> bool:
    """Return whether most partners [B, T] stand to the right of the words that ask for them."""
    columns = torch.arange(partners.shape[1])
    return bool((partners > columns)[partners >= 0].float().mean() > 0.5)


def concord(recipe: Recipe) -> dict:
    """The table of relations, the masses, and who shares a head."""
    table = {heads_of(h): relations_of(models) for h, models in runs(recipe, HEADS, FIVE)}
    show_heads(f"{recipe.name}: loss", table, lambda seen: {"": spread(seen["loss"])})
    show_relations(recipe.name, table, "right")
    show_relations(recipe.name, table, "largest mass")
    show_shared(recipe.name, table)
    return table


def endings_table() -> dict:
    """Who shares a head, if other words answer with the same endings."""
    table = {}
    for name, groups in ENDINGS.items():
        recipe = RECIPES["concord"].changed(task=Endings(groups))
        [(_, models)] = runs(recipe, (4,), FIVE)
        table[name] = {"answers": groups, **relations_of(models)}
    show_relations("concord-endings", table, "right")
    show_shared("concord-endings", table)
    return table


def heads_of(h: int) -> str:
    """Name a number of heads."""
    return "1 head" if h == 1 else f"{h} heads"


def show_relations(title: str, table: dict, what: str) -> None:
    """Print something of each relation, the lowest and the highest of the seeds."""
    show_heads(
        f"{title}: {what}", table,
        lambda seen: {name: spread(of[what]) for name, of in seen["relations"].items()},
    )  # fmt: skip


def show_shared(title: str, table: dict) -> None:
    """Print in how many models two relations share a best head, of those that learned both."""
    show_heads(
        f"{title}: same best head", table,
        lambda seen: {pair: "{}/{}".format(*x) for pair, x in seen["same best head"].items()},
    )  # fmt: skip


def show_heads(title: str, table: dict, cells: Callable[[dict], dict[str, str]]) -> None:
    """Print a table with a column for each number of heads, or each way to answer."""
    columns = [cells(seen) for seen in table.values()]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    show(title, ["", *table], rows)


def joints(title: str, trials: dict[str, tuple[Recipe, tuple[int, ...], range, dict]]) -> dict:
    """Shares of words whose answers are all right."""
    table, rows = {}, []
    for name, (recipe, heads, seeds, options) in trials.items():
        for h, models in runs(recipe, heads, seeds, **options):
            joint = rounded(one.final.joint for one in models)
            table[f"{name}, {heads_of(h)}"] = {"joint": joint}
            rows.append([name, str(h), "  ".join(f"{share:.3f}" for share in joint)])
    show(f"{title}: all answers of a word right", ["", "heads", "each seed"], rows)
    return table


def lookup_table() -> dict:
    recipe = RECIPES["lookup"]
    return joints("lookup", {
        "fixed": (recipe, (1, 2, 4), FIVE, {"make": FixedWeights}),
        "model": (recipe, (1, 2, 4), FIVE, {}),
        "model, 1200 steps": (recipe.changed(steps=1200), (1,), THREE, {}),
    })  # fmt: skip


def diagonals_table() -> dict:
    return joints("diagonals", {"1 and 3 back": (RECIPES["diagonals"], (1, 2, 4), FIVE, {})})


def matched(trained: Trained) -> float:
    """Return the last layer's best score of looking at what followed last time."""
    batch, weights = watched(trained)
    return induction_score(weights, batch.tokens).heads.max().item()


def induction_table() -> dict:
    table, rows = {}, []
    for layers, h in ((2, 4), (1, 4), (2, 1), (2, 2)):
        recipe = RECIPES["induction"].changed(model={"num_layers": layers, "num_heads": h})
        seeds = range(4) if (layers, h) == (2, 4) else range(2)
        models = [train(recipe, seed=s, progress=False, evaluate_every=25) for s in seeds]
        curves = [
            {n: seen.relations["induction"] for n, seen in one.evaluations.items()}
            for one in models
        ]
        match = rounded(matched(one) for one in models)
        reached = {
            share: [next((n for n, right in c.items() if right >= share), None) for c in curves]
            for share in (0.5, 0.9)
        }
        table[f"{layers} x {heads_of(h)}"] = {
            "right": rounded(one.final.relations["induction"] for one in models),
            "steps to half": reached[0.5],
            "steps to nine tenths": reached[0.9],
            "prefix matching in the last layer": match,
        }
        rows.append([
            f"{layers} x {h}", *("  ".join(map(str, steps)) for steps in reached.values()),
            "  ".join(f"{one.final.relations['induction']:.2f}" for one in models),
            "  ".join(f"{mass:.2f}" for mass in match),
        ])  # fmt: skip
    columns = ["layers x heads", "steps to .5", "to .9", "right", "prefix matching, last layer"]
    show("induction", columns, rows)
    return table


TABLES: dict[str, Callable[[], dict]] = {
    "concord": lambda: concord(RECIPES["concord"]),
    "concord-long": lambda: concord(RECIPES["concord-long"]),
    "concord-endings": endings_table,
    "lookup": lookup_table,
    "diagonals": diagonals_table,
    "induction": induction_table,
}


def sharing() -> dict[str, dict[str, list[int]]]:
    """Return from the table concord how many models share a best head, and of how many.

    Only models that learned both relations count. A reader of HeadLab sees these counts beside
    those of their own models.
    """
    table = json.loads((RESULTS / "heads-concord-cpu.json").read_text(encoding="utf-8"))
    return {heads_of(h): table[heads_of(h)]["same best head"] for h in HEADS}


def in_lines(counts: dict[str, dict[str, list[int]]]) -> str:
    """Return counts as JSON, a line each, as the linter of browser code wants it."""
    heads = [
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"    {json.dumps(pair)}: {count}" for pair, count in of_heads.items())
        + "\n  }"
        for name, of_heads in counts.items()
    ]
    return "{\n" + ",\n".join(heads) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="table", help=", ".join([*TABLES, "sharing"]))
    names = parser.parse_args().tables or list(TABLES)
    for name in names:
        if name != "sharing":
            save(f"heads-{name}", "cpu", TABLES[name](), [])
    if {"concord", "sharing"} & {*names}:
        SHARING.write_text(in_lines(sharing()), encoding="utf-8")


if __name__ == "__main__":
    main()
