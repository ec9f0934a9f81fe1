"""Sweeps: the same training with several numbers of heads, each from several seeds.

    python -m attncourse.training staircase         # the first steps, beside those that were saved
    python -m attncourse.training staircase --save  # all of it, and save what comes out

They take minutes, so lessons read what came out (`attncourse.data.load_sweep`). Each training is
saved as it ends; the same command goes on with a sweep that was stopped.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Any

import torch

from attncourse import data
from attncourse.data import SweepCard
from attncourse.interventions import (
    attention_knockout,
    follower_looks,
    mean_ablation,
    right_answers,
    zero_ablation,
)
from attncourse.tasks import Batch, concord, diagonals, lookup, pack, verbs_last
from attncourse.training.fixed_weights import FixedWeights
from attncourse.training.loop import Trained, held_out_sentences, train
from attncourse.training.recipe import Recipe
from attncourse.training.recipes import PLACES, RECIPES
from attncourse.training.saving import TOLERANCE, rounded, versions
from attnlib.model import TransformerModel
from attnlib.patterns import induction_score, relation_mass

AblatedHeads = Callable[[TransformerModel, Sequence[int]], AbstractContextManager[None]]

EARLY = 10  # first steps whose losses are saved


@dataclass(frozen=True)
class Sweep:
    """Trainings that differ in trial, number of heads and seed."""

    name: str
    trials: Mapping[str, Recipe]  # by what sets them apart; each with every number of heads
    heads: Sequence[int]
    seeds: int  # how many: 0, 1, ...
    make: Callable[..., Any] = TransformerModel.of_sizes
    keep: Mapping[str, Callable[[Trained], Any]] = field(default_factory=dict)  # by their names
    watch: Callable[[TransformerModel, Batch], list[float]] | None = None  # of held-out sentences
    every: int | None = None  # steps between two calls of `watch`

    def train(self, trial: str, h: int, seed: int, *, stop: int | None = None) -> Trained:
        """Train one of the models; `stop` ends the training after so many steps."""
        recipe = self.trials[trial].changed(model={"num_heads": h})
        batch, watched = pack(held_out_sentences(recipe)), self.watch
        return train(
            recipe, seed=seed, progress=False, stop=stop, make=self.make,
            evaluate_every=self.every,
            watch=None if watched is None else lambda model: watched(model, batch),
        )  # fmt: skip

    def all(self) -> Iterator[tuple[str, int, int]]:
        """Yield trial, number of heads and seed of each training."""
        return product(self.trials, self.heads, range(self.seeds))


def induction_looks(model: TransformerModel, batch: Batch) -> list[float]:
    """Return the best head's `induction_score` in the last layer, one place after and two."""
    with torch.no_grad():
        weights = model(batch.tokens, need_weights=True).weights
    assert weights is not None
    places = (induction_score(weights[-1], batch.tokens, after=after) for after in (1, 2))
    return [scores.heads.max().item() for scores in places]


def head_masses(trained: Trained) -> dict[str, list[float]]:
    """Return of each relation how much each head of the last layer puts on the true partners."""
    batch = pack(held_out_sentences(trained.recipe))
    with torch.no_grad():
        answers = trained.model(batch.tokens, key_mask=batch.key_mask, need_weights=True)
    assert answers.weights is not None
    last = answers.weights[-1]
    return {
        name: rounded(relation_mass(last, found).heads.tolist())
        for name, found in batch.partners.items()
    }


def right_without_looks(trained: Trained) -> list[float]:
    """Return what is right while the last layer can't look one place after, and two: induction."""
    batch = pack(held_out_sentences(trained.recipe))
    found: list[float] = []
    for after in (1, 2):
        with attention_knockout(trained.model, follower_looks(batch.tokens, after)):
            found += right_answers(trained.model, batch, trained.recipe.task.relations).values()
    return rounded(found)


def right_without_as_much(trained: Trained) -> list[list[float]]:
    """Return shares right with all looks, without one look, and without equal weight elsewhere.

    The looks are those of the last layer one place after an earlier copy, and two: induction.
    Elsewhere are the heaviest places of the same row that are neither look, by the mean of all
    heads; only rows count in which these carry as much weight.
    """
    batch, (relation,) = pack(held_out_sentences(trained.recipe)), trained.recipe.task.relations
    with torch.no_grad():
        weights = trained.model(batch.tokens, need_weights=True).weights
    assert weights is not None
    row = weights[-1].mean(1)  # [B, h, T, T] -> [B, T, T]
    looks = [follower_looks(batch.tokens, after) for after in (1, 2)]
    elsewhere, order = row.masked_fill(looks[0] | looks[1], 0).sort(-1, descending=True)
    found = []
    for look in looks:
        mass = (row * look).sum(-1, keepdim=True)
        enough = elsewhere.cumsum(-1) - elsewhere < mass  # until as much is gone
        others = torch.zeros_like(look).scatter(-1, order, enough)
        asked = batch.partners[relation.name].where(elsewhere.sum(-1) >= mass[..., 0], -1)
        some = dataclasses.replace(batch, partners={relation.name: asked})
        shares: list[float] = []
        for forbidden in (torch.zeros_like(look), look, others):
            with attention_knockout(trained.model, forbidden):
                shares += right_answers(trained.model, some, [relation]).values()
        found.append(rounded(shares))
    return found


