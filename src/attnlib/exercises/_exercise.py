"""What an exercise is, and how the exercises of a lesson's files become the lesson's own."""

import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import update_wrapper
from importlib import import_module
from types import ModuleType
from typing import Any

import torch

from attnlib._settings import usual_settings
from attnlib._verdict import Verdict
from attnlib.exercises._calling import READERS_ERRORS, shortened
from attnlib.museum import Exhibit

Check = Callable[[Any], Verdict]


@dataclass(frozen=True)
class Mistake:
    """A usual mistake: what a reader who makes it hands in, and the hint that helps.

    `answer` has the form that the check expects: a function, a tensor, a list of numbers.
    """

    name: str
    answer: Any
    hint: str


def from_museum(exhibit: Exhibit, answer: Any) -> Mistake:
    """Return the mistake that an exhibit of the museum is, with its hint."""
    return Mistake(exhibit.name, answer, exhibit.hint)


class Exercise:
    """A check of a reader's answer together with the mistakes that it recognizes.

    It is called as its check is, and has the check's name, signature and documentation. The random
    numbers that are drawn meanwhile, torch's settings and the filters of warnings are then as they
    were, whatever the answer did to them; and what it raised where the check didn't expect it
    becomes a hint.

    Attributes:
        check: the bare function that was decorated.
        mistakes: the usual mistakes; tests hold each to its own hint.
    """

    def __init__(self, check: Check, mistakes: Iterable[Mistake]) -> None:
        update_wrapper(self, check)
        self.check = check
        self.mistakes = tuple(mistakes)

    def __call__(self, answer: Any) -> Verdict:
        """Check a reader's answer."""
        with usual_settings(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            try:
                return self.check(answer)
            except READERS_ERRORS as error:
                return Verdict(
                    False,
                    "Your answer is of a kind that can't be checked: looking at it raised "
                    f"{type(error).__name__}: {shortened(error)}",
                )

    def __get__(self, instance: object, owner: type | None = None) -> "Exercise":
        """Be a routine, as whatever has `__get__`: help() and autodoc then show the check."""
        return self


def exercise(*, mistakes: Iterable[Mistake]) -> Callable[[Check], Exercise]:
    """Make an exercise of a check, a function of the reader's answer that returns a verdict."""
    return lambda check: Exercise(check, mistakes)


def publish(lesson: str) -> tuple[list[str], Callable[[str], Exercise]]:
    """Make the exercises in the files of a lesson's folder attributes of the lesson.

    Args:
        lesson: the folder's module, `attnlib.exercises.l03`, which calls this while it is imported.

    Returns:
        The lesson's `__all__` and `__getattr__`: the names, file after file as they stand there,
        and what is asked for any other name. It raises, and tells type checkers what a lesson has.

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
    files = [found.name for found in pkgutil.iter_modules(lesson.__path__)]
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
