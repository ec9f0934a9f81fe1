"""Which part does a stack lack? A diagnosis from three training logs."""

from typing import Any

from attncourse.checking.exercise import exercise
from attncourse.checking.functions import check_choices
from attncourse.checking.mistakes import read_mistakes
from attncourse.checking.on_page import Choice
from attndoctor.check_result import CheckResult

DIAGNOSIS = {"A": "residual", "B": "norm", "C": "both"}
CHOICES = {"residual": "the residual", "norm": "the norm", "both": "both"}
MISTAKES = read_mistakes("diagnosis", globals())


@exercise(
    mistakes=MISTAKES,
    page=Choice(CHOICES, each={log: f"Log {log} lacks" for log in DIAGNOSIS}),
)
def diagnosis(answer: Any) -> CheckResult:
    """Check which part each log's stack lacks: {"A": ..., "B": ..., "C": ...}."""
    return check_choices(
        answer,
        DIAGNOSIS,
        CHOICES,
        MISTAKES,
        praise="Loss, gradient and token cosine together tell the three apart.",
    )
