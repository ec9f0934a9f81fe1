"""Kernels that are told something at their start: see kernels/sitecustomize.py."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

KERNELS = Path(__file__).with_name("kernels")


@contextlib.contextmanager
def kernels_are_told(**variables: str) -> Iterator[None]:
    """Set environment variables for the kernels that are started meanwhile."""
    before = dict(os.environ)
    path = [str(KERNELS), *filter(None, [before.get("PYTHONPATH")])]
    os.environ |= {**variables, "PYTHONPATH": os.pathsep.join(path)}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
