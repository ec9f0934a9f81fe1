"""Explain a map: two rows of a trained head that look odd, for a reason."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

CAUSES = {
    "twice": "Its name stands twice in the book.",
    "missing": "Its name isn't in the book.",
    "untrained": "The head never met its name in training.",
    "digits": "Two entries of the book have the same digit.",
}
_RIGHT = {"row 2": "twice", "row 5": "missing"}

_SWAPPED = Mistake(
    {"row 2": "missing", "row 5": "twice"},
    "For one of the rows two entries match well, for the other none does. Which is which? A name "
    "that stands twice has the same score in two columns, or nearly.",
)
# What to say of each wrong cause, row by row.
_HINTS = {
    ("row 2", "missing"): "Row 2 has two bright cells, and next to nothing elsewhere. Would a "
    "name that fits no entry find two that fit?",
    ("row 2", "untrained"): "Row 2: in 300 batches of 32 books every name came up many times. And "
    "a head that knew nothing of the name wouldn't pick two cells alone.",
    ("row 2", "digits"): "Row 2: a question holds a name and no digit, so digits are nothing that "
    "it could look for.",
    ("row 5", "twice"): "Row 5: if its name stood in the book twice, two cells would share the "
    "row, as in row 2. Whose names do the entries have that it looks at?",
    ("row 5", "untrained"): "Row 5: in 300 batches of 32 books every name came up many times. Look "
    "at column 5: who finds the entry there, and what is its name?",
    ("row 5", "digits"): "Row 5: two entries may have the same digit, but no question asks for a "
    "digit. What of an entry does a key hold that a question could match?",
}
_MISTAKES = (
    _SWAPPED,
    *(Mistake(_RIGHT | {row: cause}, hint) for (row, cause), hint in _HINTS.items()),
)


@exercise(
    mistakes=_MISTAKES,
    page=Choice(CAUSES, each={"row 2": "Row 2", "row 5": "Row 5"}),
)
def odd_rows(answer: Any) -> Verdict:
    """Check the causes of two odd rows of a map, {"row 2": cause, "row 5": cause}."""
    if not isinstance(answer, dict) or set(answer) != set(_RIGHT):
        return not_yet('A dict is wanted, with a cause for "row 2" and one for "row 5".')
    causes = list(answer.values())
    if any(not isinstance(cause, str) or cause not in CAUSES for cause in causes):
        return not_yet(f"The causes to choose from are {', '.join(CAUSES)}.")
    if answer == _SWAPPED.answer:
        return not_yet(_SWAPPED.hint)
    for row, cause in _RIGHT.items():
        if answer[row] != cause:
            return not_yet(_HINTS[row, answer[row]])
    return correct("And row 5 is a warning: a look, however firm, need not be a match.")
