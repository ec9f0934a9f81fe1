"""What programs print: lines, numbers of things, progress bars."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def echo(text: str) -> None:
    """Print a line; ignore a closed pipe, as of `... | head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere


def counted(number: int, thing: str) -> str:
    """Return a number with what it counts: "1 head", "1,024 tokens"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


@contextmanager
def opened_bar(wanted: bool, **options: Any) -> Iterator[Any]:
    """Yield tqdm's bar with these options, or None if none is wanted.

    Raises:
        ImportError: one is wanted, and the package tqdm is missing.
    """
    if not wanted or "TQDM_DISABLE" in os.environ:  # tqdm's own, which its notebook bars forget
        yield None
        return
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            "progress=True needs the package tqdm: pip install tqdm, or say progress=False"
        ) from error
    with tqdm(**options) as bar:
        yield bar
