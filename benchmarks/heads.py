"""What the heads of small models learn, and how many are needed: what the lessons say, over seeds.

    python benchmarks/heads.py                      # everything: half an hour on a busy core
    python benchmarks/heads.py concord induction    # some of it

One thread; each table is written to benchmarks/results/heads-<table>-cpu.json, with every seed.

concord: the made language, fresh sentences, 32 per step. Shares of right answers; the largest mass
that a head puts on the true partners, and what the best fixed offset would; which relations have
the same best head.
concord-long: the same from a pool of 20,000 sentences, 128 per step.
lookup: two values at once. "fixed": attention alone, its weights from question and keys, never from
values. "model": the course's model, whose weights may depend on all that a token holds.
diagonals: the tokens one and three places back.
staircase: as many heads as needs, or fewer. "keys": too few heads, and too many.
induction: what followed last time. Steps until half, and nine tenths, of it is right; how much the
best head of the last layer looks there.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from measuring import save, show
from torch import Tensor, nn

from attnlib import MultiHeadAttention
from attnlib.model import Answers
from attnlib.patterns import Scores, induction_score, relation_mass
from attnlib.relations import Batch, Lookup, diagonals, lookup, pack
from attnlib.training import RECIPES, Recipe, Trained, held_out_sentences, train

HEADS = (1, 2, 4, 8, 16)
FIVE, THREE = range(5), range(3)
PAIRS = [  # of relations that one word has to look for at once, and that it hasn't
    ("verb>subject", "verb>object"),
    ("their>owner", "their>thing"),
    ("adjective>noun", "adjective>adverb"),
    ("verb>object", "their>thing"),
    ("determiner>noun", "adjective>noun"),
    ("verb>subject", "their>owner"),
]


class FixedWeights(nn.Module):
    """Attention whose weights come from the question and the keys, and whose values from values."""

    def __init__(self, task: Lookup, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.task = task
        self.asked = nn.ModuleList([nn.Embedding(task.slots, d_model) for _ in range(2)])
        self.keys = nn.Embedding(task.slots, d_model)
        self.values = nn.Embedding(task.values, d_model)
        self.attention = MultiHeadAttention(d_model, num_heads, bias=False)
        self.readouts = nn.ModuleDict(
            {name: nn.Linear(d_model, task.values, bias=False) for name in task.readouts}
        )

    def forward(
        self, tokens: Tensor, *, key_mask: None = None, head_masks: None = None,
        need_weights: bool = False,
    ) -> Answers:  # fmt: skip
        asked, keys, values = self.task.parts(tokens)
        query = self.asked[0](asked[:, :1]) + self.asked[1](asked[:, 1:])  # [B, 1, d]
        row, weights = self.attention(
            query, self.keys(keys), self.values(values), need_weights=need_weights
        )
        rows = F.pad(
            row, (0, 0, self.task.slots, 0)
        )  # [B, 1, d] -> [B, M + 1, d]: slots say nothing
        logits = {name: readout(rows) for name, readout in self.readouts.items()}
        return Answers(logits, None if weights is None else [weights])


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


def spread(values: list[float]) -> str:
    """Say the lowest and the highest of some seeds."""
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low}-{high}"


def spreads(values: dict[str, list[float]]) -> dict[str, str]:
    """Say so for each relation."""
    return {name: spread(of_seeds) for name, of_seeds in values.items()}


def concord(recipe: Recipe) -> dict:
    """The table of relations, the masses, and who shares a head."""
    table = {}
    for h, models in runs(recipe, HEADS, FIVE):
        finals, masses = [one.final for one in models], [masses_of(one) for one in models]
        table[heads_of(h)] = {
            "loss": rounded(final.loss for final in finals),
            "right": {
                name: rounded(final.relations[name] for final in finals)
                for name in finals[0].relations
            },
            "largest mass": {
                name: rounded(found[name].heads.max().item() for found in masses)
                for name in masses[0]
            },
            "best fixed offset": {
                name: [scores.offset, round(scores.baseline, 4)]
                for name, scores in masses[0].items()
            },
            "same best head": {
                f"{a} & {b}": [found[a].best == found[b].best for found in masses] for a, b in PAIRS
            },
            "seconds": rounded(one.seconds for one in models),
        }
    show_heads(f"{recipe.name}: loss", table, lambda seen: {"": spread(seen["loss"])})
    show_heads(f"{recipe.name}: right", table, lambda seen: spreads(seen["right"]))
    show_heads(f"{recipe.name}: largest mass", table, lambda seen: spreads(seen["largest mass"]))
    show_heads(
        f"{recipe.name}: same best head", table,
        lambda seen: {pair: f"{sum(x)}/{len(x)}" for pair, x in seen["same best head"].items()},
    )  # fmt: skip
    return table


def heads_of(h: int) -> str:
    """Name a number of heads."""
    return "1 head" if h == 1 else f"{h} heads"


def show_heads(title: str, table: dict, cells: Callable[[dict], dict[str, str]]) -> None:
    """Print a table with a column for each number of heads."""
    columns = [cells(seen) for seen in table.values()]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    show(title, ["", *table], rows)


def joints(title: str, trials: dict[str, tuple[Recipe, tuple[int, ...], range, dict]]) -> dict:
    """Shares of words whose answers are all right."""
    table, rows = {}, []
    for name, (recipe, heads, seeds, options) in trials.items():
        for h, models in runs(recipe, heads, seeds, **options):
            joint = rounded(one.final.joint for one in models)
            seconds = rounded(one.seconds for one in models)
            table[f"{name}, {heads_of(h)}"] = {"joint": joint, "seconds": seconds}
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


def staircase_table() -> dict:
    steps = {
        f"{len(places)} places": (
            RECIPES["diagonals"].changed(task=diagonals(places), model={"d_model": 48}),
            (1, 2, 3, 4), THREE, {},
        )
        for places in ((1, 3), (1, 3, 5), (1, 2, 4, 6))
    }  # fmt: skip
    keys = RECIPES["lookup"].changed(task=lookup(slots=32, values=8))
    return joints("staircase", {
        **steps, "32 keys": (keys, (1, 2, 4, 8, 16, 32), THREE, {"make": FixedWeights})
    })  # fmt: skip


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
            "seconds": rounded(one.seconds for one in models),
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
    "lookup": lookup_table,
    "diagonals": diagonals_table,
    "staircase": staircase_table,
    "induction": induction_table,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="table", help=", ".join(TABLES))
    for name in parser.parse_args().tables or TABLES:
        save(f"heads-{name}", "cpu", TABLES[name](), [])


if __name__ == "__main__":
    main()
