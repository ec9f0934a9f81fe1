"""What a map of even weights can mean, and which measurement tells."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choice, exercise, read_mistakes

MISTAKES = read_mistakes("even_map", globals())
CHOICES = ("gradient norm", "root mean square", "row sums", "token cosine")


@exercise(mistakes=MISTAKES, page=Choice(CHOICES))
def even_map(answer: Any) -> CheckResult:
    """Check which measurement tells equal tokens from a head whose queries are zero."""
    praise = "It is 1 where the tokens have become equal, and below 1 where a head is idle."
    return check_choice(answer, "token cosine", MISTAKES, praise)
