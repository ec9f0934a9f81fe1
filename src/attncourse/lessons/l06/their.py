"""What a row of weights tells by a word that it leaves out."""

from typing import Any

from attncourse.checking.exercise import exercise
from attncourse.checking.functions import check_choice
from attncourse.checking.mistakes import read_mistakes
from attncourse.checking.on_page import Choice
from attndoctor.check_result import CheckResult

READINGS = {
    "rounded": "A model that looks both ways. The weight of homework is small, and was rounded "
    "away.",
    "causal": "A model that looks to the left only.",
    "either": "Either: a row says nothing about which looks are forbidden.",
    "neither": "Neither: a row must name all words of the sentence.",
}
MISTAKES = read_mistakes("left_out", globals())


@exercise(mistakes=MISTAKES, page=Choice(READINGS))
def left_out(answer: Any) -> CheckResult:
    """Check which kind of model a row of weights over six of seven words comes from."""
    return check_choice(
        answer,
        "causal",
        MISTAKES,
        "The row has no column for what comes later. And its six numbers sum to 1.00, so hardly "
        "anything is left.",
    )
