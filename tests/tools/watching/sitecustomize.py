"""Python imports this at its start, where its folder is on the path: see tools/watched.py.

It notes the files of attnlib whose functions run for the page's sake, not because a module is being
imported, and those that are read: each at once, for a kernel may be killed at its end.
"""

import os
import sys
import threading

noted = set()


def note(*words):
    """Write a line down the first time that it is told."""
    if words not in noted:
        noted.add(words)
        print(*words, sep="\t", file=notes, flush=True)


def note_call(frame, event, argument):
    """Note whose function runs, unless an import runs it."""
    file = frame.f_code.co_filename
    if "/attnlib/" in file and ("ran", file) not in noted:
        while frame and "importlib" not in frame.f_code.co_filename:
            frame = frame.f_back
        if frame is None:
            note("ran", file)


def note_open(event, arguments):
    """Note which file is read."""
    if event == "open" and "/attnlib/" in str(arguments[0]):
        note("read", str(arguments[0]))


if "COURSE_WATCHED" in os.environ:
    notes = open(os.environ["COURSE_WATCHED"], "a", encoding="utf-8")  # for as long as Python runs
    sys.addaudithook(note_open)
    threading.settrace(note_call)
    sys.settrace(note_call)
