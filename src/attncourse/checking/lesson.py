"""How the exercises in the files of a lesson's folder become the lesson's own."""

import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from attncourse.checking.exercises import Exercise


def publish(lesson: str) -> tuple[list[str], Callable[[str], Exercise]]:
    """Make the exercises in the files of a lesson's folder attributes of the lesson.

    Args:
        lesson: the folder's module, `attncourse.lessons.l03`, which calls this when imported.

    Returns:
        The names for the lesson's `__all__`, as the files have them, and its `__getattr__`. That
        raises for any other name, and tells type checkers that a lesson has names.

    Raises:
        TypeError: the lesson is a file.
        ValueError: two exercises share a name, or one is named as a file of the folder is.
    """
    module = sys.modules[lesson]
    if not hasattr(module, "__path__"):
        raise TypeError(f"{lesson} must be a folder: its exercises are found in the files beside")
    exercises = _exercises_in(module)
    vars(module).update(exercises)

    def find(name: str) -> Exercise:
        raise AttributeError(f"{lesson} has no exercise {name!r}; it has {', '.join(exercises)}")

    return list(exercises), find


def _exercises_in(lesson: ModuleType) -> dict[str, Exercise]:
    exercises: dict[str, Exercise] = {}
    files = [found.name for found in pkgutil.iter_modules(lesson.__path__) if not found.ispkg]
    for file in files:
        module = import_module(f"{lesson.__name__}.{file}")
        for name, value in vars(module).items():
            if not isinstance(value, Exercise) or value.__module__ != module.__name__:
                continue  # something else, or an exercise of another file
            if name in files:
                raise ValueError(f"{file}.py: an exercise can't be called {name}, as {name}.py is")
            if name in exercises:
                other = exercises[name].__module__.rpartition(".")[2]
                raise ValueError(f"{file}.py and {other}.py both have an exercise called {name}")
            exercises[name] = value
    return exercises
