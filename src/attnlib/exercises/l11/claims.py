"""Sentences about heads of famous models: which can be checked, and which can't."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choices
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

KINDS = {
    "true": "can be checked, and is true",
    "false": "can be checked, and is false",
    "open": "can't be checked by us",
}
SENTENCES = {
    "A": "GPT-2 small has 144 heads, and a file in which each can be found.",
    "B": "Each of Llama 2 70B's 64 query heads has its own keys and values.",
    "C": "Each block of Claude has 96 heads.",
    "D": "GPT-4 has more heads than GPT-3.",
    "E": "The heads of GPT-3 175B are 128 numbers wide.",
}
RIGHT = {"A": "true", "B": "false", "C": "open", "D": "open", "E": "true"}


def _said(**changes: str) -> dict[str, str]:
    return RIGHT | changes


CLAIM_MISTAKES = (
    Mistake(
        _said(C="true"),
        "C: a number is said quickly. But who has published Claude's sizes? Without a paper, a "
        "file or a configuration there is nothing to check it on.",
    ),
    Mistake(
        _said(C="true", D="true"),
        "C and D: both may sound likely, and neither has been published. Likely isn't checked.",
    ),
    Mistake(
        _said(D="true"),
        "D: the report on GPT-4 says that it tells nothing further of the architecture, its size "
        "included. What others have heard isn't a source.",
    ),
    Mistake(
        _said(C="false", D="false"),
        "C and D: that something isn't published doesn't make it false, either.",
    ),
    Mistake(
        _said(B="open", E="open"),
        "B and E: of these models there are papers with such numbers. They were in L09's table.",
    ),
    Mistake(
        _said(B="true"),
        "B: Llama 2 70B has grouped-query attention. How many heads of keys and values has it?",
    ),
    Mistake(
        _said(E="open"),
        "E: GPT-3's weights were never published, but its paper has a table of sizes.",
    ),
)


@exercise(mistakes=CLAIM_MISTAKES, page=Choice(KINDS, each=SENTENCES))
def what_can_be_checked(answer: Any) -> Verdict:
    """Check which of five sentences is true, false or can't be checked: {"A": "true", ...}."""
    return check_choices(
        answer,
        RIGHT,
        KINDS,
        CLAIM_MISTAKES,
        wrong={
            "A": "A: 12 layers of 12 heads, and the weights are public.",
            "B": "B: 64 query heads, but how many heads of keys and values?",
            "C": "C: what would you check it on?",
            "D": "D: what would you check it on?",
            "E": "E: 12,288 numbers and 96 heads: its paper says so.",
        },
        praise="A sentence about a model is worth its source: weights, a paper, a configuration. "
        "Where there is none, the honest words are: we don't know.",
    )
