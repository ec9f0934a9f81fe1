"""Which part does a stack lack? A diagnosis from three training logs."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

DIAGNOSIS = {"A": "residual", "B": "norm", "C": "both"}
CHOICES = {"residual": "the residual", "norm": "the norm", "both": "both"}
MISTAKES = read_mistakes("diagnosis", globals())


@exercise(
    mistakes=MISTAKES, page=Choice(CHOICES, each={log: f"Log {log} lacks" for log in DIAGNOSIS})
)
def diagnosis(answer: Any) -> CheckResult:
    """Check which part each log's stack lacks: {"A": ..., "B": ..., "C": ...}."""
    praise = "Loss, gradient and token cosine together tell the three apart."
    return check_choices(answer, DIAGNOSIS, CHOICES, MISTAKES, praise=praise)
