"""The examples in docstrings, which the API pages show, do what they say."""

import doctest
from importlib import import_module

from tools.packages import names_of_modules


def test_examples_do_what_they_say():
    results = {
        name: doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
        for name in names_of_modules()
    }
    assert [name for name, result in results.items() if result.failed] == []
    tried = {name for name, result in results.items() if result.attempted}
    assert tried >= {"attnlib.masks", "attnlib.cache", "attndoctor.museum"}
