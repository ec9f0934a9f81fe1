"""Save a trained model with its card, and compare a training with the card of an earlier one.

It comes out the same, bit for bit, on every machine (see `grid`), so digests are compared. Where
they differ all the same, the numbers beside them say how much that means: losses are compared to
the digits that a card has, and at the end what the model gets right.
"""

import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import torch

from attncourse import data
from attncourse.data import Card
from attncourse.training.loop import Trained
from attncourse.training.recipe import Recipe

DIGITS = 6  # of the numbers on a card
TOLERANCE = 2e-6


@dataclass(frozen=True)
class Comparison:
    """A number, or the digest, of a training beside that of a card."""

    what: str
    found: float | str  # the training's
    saved: float | str  # the card's

    @property
    def agrees(self) -> bool:
        """Whether they are the same, numbers to the digits that a card has."""
        if isinstance(self.found, str) or isinstance(self.saved, str):
            return self.found == self.saved
        return abs(self.found - self.saved) <= TOLERANCE


def save(trained: Trained) -> Card:
    """Write a trained model's weights and card into `attncourse.data`.

    Raises:
        ValueError: the training was stopped early, or isn't repeatable.
    """
    recipe = trained.recipe
    if trained.digest is None:
        raise ValueError(
            "trained must come of a recipe that is repeatable, got one in float32: its weights "
            "would be another machine's, too, with other numbers"
        )
    if len(trained.losses) < recipe.steps:
        raise ValueError(
            f"trained must have taken all {recipe.steps} steps of its recipe, "
            f"got {len(trained.losses)}"
        )
    return data.write(
        trained.model,
        recipe=recipe.name,
        seed=trained.seed,
        command=f"python -m attncourse.training {recipe.name} --seed {trained.seed} --save",
        date=datetime.now(UTC).date().isoformat(),
        versions=versions(),
        seconds=round(trained.seconds, 1),
        steps=recipe.steps,
        digest=trained.digest,
        settings=recipe.as_json(),
        losses=rounded(trained.losses),
        evaluations=rounded({str(step): asdict(of) for step, of in trained.evaluations.items()}),
    )


def versions() -> dict[str, str]:
    """Return the versions that a card names."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "attnlib": version("attnlib"),
    }


def compare(trained: Trained, card: Card) -> list[Comparison]:
    """Compare a training, whole or stopped early, with the card of an earlier one.

    Raises:
        ValueError: the card is of another recipe or seed, or the recipe was changed since.
    """
    require_same_settings(trained.recipe, card)
    if trained.seed != card.seed:
        raise ValueError(f"card must be of seed {trained.seed}, got one of seed {card.seed}")
    pairs = list(zip(trained.losses, card.losses, strict=False))
    worst = max(range(len(pairs)), key=lambda step: abs(pairs[step][0] - pairs[step][1]))
    rows = [Comparison(f"loss of step {worst}, the furthest apart", *pairs[worst])]
    if len(trained.losses) == card.steps:
        final = asdict(trained.final)
        rows += [Comparison(name, final[name], card.final[name]) for name in ("loss", "joint")]
        for name in ("readouts", "relations"):
            rows += [
                Comparison(f"{name[:-1]} {own}", final[name][own], share)
                for own, share in card.final[name].items()
            ]
        rows.append(Comparison("digest", trained.digest or "none", card.digest))
    return rows


def require_same_settings(recipe: Recipe, card: Card) -> None:
    """Raise ValueError unless a card's weights were made by this very recipe."""
    settings = recipe.as_json()
    for name in settings | card.settings:
        if settings.get(name) != card.settings.get(name):
            raise ValueError(
                f"the recipe {recipe.name!r} must be the one that made the saved weights, got "
                f"{name}={settings.get(name)!r} instead of {card.settings.get(name)!r}: "
                f"{card.command} saves what it makes now"
            )


def rounded(value: Any) -> Any:
    """Return a number, also inside lists and dicts, with as many digits as a card has."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, DIGITS)
