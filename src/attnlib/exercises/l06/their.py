"""What a row of weights tells by a word that it leaves out."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choice
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

READINGS = {
    "rounded": "A model that looks both ways. The weight of homework is small, and was rounded "
    "away.",
    "causal": "A model that looks to the left only.",
    "either": "Either: a row says nothing about which looks are forbidden.",
    "neither": "Neither: a row must name all words of the sentence.",
}
READING_MISTAKES = (
    Mistake(
        "rounded",
        "It might be below .005. But even then the row would hold a number for it, if only .00: "
        "here it has no column. Which kind of model has none for what comes later?",
    ),
    Mistake(
        "either",
        "Add the numbers up. They share out all of 1, and a softmax gives every word that may be "
        "looked at a share.",
    ),
    Mistake(
        "neither",
        "A row names the words that may be looked at. Under a causal mask these are the ones up "
        "to the word itself.",
    ),
)


@exercise(mistakes=READING_MISTAKES, page=Choice(READINGS))
def left_out(answer: Any) -> Verdict:
    """Check which kind of model a row of weights over six of seven words comes from."""
    return check_choice(
        answer,
        "causal",
        READING_MISTAKES,
        "The row has no column for what comes later. And its six numbers sum to 1.00, so hardly "
        "anything is left.",
    )
