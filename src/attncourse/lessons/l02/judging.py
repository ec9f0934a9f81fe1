"""Who can tell "dog bites man" from "bites dog man", and which positions made which map."""

from attncourse.checking import CheckResult, Choice, check_choices, exercise

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


NOTICED = _said(NOTICES)
NOT_NOTICED = {
    "mean": "The mean of three rows is the same in any order.",
    "attention": "Attention alone: the same three rows, the same weights, another order of the "
    "sum. What changes?",
    "positions": "With positions, dog's row at 0 differs from that at 1. So its weight changes, "
    "and its row too.",
    "causal": "The last word sees all three words in both texts, and no positions.",
    "dog": "In one text no word is left of dog; in the other the word *bites* is.",
}


@exercise(page=Choice({"yes": "yes", "no": "no"}, each=READERS))
def notices(answer: object) -> CheckResult:
    """Check who can tell two orders of three words apart: {"mean": "yes", ...}."""
    praise = "The order must come from somewhere: from positions, or from a mask by place."
    return check_choices(answer, NOTICED, notices, wrong=NOT_NOTICED, praise=praise)


KINDS = {
    "none": "no positions",
    "learned": "learned vectors, not yet trained",
    "rotary": "rotary",
    "alibi": "ALiBi",
}
MAPS = {"A": "rotary", "B": "learned", "C": "none", "D": "alibi"}


def _exchanged(*names: str) -> dict[str, str]:
    """Return the right answer with two kinds in each other's places."""
    other = dict(zip(names, reversed(names), strict=True))
    return {name: other.get(kind, kind) for name, kind in MAPS.items()}


WRONG_MAPS = {
    "A": "A is the same along each diagonal, so only the distance counts. And it doesn't just fall "
    "with the distance: it comes back up.",
    "B": "B isn't the same along its diagonals: places count, and without a pattern.",
    "C": "C is one number throughout: nothing tells one place from another.",
    "D": "D falls by the same amount with each step away from the diagonal.",
}


@exercise(page=Choice(KINDS, each={name: f"map {name}" for name in MAPS}))
def score_maps(answer: object) -> CheckResult:
    """Check which positions made which of four maps of scores: {"A": "rotary", ...}."""
    praise = "Diagonals show that distances count; how they differ shows which kind it is."
    return check_choices(answer, MAPS, score_maps, wrong=WRONG_MAPS, praise=praise)
