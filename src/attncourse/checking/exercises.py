"""What an exercise is: a check that knows the usual mistakes."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any

import torch

from attncourse.checking.calling import READERS_ERRORS, EndlessError, shortened
from attncourse.checking.mistakes import Mistake, read_mistakes
from attncourse.checking.number_hints import remark_on
from attncourse.checking.on_page import Form, Numbers, put_on_page
from attndoctor.support.check_result import CheckResult
from attndoctor.support.torch_settings import usual_settings

if TYPE_CHECKING:
    from attncourse.widgets import Answer

Check = Callable[[Any], CheckResult]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Leave random numbers, torch's settings and the filters of warnings as they were."""
    with usual_settings(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        yield


class Exercise:
    """A check of a reader's answer together with the mistakes that it recognizes.

    It is called as its check is, and has the check's name, signature and documentation. The random
    numbers that are drawn meanwhile, torch's settings and the filters of warnings are then as they
    were, whatever the answer did to them; and what it raised where the check didn't expect it
    becomes a hint.

    Attributes:
        check: the bare function that was decorated.
        mistakes: the usual mistakes; tests hold each to its own hint.
        page: how it is answered on a page without a kernel; None where only code answers it.
    """

    def __init__(self, check: Check, mistakes: Iterable[Mistake], page: Form | None = None) -> None:
        update_wrapper(self, check)
        self.check = check
        self.mistakes = tuple(mistakes)
        self.page = page

    @cached_property
    def hints(self) -> dict[str, str]:
        """The hints of the mistakes that have a name, by that name."""
        return {mistake.name: mistake.hint for mistake in self.mistakes if mistake.name}

    def __call__(self, answer: Any) -> CheckResult:
        """Check a reader's answer; before a hint on wrong numbers, say how far off they are."""
        with _undisturbed():
            return self._judge(answer, self._with_remark)

    def _with_remark(self, answer: Any) -> CheckResult:
        result = self.check(answer)
        known = any(result.message == mistake.hint for mistake in self.mistakes)
        if result or known or not isinstance(self.page, Numbers):
            return result
        return CheckResult(False, f"{remark_on(answer, self.page)} {result.message}".strip())

    def _judge(self, answer: Any, check: Check | None = None) -> CheckResult:
        try:
            return (check or self.check)(answer)
        except EndlessError as error:
            return CheckResult(False, str(error))
        except READERS_ERRORS as error:
            return CheckResult(
                False,
                "Your answer is of a kind that can't be checked: looking at it raised "
                f"{type(error).__name__}: {shortened(error)}",
            )

    def on_page(self) -> "Answer":
        """Return the widget in which a page's reader answers, with all verdicts of this check.

        Raises:
            ValueError: the exercise says no `page`, or one with too many answers.
        """
        name = getattr(self.check, "__name__", "this exercise")
        if self.page is None:
            raise ValueError(
                f"{name} has no page: @exercise(..., page=Numbers(...)) says how it is answered"
            )
        wrong = [mistake.answer for mistake in self.mistakes]
        try:
            with _undisturbed():  # once, for thousands of answers, which are numbers and words
                return put_on_page(self._judge, self.page, wrong)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def __get__(self, instance: object, owner: type | None = None) -> "Exercise":
        """Return the exercise: help() and autodoc show what has `__get__`, as routines do."""
        return self


def exercise(
    *, mistakes: Iterable[Mistake] | None = None, page: Form | None = None
) -> Callable[[Check], Exercise]:
    """Make an exercise of a check, a function of the reader's answer that returns a verdict.

    Args:
        mistakes: if left out, those in the section of the check's name, in the text beside it.
        page: how it is answered on a page without a kernel, if it can be: `Numbers`, `Choice`,
            `Choices`, `Lines` or `Order`.
    """

    def make(check: Any) -> Exercise:
        own = read_mistakes(check.__name__, check.__globals__) if mistakes is None else mistakes
        return Exercise(check, own, page)

    return make
