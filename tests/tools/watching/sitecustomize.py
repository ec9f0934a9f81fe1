"""Python imports this at its start, where its folder is on the path: see tools/watched.py.

It notes the files of attnlib whose functions run for the page's sake, not because a module is being
imported, and those that are read, and writes them down when the kernel ends.
"""

import atexit
import json
import os
import sys
import threading

ran, read = set(), set()


def note_call(frame, event, argument):
    """Note whose function runs, unless an import runs it."""
    file = frame.f_code.co_filename
    if "/attnlib/" in file and file not in ran:
        while frame and "importlib" not in frame.f_code.co_filename:
            frame = frame.f_back
        if frame is None:
            ran.add(file)


def note_open(event, arguments):
    """Note which file is read."""
    if event == "open" and "/attnlib/" in str(arguments[0]):
        read.add(str(arguments[0]))


@atexit.register
def write_down():
    """Leave both lists where the tests look for them."""
    with open(os.environ["COURSE_WATCHED"], "w", encoding="utf-8") as file:
        json.dump({"ran": sorted(ran), "read": sorted(read)}, file)


if "COURSE_WATCHED" in os.environ:
    sys.addaudithook(note_open)
    threading.settrace(note_call)
    sys.settrace(note_call)
else:
    atexit.unregister(write_down)
