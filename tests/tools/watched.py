"""Executing a page while its kernel notes which files of attnlib it uses."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

WATCHING = Path(__file__).with_name("watching")


@dataclass
class Watched:
    """Files of attnlib by their paths: whose functions ran, and which were read."""

    ran: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)


@contextlib.contextmanager
def watched_kernel() -> Iterator[Watched]:
    """Have the kernel that is started meanwhile watched; what it noted is there afterwards."""
    watched, before = Watched(), dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.txt"
        path = [str(WATCHING), *filter(None, [before.get("PYTHONPATH")])]
        os.environ |= {"COURSE_WATCHED": str(notes), "PYTHONPATH": os.pathsep.join(path)}
        try:
            yield watched
        finally:
            os.environ.clear()
            os.environ.update(before)
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else ()
        for line in lines:
            what, path = line.split("\t")
            getattr(watched, what).add(path)
