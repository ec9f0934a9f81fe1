"""Files that are whole at any time, however a program ends."""

import os
from pathlib import Path


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
