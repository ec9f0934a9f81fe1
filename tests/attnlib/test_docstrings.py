"""The examples in docstrings, which the API pages show, do what they say."""

import doctest
import importlib
import pkgutil

import attnlib


def modules_of_package():
    names = [found.name for found in pkgutil.walk_packages(attnlib.__path__, "attnlib.")]
    names.remove("attnlib.heatmap._triton")  # has no examples, and needs Triton
    return [attnlib, *map(importlib.import_module, names)]


def test_examples_do_what_they_say():
    results = {
        m.__name__: doctest.testmod(m, optionflags=doctest.ELLIPSIS) for m in modules_of_package()
    }
    assert [name for name, result in results.items() if result.failed] == []
    tried = {name for name, result in results.items() if result.attempted}
    assert tried >= {"attnlib.masks", "attnlib.cache", "attnlib.museum"}
