"""Who can tell "dog bites man" from "bites dog man"?"""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

READERS = {
    "mean": "the mean of the three rows",
    "attention": "attention, at man",
    "positions": "attention on rows with positions added, at man",
    "causal": "attention to the left only, at man",
    "dog": "attention to the left only, at dog",
}
NOTICES = {"positions", "dog"}


def _said(noticing: set[str]) -> dict[str, str]:
    return {reader: "yes" if reader in noticing else "no" for reader in READERS}


RIGHT = _said(NOTICES)
MISTAKES = read_mistakes("notices", globals())
WRONG = {
    "mean": "The mean of three rows is the same in any order.",
    "attention": "Attention alone: the same three rows, the same weights, another order of the "
    "sum. What changes?",
    "positions": "With positions, dog at 0 is another row than dog at 1. So its weight changes, "
    "and its row too.",
    "causal": "The last word sees all three words in both texts, and no positions.",
    "dog": "To its left dog has nothing in one text, and bites in the other.",
}


@exercise(mistakes=MISTAKES, page=Choice({"yes": "yes", "no": "no"}, each=READERS))
def notices(answer: Any) -> CheckResult:
    """Check who can tell two orders of three words apart: {"mean": "yes", ...}."""
    praise = "The order must come from somewhere: from positions, or from a mask by place."
    return check_choices(answer, RIGHT, ("yes", "no"), MISTAKES, wrong=WRONG, praise=praise)
