"""Which bug of the museum has drawn which map."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

BUGS = {
    "off": "a mask switches causality off",
    "ahead": "causal mask peeks one ahead",
    "itself": "causal mask hides the token itself",
    "axis": "padding on the wrong axis",
    "turned": "causal triangle turned around",
    "thrown": "mask thrown away",
}  # the names that the museum has for them
DRAWN = {"A": "axis", "B": "off", "C": "itself", "D": "ahead"}

_WRONG = {
    "A": "Map A: its triangle is whole. But two columns have weight that should have none, and "
    "they are those of ...?",
    "B": "Map B: no column of padding has weight. What else should be blank, and isn't?",
    "C": "Map C: compare its diagonal with that of the right map. Which row lost its only look?",
    "D": "Map D: one diagonal has weight that has none in the right map.",
}
MAP_MISTAKES = (
    Mistake(
        DRAWN | {"B": "turned"},
        "Map B: a triangle that is turned around forbids the past. Here tokens see the past and "
        "the future.",
    ),
    Mistake(
        DRAWN | {"B": "thrown"},
        "Map B: if the mask had been thrown away, padding would be read too.",
    ),
    Mistake(
        DRAWN | {"A": "thrown"},
        "Map A: without any mask tokens would look ahead. These don't, and two rows are wholly "
        "forbidden: somebody did use the padding.",
    ),
    Mistake(
        DRAWN | {"C": "ahead", "D": "itself"},
        "You have C and D the wrong way round: which of them has a diagonal too many, and which "
        "one too few?",
    ),
    Mistake(
        DRAWN | {"A": "off", "B": "axis"},
        "You have A and B the wrong way round: in which of them does a token look to its right?",
    ),
    Mistake(
        DRAWN | {"C": "turned"},
        "Map C: nobody looks to the right in it. Under a triangle that is turned around tokens "
        "look at themselves and to their right.",
    ),
)


@exercise(
    mistakes=MAP_MISTAKES,
    page=Choice(BUGS, each={letter: f"Map {letter}" for letter in DRAWN}),
)
def bugs_of_maps(answer: Any) -> Verdict:
    """Check which bug has drawn each of four maps: {"A": "off", ...}."""
    if not isinstance(answer, dict) or set(answer) != set(DRAWN):
        return not_yet("A dictionary with the keys A to D is wanted.")
    for letter, said in answer.items():
        if not isinstance(said, str) or said not in BUGS:
            return not_yet(f"{letter}: one of these was wanted: {', '.join(BUGS)}.")
    for mistake in MAP_MISTAKES:
        if answer == mistake.answer:
            return not_yet(mistake.hint)
    for letter, right in DRAWN.items():
        if answer[letter] != right:
            return not_yet(_WRONG[letter])
    return correct(
        "None of the four raises an error. Two of them read the future, one reads padding."
    )
