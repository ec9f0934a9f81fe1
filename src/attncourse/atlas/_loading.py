"""Models and tokenizers of transformers by path or by name on the hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

WAY_OUT = (
    "Without a network, pass the folder that save_pretrained has written, or a model that you have "
    "loaded yourself."
)


def load_model(where: str | PathLike[str], *, progress: bool) -> Any:
    """Return the model of a folder, or of a name that the hub of transformers knows.

    Code that comes with a model isn't run. With `progress`, transformers may show bars and warn.
    """
    where = fspath(where)
    model, found = _load("AutoModel", where, progress, output_loading_info=True)
    missing = sorted(name for name in found["missing_keys"] if "pooler" not in name)
    if missing:  # a pooler comes after all attention, and many are saved without
        raise ValueError(
            f"model must bring all of its weights, but {where!r} lacks {len(missing)} of them, "
            f"which transformers has drawn at random, such as {missing[0]}"
        )
    return model


def load_tokenizer(where: str | PathLike[str], *, wanted: bool, progress: bool) -> Any:
    """Return the tokenizer beside a model, or None; ValueError where one is `wanted`."""
    try:
        tokenizer = _load("AutoTokenizer", fspath(where), progress)
        if not tokenizer.vocab_size:  # made of the model's settings alone, where no file is
            raise ValueError("no file of a tokenizer is there")
        return tokenizer
    except (OSError, ValueError) as error:
        if not wanted:
            return None
        raise ValueError(
            "tokenizer must be passed for texts that are strings, as none could be read from "
            f"{fspath(where)!r}"
        ) from error


def _load(kind: str, where: str, progress: bool, **options: Any) -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ImportError(
            f"model {where!r} needs the package transformers: pip install 'transformers>=5,<6'"
        ) from error
    folder = Path(where)
    if not folder.exists() and _looks_like_a_path(where):
        raise FileNotFoundError(
            f"model must be a folder, a hub id or a model, got {where!r}, and no such folder exists"
        )
    try:
        load = getattr(transformers, kind).from_pretrained
        with _bars(progress), _messages(progress):
            return load(where, trust_remote_code=False, **options)
    except ImportError:
        raise
    except Exception as error:  # a damaged file raises whatever its reader stumbles over
        if folder.exists():
            raise ValueError(
                f"model must be a folder with a model of transformers (config.json, "
                f"model.safetensors), got {where!r}: {_first_line(error)}"
            ) from error
        raise OSError(
            f"model {where!r} was looked for as a folder here, among what was downloaded before, "
            f"and on the hub, and couldn't be had: {_first_line(error)} {WAY_OUT}"
        ) from error


@contextmanager
def _bars(wanted: bool) -> Iterator[None]:
    """Show transformers' bars only if they are wanted; then leave its setting as it was."""
    from transformers.utils import logging

    hidden = not wanted and logging.is_progress_bar_enabled()
    if hidden:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if hidden:
            logging.enable_progress_bar()


@contextmanager
def _messages(wanted: bool) -> Iterator[None]:
    """Hide transformers' messages, as of weights that it leaves out, unless they are wanted."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    if not wanted:
        logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _looks_like_a_path(where: str) -> bool:
    """Return whether a name can't be a hub id, which is `name` or `owner/name`."""
    return where.startswith((".", "/", "~")) or where.count("/") > 1 or "\\" in where


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
