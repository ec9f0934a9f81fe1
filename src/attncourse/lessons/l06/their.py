"""What a row of weights tells by a word that it leaves out."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choice, exercise, read_mistakes

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
    praise = (
        "The row has no column for what comes later. And its six numbers sum to 1.00, so hardly "
        "anything is left."
    )
    return check_choice(answer, "causal", MISTAKES, praise)
