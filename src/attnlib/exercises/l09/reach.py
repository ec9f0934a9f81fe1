"""Which keys a head can look at most, whatever it asks."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

KEYS = {
    "a": (2.0, 0.0), "b": (0.0, 2.0), "c": (-2.0, -1.0),
    "d": (0.4, 0.5), "e": (-1.0, 0.3), "f": (0.6, -0.6),
}  # fmt: skip
REACHED = {"a": "yes", "b": "yes", "c": "yes", "d": "no", "e": "no", "f": "yes"}


def _said(reached: str) -> dict[str, str]:
    return {key: "yes" if key in reached else "no" for key in KEYS}


REACH_MISTAKES = (
    Mistake(
        _said("abcdef"),
        "Not all. Try d, which lies in the middle: along whatever direction you look, another key "
        "lies further out.",
    ),
    Mistake(
        _said("abce"),
        "You went by length. What counts is who lies furthest out in *some* direction: e lies "
        "behind the line from b to c, however long it is, and f has a direction of its own.",
    ),
    Mistake(
        _said("abc"),
        "One is missing. Ask with (0.3, -1): which key has the largest product?",
    ),
    Mistake(
        _said("ac"),
        "Two are all there would be with keys of one number. In the plane a query can turn around.",
    ),
    Mistake(
        _said("de"),
        "It is the other way round: those inside are never the furthest out.",
    ),
)
WRONG = {
    "a": "a lies furthest out to the right: ask with (1, 0).",
    "b": "b lies furthest out upward: ask with (0, 1).",
    "c": "c lies furthest out to the left: ask with (-1, 0).",
    "d": "d lies between the others. Wherever a query points, another key lies further out.",
    "e": "e lies just behind the line from b to c. Whatever is asked, b or c has a larger one.",
    "f": "f is short, but it lies furthest out in a direction of its own: ask with (0.3, -1).",
}


@exercise(mistakes=REACH_MISTAKES, page=Choice({"yes": "yes", "no": "no"}, each={
    key: f"{key} ({x:g}, {y:g})" for key, (x, y) in KEYS.items()
}))  # fmt: skip
def reachable(answer: Any) -> Verdict:
    """Check which of six keys some query can look at most: {"a": "yes", ...}."""
    if not isinstance(answer, dict) or set(answer) != set(KEYS):
        return not_yet("A dictionary with the keys a to f is wanted.")
    for key, said in answer.items():
        if not isinstance(said, str) or said not in ("yes", "no"):
            return not_yet(f'{key}: say "yes" or "no".')
    for mistake in REACH_MISTAKES:
        if answer == mistake.answer:
            return not_yet(mistake.hint)
    for key, right in REACHED.items():
        if answer[key] != right:
            return not_yet(WRONG[key])
    return correct("They are the corners of the keys' hull. More dimensions have more corners.")
