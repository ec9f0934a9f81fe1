"""How an exercise is answered on a published page, where no Python runs.

An exercise says what its page offers: fields for numbers, choices, lines of a listing, or steps to
put in order. Its check is asked, where the page is made, about every answer that can be given there
and told apart. The verdicts travel to the page as a table, in which its browser code only looks one
up: what is right, and which mistake gets which hint, is decided by the check alone.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from attncourse.checking.numbers import as_tensor
from attndoctor.support.check_result import CheckResult
from attnlib.checks import require_positive_int, require_text

if TYPE_CHECKING:
    from attncourse.widgets import Answer

Ask = Callable[[Any], CheckResult]

MOST_ANSWERS = 2**13  # each is checked while the page is made; seven steps have 5040 orders
NEAR = 6  # so many tolerances off is still called close
SAME = 1e-3  # of the tolerance: known numbers nearer than that are one, computed in two ways


class Form(ABC):
    """What a page offers for an answer."""

    kind: ClassVar[str]

    @abstractmethod
    def parts(self) -> list[tuple[str, list[str]]]:
        """Return what stands there: of each part the title, and a label for all that is in it."""

    @abstractmethod
    def answers(self, mistakes: Sequence[Any]) -> Iterator[Any]:
        """Yield an answer of each kind that the page can tell apart, in the order of its table.

        Args:
            mistakes: what readers who make the usual mistakes hand in.
        """

    def settings(self, mistakes: Sequence[Any]) -> dict[str, Any]:
        """Return what else the widget needs to know."""
        return {}


@dataclass(frozen=True)
class Numbers(Form):
    """Fields for numbers. A reader may type 3/7, 0.43 or -2e-3, and a comma for the point.

    Args:
        right: the right numbers, of the shape in which the check takes them.
        labels: the name of each field, or the names in each row by the row's title.
        tolerance: how far off a number may be; the check's own.
        near: how far off the check still says "very close"; the tolerance where it never does.
        rows_apart: whether the check has hints for one row, whatever stands in the others.
    """

    right: Any
    labels: Sequence[str] | Mapping[str, Sequence[str]]
    tolerance: float = 1e-3
    near: float | None = None
    rows_apart: bool = False
    kind: ClassVar[str] = "numbers"

    def __post_init__(self) -> None:
        fields = sum(len(labels) for _, labels in self.parts())
        if fields != self._right.numel():
            raise ValueError(
                f"labels must be one for each of {self._right.numel()} numbers, got {fields}"
            )

    @property
    def _right(self) -> Tensor:
        return torch.as_tensor(self.right).detach().to(torch.float64)

    @property
    def _near(self) -> float:
        return NEAR * self.tolerance if self.near is None else self.near

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the rows of fields."""
        rows = self.labels if isinstance(self.labels, Mapping) else {"": self.labels}
        return [(title, list(labels)) for title, labels in rows.items()]

    def settings(self, mistakes: Sequence[Any]) -> dict[str, Any]:
        """Return the numbers that are known, and how near to them counts."""
        known = self._known(mistakes)
        return {"known": known, "tolerance": self.tolerance, "near": self._near}

    def answers(self, mistakes: Sequence[Any]) -> Iterator[Tensor]:
        """Yield known numbers, then near ones and any others: every mix of these per group."""
        far, halfway = self.far(mistakes), (self.tolerance + self._near) / 2
        others = [halfway, far] if self._near > self.tolerance else [far]
        groups = [[*known, *(known[0] + off for off in others)] for known in self._known(mistakes)]
        return (torch.cat(mix).view_as(self._right) for mix in itertools.product(*groups))

    def far(self, mistakes: Sequence[Any]) -> float:
        """Return a distance from the right numbers at which there is no known one."""
        spread = max((known - known[0]).abs().max().item() for known in self._known(mistakes))
        return 1.0371 + 10 * self._near + 2.0173 * spread  # in no relation to the right ones

    def _known(self, mistakes: Sequence[Any]) -> list[Tensor]:
        """Return the known numbers [K, n] of each group of fields; right ones are the first row."""
        given = [self._right]
        for answer in mistakes:
            numbers = as_tensor(answer)
            if numbers is not None and numbers.shape == self._right.shape:
                given.append(numbers)
        rows = torch.stack([numbers.flatten() for numbers in given])
        sizes = [len(labels) for _, labels in self.parts()] if self.rows_apart else [rows.shape[1]]
        return [_distinct(group, SAME * self.tolerance) for group in rows.split(sizes, dim=1)]


