"""Sweeps: the same training with several numbers of heads, each from several seeds.

    python -m attnlib.training staircase         # the first steps, beside those that were saved
    python -m attnlib.training staircase --save  # all of it, and save what comes out

They take minutes, so lessons read what came out (`attnlib.data.load_sweep`).
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import torch

from attnlib.data import SweepCard
from attnlib.model import TransformerModel
from attnlib.patterns import relation_mass
from attnlib.relations import concord, diagonals, lookup, pack
from attnlib.training.fixed_weights import FixedWeights
from attnlib.training.loop import Trained, held_out_sentences, train
from attnlib.training.recipe import Recipe
from attnlib.training.recipes import RECIPES
from attnlib.training.saving import DIGITS, EARLY_TOLERANCE, versions

EARLY = 10  # steps of which the losses are saved
Value = TypeVar("Value", int, float)


@dataclass(frozen=True)
class Sweep:
    """Trainings that are told apart by the number of heads and the seed.

    Attributes:
        name: what the sweep is called.
        trials: recipes, by what sets them apart; each is trained with every number of heads.
        heads: the numbers of heads.
        make: what makes the models, as for `train`.
        seeds: from how many seeds each is trained: 0, 1, ...
        homes: whether it is kept, too, what is right of each relation, and which head finds it.
    """

    name: str
    trials: Mapping[str, Recipe]
    heads: Sequence[int]
    make: Callable[..., Any] = TransformerModel.of_sizes
    seeds: int = 5
    homes: bool = False

    def trainings(
        self, seeds: Sequence[int], *, stop: int | None = None
    ) -> Iterator[tuple[str, Trained]]:
        """Train with every number of heads from each of these seeds, trial after trial.

        Args:
            seeds: those to train from.
            stop: end each training after so many steps.
        """
        for name, recipe in self.trials.items():
            for h in self.heads:
                with_heads = recipe.changed(model={"num_heads": h})
                for seed in seeds:
                    trained = train(
                        with_heads, seed=seed, progress=False, stop=stop, make=self.make
                    )
                    yield name, trained


PLACES = RECIPES["diagonals"].changed(batch=32, lr=6e-3, held_out=200)
CONCORD = RECIPES["concord"]
KEYS = RECIPES["lookup"].changed(batch=64, lr=1e-2, held_out=500)

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
        ),
        Sweep(
            "keys",
            {"32 keys": KEYS.changed(task=lookup(slots=32, values=8))},
            heads=(1, 2, 4, 8, 16, 32),
            make=FixedWeights,
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
        ),
        Sweep(
            "sides",
            {"both readouts": CONCORD, "readout A": CONCORD.changed(task=concord.asked("A"))},
            heads=(2, 4),
            homes=True,
        ),
    )
}


def early_losses(sweep: Sweep) -> dict[str, list[float]]:
    """Train the first steps with the most heads from seed 0, and return each trial's losses."""
    most = dataclasses.replace(sweep, heads=sweep.heads[-1:])
    return {name: _rounded(trained.losses) for name, trained in most.trainings([0], stop=EARLY)}


def run(sweep: Sweep) -> SweepCard:
    """Train all of a sweep, and return what came out."""
    seeds = list(range(sweep.seeds))
    found: dict[str, list[Trained]] = {name: [] for name in sweep.trials}
    for name, trained in sweep.trainings(seeds):
        print(name, trained, trained.recipe.model, flush=True)
        found[name].append(trained)

    def by_heads(values: Iterable[Value]) -> list[list[Value]]:
        """Return a value of each of a trial's trainings: a list over seeds for each h."""
        every = list(values)
        return [every[i : i + len(seeds)] for i in range(0, len(every), len(seeds))]

    def by_relation(values: Iterable[dict[str, Value]]) -> dict[str, list[list[Value]]]:
        """Return the same for each relation."""
        every = list(values)
        return {name: by_heads(one[name] for one in every) for name in every[0]}

    return SweepCard(
        sweep=sweep.name,
        command=f"python -m attnlib.training {sweep.name} --save",
        date=datetime.now(UTC).date().isoformat(),
        versions=versions(),
        seconds=round(sum(one.seconds for models in found.values() for one in models), 1),
        heads=list(sweep.heads),
        seeds=seeds,
        settings=settings_of(sweep),
        joint={
            trial: by_heads(round(one.final.joint, DIGITS) for one in models)
            for trial, models in found.items()
        },
        losses=early_losses(sweep),
        relations={
            trial: by_relation(_shares(one) for one in models)
            for trial, models in found.items()
            if sweep.homes
        },
        homes={
            trial: by_relation(_homes(one) for one in models)
            for trial, models in found.items()
            if sweep.homes
        },
    )


def _shares(trained: Trained) -> dict[str, float]:
    """Return the share of right answers of each relation."""
    return {name: round(share, DIGITS) for name, share in trained.final.relations.items()}


def _homes(trained: Trained) -> dict[str, int]:
    """Return for each relation the head of the last layer with most weight on the partners."""
    batch = pack(held_out_sentences(trained.recipe))
    with torch.no_grad():
        answers = trained.model(batch.tokens, key_mask=batch.key_mask, need_weights=True)
    assert answers.weights is not None
    last = answers.weights[-1]
    return {name: relation_mass(last, found).best for name, found in batch.partners.items()}


def settings_of(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """Return each trial's recipe as plain JSON, without the number of heads."""
    told = {name: recipe.as_json() for name, recipe in sweep.trials.items()}
    for settings in told.values():
        settings["model"].pop("num_heads", None)
    return told


def differences(sweep: Sweep, card: SweepCard) -> list[str]:
    """Train the first steps again, and say where settings or losses aren't those of the card."""
    if settings_of(sweep) != card.settings or list(sweep.heads) != card.heads:
        return [f"the sweep isn't the one that was saved: {card.command} saves what it finds now"]
    return [
        f"{name}: losses {now}, saved {card.losses[name]}"
        for name, now in early_losses(sweep).items()
        if max(abs(a - b) for a, b in zip(now, card.losses[name], strict=True)) > EARLY_TOLERANCE
    ]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, DIGITS) for value in values]
