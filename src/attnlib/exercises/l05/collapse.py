"""What a map of even weights can mean, and which measurement tells."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

TELLING = "token cosine"

EVEN_MAP_MISTAKES = (
    Mistake(
        "gradient norm",
        "A gradient says what the weights could learn. It can be healthy in both cases, and small "
        "in both.",
    ),
    Mistake(
        "root mean square",
        "That is a size. Tokens of one size may all be different, and equal tokens may have any "
        "size.",
    ),
    Mistake(
        "row sums",
        "Every row of a softmax sums to 1, whatever the tokens are and whatever the queries are.",
    ),
)
CHOICES = sorted([TELLING, *(mistake.answer for mistake in EVEN_MAP_MISTAKES)])


@exercise(mistakes=EVEN_MAP_MISTAKES, page=Choice(CHOICES))
def even_map(answer: Any) -> Verdict:
    """Check which measurement tells equal tokens from a head whose queries are zero."""
    if not isinstance(answer, str) or answer not in CHOICES:
        return not_yet(f"Choose one of {', '.join(map(repr, CHOICES))}.")
    for mistake in EVEN_MAP_MISTAKES:
        if answer == mistake.answer:
            return not_yet(mistake.hint)
    return correct("It is 1 where the tokens have become equal, and below 1 where a head is idle.")
