"""Tables of answers to exercises: which pass, and what the verdicts on the others name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from attncourse.checking.exercises import Exercise

PASSES = ""

# Of each exercise, the answers by what their verdicts name: a number, a place, a word, a hint.
Table = Mapping[Exercise, Mapping[str, Sequence[Any]]]


def verdicts(table: Table) -> Callable[..., None]:
    """Return the test that each answer of a table passes, or is told what the table says."""
    rows = [
        pytest.param(exercise, answer, named, id=f"{exercise.__name__}-{named or 'passes'}-{i}")
        for exercise, answers_by_name in table.items()
        for named, answers in answers_by_name.items()
        for i, answer in enumerate(answers)
    ]

    @pytest.mark.parametrize(("exercise", "answer", "named"), rows)
    def test(exercise: Exercise, answer: Any, named: str) -> None:
        verdict = exercise(answer)
        assert verdict.passed == (named == PASSES), verdict
        assert named in verdict.message

    return test
