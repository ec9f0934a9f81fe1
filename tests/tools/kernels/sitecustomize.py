"""Python imports this at its start, where its folder is on the path: see tools/lesson_runs.py.

COURSE_MISSING lists modules that can't be imported, as if they weren't installed.
"""

import os
import sys
from importlib.machinery import PathFinder


class AllBut(PathFinder):
    """Finds modules where Python does, but some at the top nowhere."""

    def __init__(self, missing):
        """Take their names."""
        self.missing = missing

    def find_spec(self, name, path=None, target=None):
        """Return where a module is; nothing if it is one of them."""
        if path is None and name in self.missing:
            return None
        return PathFinder.find_spec(name, path, target)


if "COURSE_MISSING" in os.environ:
    missing = set(os.environ["COURSE_MISSING"].split())
    sys.meta_path[sys.meta_path.index(PathFinder)] = AllBut(missing)
