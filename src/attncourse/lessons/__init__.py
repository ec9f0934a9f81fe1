"""Checks that lessons call on a reader's answer: a folder per lesson, which is found by itself.

A lesson writes `from attncourse.lessons import l03 as check` and then `check.softmax_row(answer)`.
"""

import pkgutil
from importlib import import_module
from types import ModuleType


def lessons() -> dict[str, ModuleType]:
    """Return the lessons that have exercises, by name; each names its exercises in `__all__`."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_"]
    return {name: import_module(f"{__name__}.{name}") for name in names}
