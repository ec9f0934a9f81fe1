"""Executing a page while its kernel notes which files of attnlib it uses."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.told_kernels import kernels_are_told


@dataclass
class Watched:
    """Files of attnlib by their paths: whose functions ran, and which were read."""

    ran: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)


@contextlib.contextmanager
def watched_kernel() -> Iterator[Watched]:
    """Have the kernel that is started meanwhile watched; what it noted is there afterwards."""
    watched = Watched()
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.txt"
        with kernels_are_told(COURSE_WATCHED=str(notes)):
            yield watched
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else ()
        for line in lines:
            what, path = line.split("\t")
            getattr(watched, what).add(path)
