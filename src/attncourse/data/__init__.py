"""Weights that were trained once, each file with a card that says how, and what sweeps found.

    >>> from attncourse import data
    >>> model, card = data.load("concord")
    >>> card.command
    'python -m attncourse.training concord --seed 0 --save'

A sweep trains models with several numbers of heads, from several seeds, and keeps what they get
right::

    >>> data.load_sweep("staircase").right("2 places").shape  # [numbers of heads, seeds]
    torch.Size([4, 20])

A model's digest is the same on every machine, so what is loaded is what a reader would train.
"""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attncourse.grid import digest
from attnlib.checks import require_count, require_text
from attnlib.model import TransformerModel

__all__ = ["Card", "SweepCard", "load", "load_sweep", "saved"]

FOLDER = Path(__file__).parent
SWEEPS = Path(__file__).parent / "sweeps"


@dataclass(frozen=True)
class Card:
    """How weights came about."""

    recipe: str  # a name in `attncourse.training.RECIPES`
    seed: int
    command: str  # what makes them again
    date: str
    versions: dict[str, str]  # of Python, torch and attnlib at the time
    seconds: float  # that the steps took
    steps: int
    digest: str  # which model it is, as `attncourse.training.digest` finds it
    settings: dict[str, Any]  # the recipe, as `Recipe.as_json` gives it
    model: dict[str, Any]  # as `TransformerModel.spec` gives it
    losses: list[float]  # of each step's batch
    evaluations: dict[str, dict[str, Any]]  # by steps taken: what was right, as in `Evaluation`

    def __post_init__(self) -> None:
        if str(self.steps) not in self.evaluations:
            raise ValueError(f"evaluations must tell what was right after all {self.steps} steps")

    @property
    def final(self) -> dict[str, Any]:
        """What the model got right at the end."""
        return self.evaluations[str(self.steps)]


@dataclass(frozen=True)
class SweepCard:
    """What a sweep found, and how.

    A training has its `trial`, `heads` and `seed`; `digest` and `seconds`; the first `losses`; and,
    at the end, the share of words whose answers are all right (`joint`) and of each relation's
    right answers (`relations`). In some sweeps it also has which head of the last layer has most
    weight on the true partners, 0-based (`homes`), and after every so many steps (`steps`) what was
    right of each relation (`right`) and what was watched (`watched`).
    """

    sweep: str  # its name in `attncourse.training.SWEEPS`
    command: str  # what runs it again
    date: str
    versions: dict[str, str]
    heads: list[int]
    seeds: list[int]
    settings: dict[str, dict[str, Any]]  # of each trial, as `Recipe.as_json`, without `num_heads`
    trainings: list[dict[str, Any]]

    def values(self, what: str, trial: str) -> list[list[Any]]:
        """Return what all trainings of a trial found: for each number of heads a list over seeds.

        Raises:
            ValueError: there is no such trial.
        """
        if trial not in self.settings:
            raise ValueError(f"trial must be one of {list(self.settings)}, got {trial!r}")
        found = {(of["heads"], of["seed"]): of for of in self.trainings if of["trial"] == trial}
        return [[found[h, seed][what] for seed in self.seeds] for h in self.heads]

    def right(self, trial: str) -> Tensor:
        """Return the share of words whose answers are all right, [numbers of heads, seeds].

        Raises:
            ValueError: there is no such trial.
        """
        return torch.tensor(self.values("joint", trial))


def saved() -> list[tuple[str, int]]:
    """Return what is saved: recipes and seeds."""
    found = []
    for path in FOLDER.glob("*-seed*.json"):
        recipe, _, seed = path.stem.rpartition("-seed")
        if seed.isdecimal():
            found.append((recipe, int(seed)))
    return sorted(found)


def load(recipe: str, seed: int = 0) -> tuple[TransformerModel, Card]:
    """Return a trained model, in evaluation mode, and the card of its weights.

    Args:
        recipe: a name in `attncourse.training.RECIPES`.
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
    try:
        model = TransformerModel.of_spec(card.model, device="meta")  # without drawing weights
        model.load_state_dict(_tensors(path.read_bytes()), assign=True)
        found = digest(model)
    except ImportError:
        raise
    except Exception as error:  # each damage has an error of its own
        raise ValueError(
            f"the weights {path.name} and their card must be of one model: one of them was changed "
            f"or damaged ({error}); {again}"
        ) from error
    if found != card.digest:
        raise ValueError(
            f"the weights {path.name} must have the digest of their card, {card.digest:.8}..., got "
            f"{found:.8}...: one of them was changed or damaged; {again}"
        )
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
    again = f"python -m attncourse.training {recipe} --seed {seed} --save makes model and card anew"
    try:
        card = Card(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"the card {path.name} was changed or damaged: {error}; {again}"
        ) from error
    if (card.recipe, card.seed) != (recipe, seed):
        raise ValueError(
            f"the card {path.name} must be of recipe {recipe!r} with seed {seed}, got one of "
            f"{card.recipe!r} with seed {card.seed}: {again}"
        )
    return card


def load_sweep(name: str) -> SweepCard:
    """Return what a sweep of `attncourse.training.SWEEPS` found.

    Raises:
        TypeError: `name` is no text.
        FileNotFoundError: no such sweep is saved.
        ValueError: the file was changed or damaged, or some of its trainings are still to come.
    """
    require_text("name", name)
    card = read_sweep(name)
    wanted = len(card.settings) * len(card.heads) * len(card.seeds)
    if len(card.trainings) < wanted:
        raise ValueError(
            f"the sweep {name!r} must have all its {wanted} trainings, got {len(card.trainings)}: "
            f"{card.command} goes on with it"
        )
    return card


def read_sweep(name: str) -> SweepCard:
    """Return what was kept of a sweep so far; raises what `load_sweep` raises."""
    path = SWEEPS / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(repr(found.stem) for found in SWEEPS.glob("*.json"))) or "none"
        raise FileNotFoundError(f"no sweep {name!r} is saved; there are {known}")
    try:
        return SweepCard(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"the sweep {path.name} was changed or damaged: {error}; to make it anew, remove "
            f"{path} and run python -m attncourse.training {name} --save"
        ) from error


def write_sweep(card: SweepCard) -> None:
    """Save what a sweep has found so far."""
    write_atomically(SWEEPS / f"{card.sweep}.json", _card_text(card).encode())


def write(model: TransformerModel, **said: Any) -> Card:
    """Save a model's weights, and a card with all that is `said` of them beside what they are."""
    from safetensors.torch import save

    card = Card(**said, model=model.spec())
    weights = save(model.state_dict())
    write_atomically(_path(card.recipe, card.seed, "safetensors"), weights)
    write_atomically(_path(card.recipe, card.seed, "json"), _card_text(card).encode())
    return card


def _card_text(card: Card | SweepCard) -> str:
    """Return a card as JSON, one line for each thing that it says, and for each training."""
    said = dataclasses.asdict(card)
    lines = [f" {json.dumps(name)}: {_in_lines(value)}" for name, value in said.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _in_lines(value: Any) -> str:
    """Return JSON, a list of records with a line for each."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"  {json.dumps(record)}" for record in value) + "\n ]"
    return json.dumps(value)


def _path(recipe: str, seed: int, ending: str) -> Path:
    return FOLDER / f"{recipe}-seed{seed}.{ending}"


def _tensors(stored: bytes) -> dict[str, Tensor]:
    try:
        from safetensors.torch import load as tensors_of
    except ImportError as error:
        raise ImportError(
            "saved weights need the package safetensors: pip install safetensors"
        ) from error
    return tensors_of(stored)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step: a reader finds the old content or the new, never a part."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
