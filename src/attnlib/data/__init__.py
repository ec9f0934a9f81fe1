"""Weights that were trained once, each file with a card that says how.

    >>> from attnlib import data
    >>> model, card = data.load("concord")
    >>> card.command
    'python -m attnlib.training concord --seed 0 --save'

What trains within a lesson isn't here: pages train it themselves.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from attnlib._checks import require_count, require_text
from attnlib.model import TransformerModel

__all__ = ["Card", "load", "saved"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Card:
    """How weights came about.

    Attributes:
        recipe, seed: what they were made from, see `attnlib.training`.
        command: what makes them again.
        date: the day on which it was done.
        versions: of Python, torch and attnlib at the time.
        seconds: how long the steps took.
        steps: how many there were.
        settings: the recipe, as `Recipe.as_json` gives it.
        model: what the model is, as `TransformerModel.spec` gives it.
        losses: of each step's batch.
        evaluations: what the model got right of the held-out sentences, as in `Evaluation`, by how
            many steps had been taken.
        sha256, size: of the file with the weights, in bytes.
    """

    recipe: str
    seed: int
    command: str
    date: str
    versions: dict[str, str]
    seconds: float
    steps: int
    settings: dict[str, Any]
    model: dict[str, Any]
    losses: list[float]
    evaluations: dict[str, dict[str, Any]]
    sha256: str
    size: int

    def __post_init__(self) -> None:
        if str(self.steps) not in self.evaluations:
            raise ValueError(f"evaluations must tell what was right after all {self.steps} steps")

    @property
    def final(self) -> dict[str, Any]:
        """What the model got right at the end."""
        return self.evaluations[str(self.steps)]


def saved() -> list[tuple[str, int]]:
    """Return what is saved: recipes and seeds."""
    found = []
    for path in FOLDER.glob("*-seed*.json"):
        recipe, _, seed = path.stem.rpartition("-seed")
        found.append((recipe, int(seed)))
    return sorted(found)


def load(recipe: str, seed: int = 0) -> tuple[TransformerModel, Card]:
    """Return a trained model, in evaluation mode, and the card of its weights.

    Args:
        recipe: a name in `attnlib.training.RECIPES`.
        seed: the seed from which it was trained.

    Raises:
        TypeError: `recipe` is no text, or `seed` no whole number.
        FileNotFoundError: nothing is saved under them, or the weights are missing.
        ValueError: the card or the weights were changed or damaged.
        ImportError: the package safetensors is missing.
    """
    card, path = read_card(recipe, seed), _path(recipe, seed, "safetensors")
    again = f"{card.command} makes them again"
    if not path.is_file():
        raise FileNotFoundError(f"the weights {path.name} are missing beside their card: {again}")
    stored = path.read_bytes()
    if sha256(stored) != card.sha256:
        raise ValueError(
            f"the weights {path.name} must be those of their card, {card.size} bytes with sha256 "
            f"{card.sha256:.8}..., got {len(stored)} bytes with {sha256(stored):.8}...: the file "
            f"was changed or damaged; {again}"
        )
    tensors = _tensors(stored)
    try:
        model = TransformerModel.of_spec(card.model, device="meta")  # without drawing weights
        model.load_state_dict(tensors, assign=True)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"the card of {path.name} must describe the model of its weights: it was changed or "
            f"damaged ({error}); {again}"
        ) from error
    return model.eval(), card


def read_card(recipe: str, seed: int = 0) -> Card:
    """Return the card of saved weights alone; raises what `load` raises."""
    require_text("recipe", recipe)
    require_count("seed", seed)
    path = _path(recipe, seed, "json")
    if not path.is_file():
        known = ", ".join(f"{name!r} with seed {number}" for name, number in saved()) or "none"
        raise FileNotFoundError(
            f"no weights are saved of recipe {recipe!r} with seed {seed}; there are {known}"
        )
    try:
        return Card(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"the card {path.name} was changed or damaged: {error}") from error


def write(model: TransformerModel, **said: Any) -> Card:
    """Save a model's weights, and a card with all that is `said` of them beside what they are."""
    from safetensors.torch import save

    stored = save(model.state_dict())
    card = Card(**said, model=model.spec(), sha256=sha256(stored), size=len(stored))
    _path(card.recipe, card.seed, "safetensors").write_bytes(stored)
    lines = [
        f" {json.dumps(name)}: {json.dumps(x)}" for name, x in dataclasses.asdict(card).items()
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    _path(card.recipe, card.seed, "json").write_text(text, encoding="utf-8")
    return card


def sha256(stored: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(stored).hexdigest()


def _path(recipe: str, seed: int, ending: str) -> Path:
    return FOLDER / f"{recipe}-seed{seed}.{ending}"


def _tensors(stored: bytes) -> dict[str, Tensor]:
    """Read the tensors of a .safetensors file."""
    try:
        from safetensors.torch import load as tensors_of
    except ImportError as error:
        raise ImportError(
            "saved weights need the package safetensors: pip install safetensors"
        ) from error
    return tensors_of(stored)
