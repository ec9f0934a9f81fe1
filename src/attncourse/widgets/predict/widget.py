"""Predict: a question to commit to before the page answers it."""

from collections.abc import Sequence
from numbers import Integral

import traitlets

from attncourse.widgets._base import CourseWidget, browser_files, kept_trait
from attnlib.checks import require_text


class Predict(CourseWidget):
    """A question with choices. The explanation unfolds once the reader has committed to one.

    The reader picks a choice and presses "Commit". Then the choice is locked, the right one is
    marked in words, and the explanation appears; "Think again" starts over. For example::

        Predict(
            "Add 10 to every number of a token. What happens to its *LayerNorm*?",
            ["It grows by 10", "Nothing", "It doubles"],
            1,
            "The mean moves by 10 as well, so `x - mean` stays what it was.",
        )

    All texts are plain text in which `code` stands between backticks and *emphasis* between
    asterisks; an empty line starts a new paragraph of the question or the explanation. Nothing is
    read as HTML, and formulas are written in Unicode: softmax(q·k / √d_k).

    Traits that a reader changes:
        choice (int or None): the picked choice, 0-based.
        committed (bool): whether the reader has committed to it.

    Args:
        question: what is asked.
        choices: at least two different answers to pick from.
        answer: the index of the right choice (0-based), or several if more than one is right.
        explanation: why it is right.
    """

    _esm, _css = browser_files("predict")

    question = traitlets.Unicode(read_only=True).tag(sync=True)
    choices = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    answers = traitlets.List(traitlets.Int(), read_only=True).tag(sync=True)
    explanation = traitlets.Unicode(read_only=True).tag(sync=True)
    kept = kept_trait("choice", "committed")
    choice = traitlets.Int(None, allow_none=True).tag(sync=True)
    committed = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        question: str,
        choices: Sequence[str],
        answer: int | Sequence[int],
        explanation: str,
    ) -> None:
        _require_words("question", question)
        _require_words("explanation", explanation)
        choices = _checked_choices(choices)
        answers = _checked_answers(answer, choices)
        super().__init__(
            question=question, choices=choices, answers=answers, explanation=explanation
        )

    def __repr__(self) -> str:
        return f"Predict({self.question!r}, {len(self.choices)} choices)"

    @traitlets.observe("choice")
    def _no_choice_is_no_commitment(self, change: dict) -> None:
        if change["new"] is None:
            self.committed = False


def _require_words(name: str, value: str) -> None:
    require_text(name, value)
    if not value.strip():
        raise ValueError(f"{name} must not be empty, got {value!r}")


def _checked_choices(choices: Sequence[str]) -> list[str]:
    if isinstance(choices, str) or not isinstance(choices, Sequence):
        raise TypeError(
            f"choices must be a list of strings, got {type(choices).__name__} ({choices!r})"
        )
    for i, choice in enumerate(choices):
        _require_words(f"choices[{i}]", choice)
    if len(choices) < 2:
        raise ValueError(f"choices must hold at least two, got {len(choices)}")
    if len(set(choices)) < len(choices):
        raise ValueError(f"choices must differ from each other, got {list(choices)}")
    return list(choices)


def _checked_answers(answer: int | Sequence[int], choices: list[str]) -> list[int]:
    answers = list(answer) if isinstance(answer, Sequence) else [answer]
    for index in answers:
        if isinstance(index, bool) or not isinstance(index, Integral):
            raise TypeError(
                f"answer must be the index of a choice, or several, got {answer!r}: "
                "count the choices from 0"
            )
        if not 0 <= index < len(choices):
            raise ValueError(
                f"answer must be one of 0 to {len(choices) - 1} (0-based), got {answer!r}"
            )
    if not answers:
        raise ValueError("answer must name at least one right choice, got none")
    return sorted(set(answers))
