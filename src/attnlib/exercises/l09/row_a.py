"""Which sentence a famous row of numbers bears out."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choice
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

SENTENCES = {
    "eight": "Eight heads are the best choice for a Transformer.",
    "trend": "The more heads, the better, up to sixteen.",
    "rivals": "From 16 to 32 heads the score falls by 0.4 BLEU, because so many heads get into "
    "each other's way; so a model of this width shouldn't have more than 16 heads.",
    "numbers": "On this development set, with one number each, one head was 0.9 BLEU below the "
    "best and 32 heads 0.4; between 4, 8 and 16 heads the row decides nothing.",
    "useless": "A Transformer with one head is useless.",
    "larger": "Eight heads beat one because they have more parameters.",
}

ROW_MISTAKES = (
    Mistake(
        "the best number",
        "eight",
        "Eight and sixteen have the same score, one number each, for one pair of languages "
        "and one width. Another width was not tried in this row.",
    ),
    Mistake(
        "a trend",
        "trend",
        "From 8 to 16 it doesn't rise, and from 4 to 8 by 0.3. Without a second training nobody "
        "knows how far two equal models would lie apart.",
    ),
    Mistake(
        "a cause",
        "rivals",
        "The row changes two things at once: 32 heads are also 16 wide each. Row B has 8 heads "
        "that are as narrow, and they score no better.",
    ),
    Mistake(
        "useless",
        "useless",
        "One head scored 24.9, and the best 25.8. That is worse; useless it isn't.",
    ),
    Mistake(
        "the parameters",
        "larger",
        "In this row the width of a head shrinks as their number grows, so that the parameters "
        "stay as many.",
    ),
)


@exercise(mistakes=ROW_MISTAKES, page=Choice(SENTENCES))
def row_sentence(answer: Any) -> Verdict:
    """Check which sentence about a published sweep survives."""
    return check_choice(
        answer,
        "numbers",
        ROW_MISTAKES,
        "It names the setting and how often it was tried, and claims no difference that one more "
        "training could turn around.",
    )
