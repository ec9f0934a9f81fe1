"""Which part does a stack lack? A diagnosis from three training logs."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choices
from attnlib.exercises._exercise import exercise
from attnlib.exercises._mistakes import read_mistakes
from attnlib.exercises._on_page import Choice

DIAGNOSIS = {"A": "residual", "B": "norm", "C": "both"}
CHOICES = {"residual": "the residual", "norm": "the norm", "both": "both"}
MISTAKES = read_mistakes("diagnosis", globals())


@exercise(
    mistakes=MISTAKES,
    page=Choice(CHOICES, each={log: f"Log {log} lacks" for log in DIAGNOSIS}),
)
def diagnosis(answer: Any) -> Verdict:
    """Check which part each log's stack lacks: {"A": ..., "B": ..., "C": ...}."""
    return check_choices(
        answer,
        DIAGNOSIS,
        CHOICES,
        MISTAKES,
        praise="Loss, gradient and token cosine together tell the three apart.",
    )
