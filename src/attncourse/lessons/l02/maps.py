"""Four maps of scores between copies of one token: which positions made which?"""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

KINDS = {
    "none": "no positions",
    "learned": "learned vectors, not yet trained",
    "rotary": "rotary",
    "alibi": "ALiBi",
}
RIGHT = {"A": "rotary", "B": "learned", "C": "none", "D": "alibi"}


def _exchanged(*names: str) -> dict[str, str]:
    """Return the right answer with two kinds in each other's places."""
    other = dict(zip(names, reversed(names), strict=True))
    return {name: other.get(kind, kind) for name, kind in RIGHT.items()}


MISTAKES = read_mistakes("score_maps", globals())
WRONG = {
    "A": "A is the same along each diagonal, so only the distance counts. And it doesn't just fall "
    "with the distance: it comes back up.",
    "B": "B isn't the same along its diagonals: places count, and without a pattern.",
    "C": "C is one number throughout: nothing tells one place from another.",
    "D": "D falls by the same amount with each step away from the diagonal.",
}


@exercise(mistakes=MISTAKES, page=Choice(KINDS, each={name: f"map {name}" for name in RIGHT}))
def score_maps(answer: Any) -> CheckResult:
    """Check which positions made which of four maps of scores: {"A": "rotary", ...}."""
    praise = "Diagonals show that distances count; how they differ shows which kind it is."
    return check_choices(answer, RIGHT, KINDS, MISTAKES, wrong=WRONG, praise=praise)
