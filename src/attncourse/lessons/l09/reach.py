"""Which keys a head can look at most, whatever it asks."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

KEYS = {
    "a": (2.0, 0.0), "b": (0.0, 2.0), "c": (-2.0, -1.0),
    "d": (0.4, 0.5), "e": (-1.0, 0.3), "f": (0.6, -0.6),
}  # fmt: skip
REACHED = {"a": "yes", "b": "yes", "c": "yes", "d": "no", "e": "no", "f": "yes"}


def _said(reached: str) -> dict[str, str]:
    return {key: "yes" if key in reached else "no" for key in KEYS}


MISTAKES = read_mistakes("reachable", globals())
WRONG = {
    "a": "a lies furthest out to the right: ask with (1, 0).",
    "b": "b lies furthest out upward: ask with (0, 1).",
    "c": "c lies furthest out to the left: ask with (-1, 0).",
    "d": "d lies between the others. Wherever a query points, another key lies further out.",
    "e": "e lies just behind the line from b to c. Whatever is asked, b or c has a larger one.",
    "f": "f is short, but it lies furthest out in a direction of its own: ask with (0.3, -1).",
}


@exercise(mistakes=MISTAKES, page=Choice({"yes": "yes", "no": "no"}, each={
    key: f"{key} ({x:g}, {y:g})" for key, (x, y) in KEYS.items()
}))  # fmt: skip
def reachable(answer: Any) -> CheckResult:
    """Check which of six keys some query can look at most: {"a": "yes", ...}."""
    praise = "They are the corners of the keys' hull. More dimensions have more corners."
    return check_choices(answer, REACHED, ("yes", "no"), MISTAKES, wrong=WRONG, praise=praise)
