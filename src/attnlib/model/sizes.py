"""What a model must know about its task."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


@runtime_checkable
class Task(Protocol):
    """What a model must know about its task."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """The words; a word's index is its token id."""

    @property
    def length(self) -> int:
        """The longest sentence, in tokens."""

    @property
    def readouts(self) -> Mapping[str, Sequence[str]]:
        """The possible answers of each readout, by its name."""

    @property
    def causal(self) -> bool:
        """Whether a token may look only at itself and at earlier ones."""


class TaskSizes(NamedTuple):
    """The sizes of a task: words, the longest sentence, answers of each readout."""

    vocabulary_size: int
    length: int
    readouts: Mapping[str, int]
    causal: bool = False

    @staticmethod
    def of(task: Task) -> "TaskSizes":
        """Return the sizes of a task, or raise TypeError where it lacks one of them."""
        if not isinstance(task, Task):
            names = "vocabulary, length, readouts, causal"
            raise TypeError(f"task must have {names}, or be TaskSizes, got {type(task).__name__}")
        readouts = {name: len(answers) for name, answers in task.readouts.items()}
        return TaskSizes(len(task.vocabulary), task.length, readouts, task.causal)
