"""What a map of even weights can mean, and which measurement tells."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choice
from attnlib.exercises._exercise import exercise
from attnlib.exercises._mistakes import read_mistakes
from attnlib.exercises._on_page import Choice

MISTAKES = read_mistakes("even_map", globals())
CHOICES = ("gradient norm", "root mean square", "row sums", "token cosine")


@exercise(mistakes=MISTAKES, page=Choice(CHOICES))
def even_map(answer: Any) -> Verdict:
    """Check which measurement tells equal tokens from a head whose queries are zero."""
    return check_choice(
        answer,
        "token cosine",
        MISTAKES,
        "It is 1 where the tokens have become equal, and below 1 where a head is idle.",
    )