@dataclass(frozen=True)
class Choice(Form):
    """A choice, or one for each of several things.

    Args:
        choices: the values to choose from; or what the page says of each, by its value.
        each: what is chosen for. The check is then given a list; or, where this names the things
            by their keys, a dict.
    """

    choices: Sequence[Any] | Mapping[Any, str]
    each: Sequence[str] | Mapping[Any, str] | None = None
    kind: ClassVar[str] = "choice"

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the choices of each thing."""
        titles = [""] if self.each is None else _words(self.each)
        return [(title, _words(self.choices)) for title in titles]

    def answers(self, mistakes: Sequence[Any]) -> Iterator[Any]:
        """Yield every mix of choices; the last thing's changes fastest."""
        if self.each is None:
            return iter(self.choices)
        mixes = itertools.product(self.choices, repeat=len(self.each))
        if isinstance(self.each, Mapping):
            return (dict(zip(self.each, mix, strict=True)) for mix in mixes)
        return map(list, mixes)


@dataclass(frozen=True)
class Choices(Form):
    """A choice for each of several things, which have different choices.

    Args:
        slots: for each thing its title, and its choices as in `Choice`.
        answer: makes of the values that are chosen, one per slot, what the check is given.
    """

    slots: Mapping[str, Sequence[Any] | Mapping[Any, str]]
    answer: Callable[..., Any]
    kind: ClassVar[str] = "choice"

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the choices of each thing."""
        return [(title, _words(choices)) for title, choices in self.slots.items()]

    def answers(self, mistakes: Sequence[Any]) -> Iterator[Any]:
        """Yield every mix of choices; the last thing's changes fastest."""
        return itertools.starmap(self.answer, itertools.product(*self.slots.values()))


@dataclass(frozen=True)
class Lines(Form):
    """A listing; the reader picks a line.

    Args:
        code: the listing. The check is given a line's number, counted from 1.
        pick: how many lines are picked; if several, the check is given a list of numbers.
    """

    code: str
    pick: int = 1
    kind: ClassVar[str] = "lines"

    def __post_init__(self) -> None:
        require_text("code", self.code)
        require_positive_int("pick", self.pick)
        if self.pick >= len(self._lines):
            lines = f"the {len(self._lines)} lines of the code"
            raise ValueError(f"pick must be less than {lines}, got {self.pick}")

    @property
    def _lines(self) -> list[str]:
        return dedent(self.code).strip("\n").splitlines()

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the lines."""
        return [("", self._lines)]

    def settings(self, mistakes: Sequence[Any]) -> dict[str, Any]:
        """Return how many lines are picked."""
        return {"pick": self.pick}

    def answers(self, mistakes: Sequence[Any]) -> Iterator[Any]:
        """Yield every pick, from the first lines to the last ones."""
        numbers = range(1, len(self._lines) + 1)
        if self.pick == 1:
            return iter(numbers)
        return map(list, itertools.combinations(numbers, self.pick))


@dataclass(frozen=True)
class Order(Form):
    """Steps to put in order.

    Args:
        steps: the steps in some wrong order, with which the page begins; or what the page says of
            each, by the value that the check is given. It is given a list.
    """

    steps: Sequence[Any] | Mapping[Any, str]
    kind: ClassVar[str] = "order"

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the steps."""
        return [("", _words(self.steps))]

    def answers(self, mistakes: Sequence[Any]) -> Iterator[Any]:
        """Yield every order; the one with which the page begins is the first."""
        return map(list, itertools.permutations(self.steps))


def put_on_page(ask: Ask, form: Form, mistakes: Sequence[Any]) -> "Answer":
    """Return the widget in which an exercise is answered without Python.

    Args:
        ask: the exercise.
        mistakes: the answer of each usual mistake.

    Raises:
        ValueError: there are too many answers.
    """
    from attncourse.widgets import Answer  # only a page that shows it needs the widgets' packages

    answers = list(itertools.islice(form.answers(mistakes), MOST_ANSWERS + 1))
    if len(answers) > MOST_ANSWERS:
        raise ValueError(
            f"a page can tell {MOST_ANSWERS} answers apart at most: offer fewer, or pass fewer "
            "mistakes"
        )
    verdicts = [ask(answer) for answer in answers]
    return Answer(form.kind, form.parts(), verdicts, **form.settings(mistakes))


def _words(labelled: Sequence[Any] | Mapping[Any, str]) -> list[str]:
    values = labelled.values() if isinstance(labelled, Mapping) else labelled
    return [str(value) for value in values]


def _distinct(rows: Tensor, apart: float) -> Tensor:
    """Return rows [K, n] without those that repeat an earlier one."""
    found: list[Tensor] = []
    for row in rows:
        if all((row - other).abs().max() > apart for other in found):
            found.append(row)
    return torch.stack(found)
