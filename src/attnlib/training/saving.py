"""Saving a trained model with its card, and telling whether a training comes out as its card says.

How exact can that be? On one processor with one version of torch every digit comes again. Elsewhere
sums are rounded in another order. Such differences stay small for a while, and then training itself
makes them large, so early losses are compared closely, and at the end what the model gets right.
"""

import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import torch

from attnlib import data
from attnlib.data import Card
from attnlib.training.loop import Trained
from attnlib.training.recipe import Recipe

EARLY_STEPS, EARLY_TOLERANCE = 100, 1e-4  # losses, in nats
FINAL_TOLERANCE = 0.05  # shares of right answers, and the loss in nats
DIGITS = 6


@dataclass(frozen=True)
class Comparison:
    """A number of a training beside that of a card.

    Attributes:
        what: what it is.
        found, saved: the training's, and the card's.
        tolerance: how far apart they may be.
    """

    what: str
    found: float
    saved: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether they are close enough."""
        return abs(self.found - self.saved) <= self.tolerance


def save(trained: Trained) -> Card:
    """Write a trained model's weights and card into `attnlib.data`.

    Raises:
        ValueError: the training was stopped early.
    """
    recipe = trained.recipe
    if len(trained.losses) < recipe.steps:
        raise ValueError(
            f"trained must have taken all {recipe.steps} steps of its recipe, "
            f"got {len(trained.losses)}"
        )
    return data.write(
        trained.model,
        recipe=recipe.name,
        seed=trained.seed,
        command=f"python -m attnlib.training {recipe.name} --seed {trained.seed} --save",
        date=datetime.now(UTC).date().isoformat(),
        versions=versions(),
        seconds=round(trained.seconds, 1),
        steps=recipe.steps,
        settings=recipe.as_json(),
        losses=[round(loss, DIGITS) for loss in trained.losses],
        evaluations=_rounded(
            {str(step): asdict(seen) for step, seen in trained.evaluations.items()}
        ),
    )


def versions() -> dict[str, str]:
    """Return the versions that a card names."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "attnlib": version("attnlib"),
    }


def compare(trained: Trained, card: Card) -> list[Comparison]:
    """Hold a training, whole or stopped early, against the card of an earlier one.

    Raises:
        ValueError: the card is of another recipe or seed, or the recipe was changed since.
    """
    require_same_settings(trained.recipe, card)
    if trained.seed != card.seed:
        raise ValueError(f"card must be of seed {trained.seed}, got one of seed {card.seed}")
    early = min(EARLY_STEPS, len(trained.losses))
    apart = [abs(a - b) for a, b in zip(trained.losses[:early], card.losses[:early], strict=True)]
    worst = apart.index(max(apart))
    rows = [
        Comparison(
            f"loss of step {worst}, the furthest apart of the first {early}",
            trained.losses[worst], card.losses[worst], EARLY_TOLERANCE,
        )
    ]  # fmt: skip
    if len(trained.losses) == card.steps:
        final = asdict(trained.final)
        for name in ("loss", "joint"):
            rows.append(Comparison(name, final[name], card.final[name], FINAL_TOLERANCE))
        for name in ("readouts", "relations"):
            rows += [
                Comparison(f"{name[:-1]} {own}", final[name][own], share, FINAL_TOLERANCE)
                for own, share in card.final[name].items()
            ]
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


def _rounded(values: dict) -> dict:
    """Return numbers, also inside inner dicts, with as many digits as a card has."""
    return {
        name: _rounded(value) if isinstance(value, dict) else round(value, DIGITS)
        for name, value in values.items()
    }
