"""Which bug of the museum has drawn which map."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

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
MISTAKES = read_mistakes("bugs_of_maps", globals())


@exercise(mistakes=MISTAKES, page=Choice(BUGS, each={letter: f"Map {letter}" for letter in DRAWN}))
def bugs_of_maps(answer: Any) -> CheckResult:
    """Check which bug has drawn each of four maps: {"A": "off", ...}."""
    praise = "None of the four raises an error. Two of them read the future, one reads padding."
    return check_choices(answer, DRAWN, BUGS, MISTAKES, wrong=_WRONG, praise=praise)
