"""Sources of weights: a state dict, or a file from which only the needed tensors are read."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from attnlib.checks import require_dense, require_text, shape_of

Source = Mapping[str, Tensor] | str | PathLike[str]


class Tensors(NamedTuple):
    """Tensors by name, fetched one by one."""

    names: list[str]
    fetch: Callable[[str], Tensor]
    state_dicts: Sequence[str] = ()  # names of state dicts inside, as in a checkpoint
    config: Mapping[str, Any] = {}  # the config.json that transformers writes beside a file

    def read(
        self, name: str, shape: list[int] | None = None, hint: str = "", within: str = ""
    ) -> Tensor:
        """Return a dense tensor, or raise ValueError unless it is there and has this shape.

        The error has a hint where rows and columns are exchanged, and lists the tensors `within` a
        prefix where the name is missing.
        """
        if name not in self.names:
            there = [one.removeprefix(within) for one in self.names if one.startswith(within)]
            found = f"only {there} in {within!r}" if within else f"{self} without it"
            raise ValueError(f"source must hold {name!r}, got {found}")
        tensor = self.fetch(name)
        require_dense(repr(name), tensor)
        found_shape = shape_of(tensor)
        if shape is not None and found_shape != shape:
            exchanged = f": {hint}" if hint and found_shape == shape[::-1] else ""
            raise ValueError(f"{name!r} must have shape {shape}, got {found_shape}{exchanged}")
        return tensor

    def __str__(self) -> str:
        """Return what was found, for errors."""
        count = len(self.names)
        some = ", ".join([*map(repr, self.names[:4]), *(["..."] if count > 4 else [])])
        tensors = "tensor" if count == 1 else "tensors"
        found = f"{count} {tensors} ({some})" if count else "no tensors"
        if self.state_dicts:
            inner = " or ".join(f"source[{name!r}]" for name in self.state_dicts)
            found += f": it looks like a whole checkpoint, so pass {inner}"
        return found


@contextmanager
def opened(source: Source, family: str | None = None) -> Iterator[Tensors]:
    """Yield the tensors of a state dict or of a .safetensors file; close the file afterwards.

    A `family` takes the place of the config.json's `model_type`.
    """
    if family is not None:
        require_text("family", family)
    told = {} if family is None else {"model_type": family}
    if isinstance(source, Mapping):
        tensors = {name: x for name, x in source.items() if isinstance(x, Tensor)}
        names = [name for name in tensors if isinstance(name, str)]
        yield Tensors(names, tensors.__getitem__, _folders(source), told)
    elif isinstance(source, str | PathLike):
        path = _require_safetensors_file(Path(source))
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError as error:
            raise ImportError(
                f"source {str(path)!r} needs the package safetensors: pip install safetensors"
            ) from error
        try:
            file = safe_open(path, framework="pt")
        except SafetensorError as error:
            raise ValueError(
                f"source must be a .safetensors file, got {str(path)!r}, which can't be read as "
                f"one ({error}): was it copied to its end?"
            ) from error
        with file:
            yield Tensors(list(file.keys()), file.get_tensor, config=_config_beside(path) | told)
    else:
        hint = ": pass its .state_dict()" if isinstance(source, nn.Module) else ""
        raise TypeError(
            "source must be a state dict (names to tensors) or the path of a .safetensors file, "
            f"got {type(source).__name__}{hint}"
        )


def _folders(source: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, inner in source.items()
        if isinstance(inner, Mapping) and any(isinstance(x, Tensor) for x in inner.values())
    ]


def _config_beside(path: Path) -> dict[str, Any]:
    """Return the config.json beside a model's file, or {} if there is none that can be read."""
    try:
        config = json.loads(path.with_name("config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _require_safetensors_file(path: Path) -> Path:
    wanted = f"source must be a state dict or the path of a .safetensors file, got {str(path)!r}"
    if not path.exists():
        raise FileNotFoundError(f"{wanted}, and no such file exists (nothing is downloaded)")
    if path.is_dir():
        inside = sorted(file.name for file in path.glob("*.safetensors"))
        raise ValueError(f"{wanted}, a folder: pass one of the files in it, {inside}")
    if not path.is_file():  # reading a pipe would hang
        raise ValueError(f"{wanted}, which is no file")
    if path.suffix in (".bin", ".pt", ".pth", ".ckpt"):
        raise ValueError(
            f"{wanted}: read it with torch.load(..., weights_only=True), and pass the state dict "
            "in it"
        )
    if path.suffix != ".safetensors":
        raise ValueError(f"{wanted}, a file of another kind ({path.suffix or 'no ending'})")
    return path
