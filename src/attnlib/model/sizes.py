"""What a model must know of its task."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Task(Protocol):
    """What a model must know of its task; those of `attncourse.tasks` are such tasks."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """The words; a word's place is its token id."""

    @property
    def length(self) -> int:
        """The longest sentence, in tokens."""

    @property
    def readouts(self) -> Mapping[str, Sequence[str]]:
        """The possible answers of each readout, by its name."""

    @property
    def causal(self) -> bool:
        """Whether a token may look only at itself and what stands before it."""


class TaskSizes(NamedTuple):
    """The sizes of a task, for a model without one: words, tokens, answers of each readout."""

    vocabulary_size: int
    length: int
    readouts: Mapping[str, int]
    causal: bool = False

    @staticmethod
    def of(task: Task) -> "TaskSizes":
        """Return the sizes of a task."""
        readouts = {name: len(answers) for name, answers in task.readouts.items()}
        return TaskSizes(len(task.vocabulary), task.length, readouts, task.causal)
