"""A table of head roles, row by row: measured somewhere, at rest, or without a source."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

TITLES = {
    3: "Head 3: pronouns and whom they mean",
    5: "Head 5: verbs and their objects",
    7: "Head 7: the neighboring word",
    9: "Head 9: words of similar meaning",
    11: "Head 11: punctuation and separators",
}
CHOICES = {
    "measured": "such heads were measured",
    "rest": "such looks were measured, and are better read as doing nothing",
    "none": "we know of no source",
}
REPAIRED = {3: "measured", 5: "measured", 7: "measured", 9: "none", 11: "rest"}

MISTAKES = read_mistakes("role_table", globals())


@exercise(mistakes=MISTAKES, page=Choice(CHOICES, each=TITLES))
def role_table(answer: Any) -> CheckResult:
    """Check a verdict on each row: {3: ..., 5: ..., 7: ..., 9: ..., 11: ...}.

    Each is one of "measured", "rest" and "none".
    """
    praise = (
        "And every row still lacks what makes it a claim: a model, a layer, a score, a baseline."
    )
    return check_choices(answer, REPAIRED, CHOICES, MISTAKES, praise=praise)
