"""A progress bar."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
