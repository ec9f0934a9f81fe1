"""Which of three tests for leaks find which leak."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

TESTS = {
    "all": "the exchange, the slopes and the cut",
    "both": "the exchange and the cut",
    "slopes": "the slopes alone",
    "none": "none of the three",
}
LAYERS = {
    "rounded": "x + x[-1:].round()",
    "mean": "x + 1e-6 * x.mean(0)",
    "shout": "x + (x[-1:] - 6).relu()",
}
FOUND = {"rounded": "both", "mean": "slopes", "shout": "none"}
MISTAKES = read_mistakes("tests_that_find", globals())


@exercise(
    mistakes=MISTAKES,
    page=Choice(TESTS, each={name: f"`{code}`" for name, code in LAYERS.items()}),
)
def tests_that_find(answer: Any) -> CheckResult:
    """Check which tests find the leak of each of three layers: {"rounded": "both", ...}."""
    praise = "No test finds all leaks, and one leak escapes all of them with this input."
    return check_choices(answer, FOUND, TESTS, MISTAKES, praise=praise)
