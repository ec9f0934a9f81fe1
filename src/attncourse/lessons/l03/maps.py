"""Explain a map: two rows of a trained head that look odd, for a reason."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

CAUSES = {
    "twice": "Its name stands twice in the book.",
    "missing": "Its name isn't in the book.",
    "untrained": "The head never met its name in training.",
    "digits": "Two entries of the book have the same digit.",
}
RIGHT = {"row 2": "twice", "row 5": "missing"}
MISTAKES = read_mistakes("odd_rows", globals())


@exercise(mistakes=MISTAKES, page=Choice(CAUSES, each={"row 2": "Row 2", "row 5": "Row 5"}))
def odd_rows(answer: Any) -> CheckResult:
    """Check the causes of two odd rows of a map, {"row 2": cause, "row 5": cause}."""
    praise = "And row 5 is a warning: a look, however firm, need not be a match."
    return check_choices(answer, RIGHT, CAUSES, MISTAKES, praise=praise)