def right_with_heads_left(trained: Trained, way: AblatedHeads) -> list[float]:
    """Return the mean share of right answers with all heads left, one fewer, ... none.

    Each time the head goes that is missed least.
    """
    batch = pack(held_out_sentences(trained.recipe)[:300])  # for speed

    # One layer can't find the noun of a predicate.
    relations = [one for one in trained.recipe.task.relations if one.name != "predicate>noun"]

    def right_without(gone: list[int]) -> float:
        with way(trained.model, gone):
            right = right_answers(trained.model, batch, relations)
        return sum(right.values()) / len(right)

    gone: list[int] = []
    path, left = [right_without(gone)], [*range(trained.recipe.model["num_heads"])]
    while left:
        after = {k: right_without([*gone, k]) for k in left}
        gone.append(max(after, key=after.__getitem__))
        left.remove(gone[-1])
        path.append(after[gone[-1]])
    return rounded(path)


CONCORD = RECIPES["concord"]
KEYS = RECIPES["lookup"].changed(task=lookup(slots=32, values=8), batch=64, lr=1e-2, held_out=500)

SWEEPS = {
    sweep.name: sweep
    for sweep in (
        Sweep(
            "staircase",
            {
                f"{len(places)} places": PLACES.changed(
                    task=diagonals(places), model={"d_model": 48}
                )
                for places in ((1, 3), (1, 3, 5), (1, 2, 4, 6))
            },
            heads=(1, 2, 3, 4),
            seeds=20,
        ),
        Sweep(
            "keys",
            {"32 keys": KEYS},
            heads=(1, 2, 4, 8, 16, 32),
            make=FixedWeights,
            seeds=20,
        ),
        Sweep(
            "widths",
            {f"{name} 4": KEYS.changed(model={name: 4}) for name in ("d_k", "d_v")},
            heads=(32,),
            make=FixedWeights,
            seeds=20,
        ),
        Sweep(
            "instead",
            {
                "400 steps": PLACES,
                "1200 steps": PLACES.changed(steps=1200),
                "feed-forward": PLACES.changed(model={"d_ff": 128}),
                "two layers": PLACES.changed(model={"num_layers": 2}),
            },
            heads=(1, 2),
            seeds=20,
        ),
        Sweep(
            "sides",
            {
                "both readouts": CONCORD,
                "readout A": CONCORD.changed(task=concord.with_readouts("A")),
                "verbs last": CONCORD.changed(task=verbs_last),
            },
            heads=(2, 4),
            seeds=20,
            keep={"masses": head_masses},
        ),
        Sweep(
            "pruned",
            {"400 steps": CONCORD},
            heads=(2, 4, 8),
            seeds=12,
            keep={
                "muted": partial(right_with_heads_left, way=zero_ablation),
                "averaged": partial(right_with_heads_left, way=mean_ablation),
            },
        ),
        Sweep(
            "step",
            {"12 symbols": RECIPES["induction-short"], "16 symbols": RECIPES["induction-close"]},
            heads=(4,),
            seeds=20,
            watch=induction_looks,
            every=30,
            keep={"right without": right_without_looks, "as much": right_without_as_much},
        ),
    )
}


def run(sweep: Sweep) -> SweepCard:
    """Train what is left of a sweep, save each training as it ends, and return what came out."""
    settings, path = settings_of(sweep), data.SWEEPS / f"{sweep.name}.json"
    card = data.read_sweep(sweep.name) if path.is_file() else None
    if card is None or card.settings != settings:
        card = SweepCard(
            sweep.name, f"python -m attncourse.training {sweep.name} --save", "", versions(),
            [*sweep.heads], [*range(sweep.seeds)], settings, [],
        )  # fmt: skip
    kept = {
        (of["trial"], of["heads"], of["seed"]): of
        for of in card.trainings
        if of.keys() >= sweep.keep.keys()
    }
    for which in sweep.all():
        if which in kept:
            continue
        trained = sweep.train(*which)
        print(*which, trained, flush=True)
        kept[which] = _found(sweep, which, trained)
        card = dataclasses.replace(
            card,
            date=datetime.now(UTC).date().isoformat(),
            heads=[*sweep.heads],
            seeds=[*range(sweep.seeds)],
            trainings=[kept[one] for one in sweep.all() if one in kept],
        )
        data.write_sweep(card)
    return card


def _found(sweep: Sweep, which: tuple[str, int, int], trained: Trained) -> dict[str, Any]:
    final = trained.final
    found: dict[str, Any] = dict(zip(("trial", "heads", "seed"), which, strict=True))
    found |= {
        "digest": trained.digest,
        "seconds": round(trained.seconds, 1),
        "losses": rounded(trained.losses[:EARLY]),
        "joint": rounded(final.joint),
        "relations": rounded(final.relations),
    }
    found |= {name: of(trained) for name, of in sweep.keep.items()}
    if sweep.watch is not None:
        found["steps"] = list(trained.evaluations)
        seen = trained.evaluations.values()
        right = {name: [one.relations[name] for one in seen] for name in final.relations}
        found |= {"right": rounded(right), "watched": rounded([*trained.watched.values()])}
    return found


def settings_of(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """Return each trial's recipe as plain JSON, without the number of heads."""
    found = {name: recipe.as_json() for name, recipe in sweep.trials.items()}
    for settings in found.values():
        settings["model"].pop("num_heads", None)
    return found


def differences(sweep: Sweep, card: SweepCard) -> list[str]:
    """Train the first steps again, and say where settings or losses aren't those of the card."""
    if (settings_of(sweep), [*sweep.heads]) != (card.settings, card.heads):
        return [f"the sweep isn't the one that was saved: {card.command} saves what it finds now"]
    found = []
    most = sweep.heads[-1]
    for trial in sweep.trials:
        now = sweep.train(trial, most, 0, stop=EARLY).losses
        saved = card.values("losses", trial)[-1][0]
        if max(abs(a - b) for a, b in zip(now, saved, strict=True)) > TOLERANCE:
            found.append(f"{trial}, {most} heads: losses {rounded(now)}, saved {saved}")
    return found
