"""Where weights come from: a state dict, or a file, whose needed tensors alone are read."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

Source = Mapping[str, Tensor] | str | PathLike[str]


class Tensors(NamedTuple):
    """Tensors by name, each fetched when it is asked for."""

    names: list[str]
    fetch: Callable[[str], Tensor]
    state_dicts: Sequence[str] = ()  # names that hold some themselves, as in a checkpoint
    config: Mapping[str, Any] = {}  # the config.json beside a file, as transformers writes it

    def __str__(self) -> str:
        """Say what was found, for errors."""
        count = len(self.names)
        some = ", ".join([*map(repr, self.names[:4]), *(["..."] if count > 4 else [])])
        tensors = "tensor" if count == 1 else "tensors"
        found = f"{count} {tensors} ({some})" if count else "no tensors"
        if self.state_dicts:
            inner = " or ".join(f"source[{name!r}]" for name in self.state_dicts)
            found += f": it looks like a whole checkpoint, so pass {inner}"
        return found


@contextmanager
def opened(source: Source) -> Iterator[Tensors]:
    """Give the tensors of a state dict or of a .safetensors file, which is closed afterwards.

    Raises:
        TypeError: neither.
        FileNotFoundError: no such file.
        ValueError: another kind of file, or a damaged one.
        ImportError: the package safetensors is missing.
    """
    if isinstance(source, Mapping):
        tensors = {name: x for name, x in source.items() if isinstance(x, Tensor)}
        names = [name for name in tensors if isinstance(name, str)]
        yield Tensors(names, tensors.__getitem__, _folders(source))
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
            yield Tensors(list(file.keys()), file.get_tensor, config=_config_beside(path))
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
    """Return what is said of a model whose file this is, or nothing."""
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
    if not path.is_file():  # a pipe would be waited for
        raise ValueError(f"{wanted}, which is no file")
    if path.suffix in (".bin", ".pt", ".pth", ".ckpt"):
        raise ValueError(
            f"{wanted}: read it with torch.load(..., weights_only=True), and pass the state dict "
            "in it"
        )
    if path.suffix != ".safetensors":
        raise ValueError(f"{wanted}, a file of another kind ({path.suffix or 'no ending'})")
    return path
