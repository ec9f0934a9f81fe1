"""Who can tell "dog bites man" from "man bites dog"?"""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choices
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

READERS = {
    "mean": "the mean of the three rows",
    "attention": "attention, at bites",
    "positions": "attention on rows with positions added, at bites",
    "causal": "attention to the left only, at bites",
    "period": "attention to the left only, at a period behind the three words",
}
NOTICES = {"positions", "causal"}


def _said(noticing: set[str]) -> dict[str, str]:
    return {reader: "yes" if reader in noticing else "no" for reader in READERS}


RIGHT = _said(NOTICES)
NOTICE_MISTAKES = (
    Mistake(
        _said(set(READERS)),
        "Not all. A sum doesn't change when its terms change places, and a mean is a sum, divided.",
    ),
    Mistake(
        _said(set(READERS) - {"mean"}),
        "Plain attention is a weighted mean. Each word takes its weight along wherever it stands.",
    ),
    Mistake(
        _said({"positions"}),
        "One is missing. Whom may bites look at in either sentence, if it looks to the left only?",
    ),
    Mistake(
        _said({"positions", "causal", "period"}),
        "The period sees the same three words in both sentences. Nobody tells it in which order.",
    ),
    Mistake(
        _said(set()),
        "Somebody does. Where positions are added, dog at 0 is another row than dog at 2.",
    ),
)
WRONG = {
    "mean": "The mean of three rows is the same in any order.",
    "attention": "Attention alone: the same three rows, the same weights, another order of the "
    "sum. What changes?",
    "positions": "With positions, dog at 0 is another row than dog at 2. So its weight changes, "
    "and what it brings.",
    "causal": "To its left bites has dog in one sentence and man in the other.",
    "period": "The period sees all three words in both sentences, and no positions.",
}


@exercise(mistakes=NOTICE_MISTAKES, page=Choice({"yes": "yes", "no": "no"}, each=READERS))
def notices(answer: Any) -> Verdict:
    """Check who can tell two orders of three words apart: {"mean": "yes", ...}."""
    return check_choices(
        answer,
        RIGHT,
        ("yes", "no"),
        NOTICE_MISTAKES,
        wrong=WRONG,
        praise="Order must be told: by positions, or by who may look at whom.",
    )
