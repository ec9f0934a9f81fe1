"""Python imports this at its start, where its folder is on the path: see tools/told_kernels.py.

COURSE_WATCHED names a file for notes: the files of attnlib whose functions run for the page's sake,
not because a module is being imported, and those that are read. Each is written down at once, for a
kernel may be killed at its end.

COURSE_MISSING lists modules that can't be imported, as if they weren't installed.
"""

import os
import sys
import threading
from importlib.machinery import PathFinder

INSIDE = f"{os.sep}attnlib{os.sep}"
noted = set()


def note(*words):
    """Write a line down the first time that it is told."""
    if words not in noted:
        noted.add(words)
        print(*words, sep="\t", file=notes, flush=True)


def note_call(frame, event, argument):
    """Note whose function runs, unless an import runs it."""
    file = frame.f_code.co_filename
    if INSIDE in file and ("ran", file) not in noted:
        while frame and "importlib" not in frame.f_code.co_filename:
            frame = frame.f_back
        if frame is None:
            note("ran", file)


def note_open(event, arguments):
    """Note which file is read."""
    if event == "open" and INSIDE in str(arguments[0]):
        note("read", str(arguments[0]))


if "COURSE_WATCHED" in os.environ:
    notes = open(os.environ["COURSE_WATCHED"], "a", encoding="utf-8")  # for as long as Python runs
    sys.addaudithook(note_open)
    threading.settrace(note_call)
    sys.settrace(note_call)


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
