"""A training that is stopped in the middle, in a file from which it goes on.

A checkpoint is one `.safetensors` file. Its tensors are the model's (``model.``...), those of
AdamW by the parameter's name (``optimizer.``...), the losses so far and the state of torch's random
numbers. Its metadata say in JSON what was trained and how far, and in which state the random
numbers are by which sentences are drawn.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from attncourse._whole_files import write_whole
from attncourse.training.evaluation import Evaluation
from attncourse.training.recipe import Recipe
from attnlib.rng import Sfc32

FORMAT = "attnlib training 2"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW remembers of a parameter


@dataclass
class State:
    """All that a training changes, and goes on from."""

    model: nn.Module
    optimizer: torch.optim.AdamW
    rng: Sfc32  # draws fresh sentences
    losses: list[float] = field(default_factory=list)  # of each step's batch, before the step
    evaluations: dict[int, Evaluation] = field(default_factory=dict)  # by steps taken
    seconds: float = 0.0  # that the steps took

    @property
    def step(self) -> int:
        """How many steps were taken."""
        return len(self.losses)


def checked_path(checkpoint: str | os.PathLike[str]) -> Path:
    """Return where checkpoints go, or raise unless a file can be there."""
    if not isinstance(checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be a file's path, got {type(checkpoint).__name__}")
    path = Path(checkpoint)
    if path.suffix != ".safetensors":
        raise ValueError(f"checkpoint must be a path that ends in .safetensors, got {str(path)!r}")
    folder = os.path.dirname(path) or os.curdir
    if path.is_dir() or not os.path.isdir(folder):
        what = "which is a folder" if path.is_dir() else f"but there is no folder {folder}"
        raise ValueError(f"checkpoint must be a file in a folder, got {str(path)!r}, {what}")
    try:
        import safetensors  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "checkpoint needs the package safetensors: pip install safetensors"
        ) from error
    return path


def write_checkpoint(path: Path, recipe: Recipe, seed: int, state: State) -> None:
    """Save a training between two steps; the file is whole, the old or the new one, at any time."""
    from safetensors.torch import save

    tensors = _tensors(state)
    metadata = _identity(recipe, seed) | {
        "step": json.dumps(state.step),
        "rng": json.dumps(state.rng.state),
        "evaluations": json.dumps({i: asdict(seen) for i, seen in state.evaluations.items()}),
        "seconds": json.dumps(state.seconds),
    }
    metadata["sha256"] = _digest(tensors, metadata)
    write_whole(path, save(tensors, metadata=metadata))


def read_checkpoint(path: Path, recipe: Recipe, seed: int, state: State) -> None:
    """Bring a training that has just begun to where the file's was, or raise ValueError."""
    tensors, metadata = _read(path)
    for name, wanted in _identity(recipe, seed).items():
        if metadata[name] != wanted:
            raise ValueError(
                f"checkpoint must be of this recipe and seed, got {str(path)!r}, which "
                f"{_difference(name, metadata[name], wanted)}: name another file to begin anew"
            )
    weights = _within(tensors, "model.")
    try:
        state.model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"checkpoint must hold the weights of the model that is made now, got {str(path)!r}: "
            f"{error}"
        ) from error
    for name, parameter in state.model.named_parameters():
        moments = _within(tensors, f"optimizer.{name}.")
        if moments:
            state.optimizer.state[parameter] = moments
    torch.set_rng_state(tensors["random"])
    state.losses = tensors["losses"].tolist()
    state.rng = Sfc32.of_state(json.loads(metadata["rng"]))
    evaluations = json.loads(metadata["evaluations"])
    state.evaluations = {int(i): Evaluation(**seen) for i, seen in evaluations.items()}
    state.seconds = json.loads(metadata["seconds"])


def _identity(recipe: Recipe, seed: int) -> dict[str, str]:
    """Return what must be the same for a training to go on."""
    return {
        "format": FORMAT,
        "recipe": json.dumps(recipe.as_json(), default=str),
        "seed": json.dumps(seed),
    }


def _tensors(state: State) -> dict[str, Tensor]:
    """Return the tensors of a file: copies, as a model may hold one of them twice."""
    tensors = {f"model.{name}": x for name, x in state.model.state_dict().items()}
    for name, parameter in state.model.named_parameters():
        remembered = state.optimizer.state.get(parameter, {})
        tensors |= {f"optimizer.{name}.{one}": remembered[one] for one in MOMENTS if remembered}
    tensors["losses"] = torch.tensor(state.losses, dtype=torch.float64)
    tensors["random"] = torch.get_rng_state()
    return {name: x.detach().clone().contiguous() for name, x in tensors.items()}


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata of a checkpoint."""
    from safetensors import SafetensorError, safe_open

    wanted = f"checkpoint must be a file that a training wrote, got {str(path)!r}"
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # Copies: while tensors look into the file, Windows lets nobody replace it.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    except SafetensorError as error:
        raise ValueError(
            f"{wanted}, which can't be read as one ({error}): it is damaged, or another file"
        ) from error
    if metadata.get("format") != FORMAT:
        kind = f"format {metadata['format']!r}" if "format" in metadata else "no training in it"
        raise ValueError(f"{wanted}, with {kind}")
    if metadata.pop("sha256", None) != _digest(tensors, metadata):
        raise ValueError(f"{wanted}, which was changed or damaged: its sha256 is another")
    return tensors, metadata


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    from safetensors.torch import save

    stored = save(dict(tensors)) + json.dumps(dict(metadata), sort_keys=True).encode()
    return hashlib.sha256(stored).hexdigest()


def _within(tensors: Mapping[str, Tensor], place: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin so, without the beginning."""
    return {name[len(place) :]: x for name, x in tensors.items() if name.startswith(place)}


def _difference(name: str, found: str, wanted: str) -> str:
    if name != "recipe":
        return f"has {name} {found} instead of {wanted}"
    theirs, ours = json.loads(found), json.loads(wanted)
    own = next(one for one in [*theirs, *ours] if theirs.get(one) != ours.get(one))
    return f"has {own}={theirs.get(own)!r} instead of {ours.get(own)!r}"
