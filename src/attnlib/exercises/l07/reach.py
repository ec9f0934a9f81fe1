"""How far back a reader must look to keep a rule of the made names."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choices
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

RULES = {
    "doubling": "doubling: after e and o a consonant inside is doubled, else not",
    "harmony": "harmony: the next vowel is of the last one's kind",
    "ending": "ending: the first letter fixes the last one",
}
FEWEST = {"1": "1 letter", "2": "2 letters", "3": "3 letters", "all": "all that was read"}
RIGHT = {"doubling": "2", "harmony": "3", "ending": "all"}

REACH_MISTAKES = (
    Mistake(
        {"doubling": "1", "harmony": "2", "ending": "all"},
        "You counted the letters in between. The letter that decides must be read as well.",
    ),
    Mistake(
        RIGHT | {"harmony": "2"},
        "Two letters reach the last vowel over one consonant. After e and o there are two of them.",
    ),
    Mistake(
        RIGHT | {"ending": "1"},
        "The letter before the ending is a vowel, and any vowel may stand there. Which letter "
        "tells whether n, r, l or s comes, and how many must be read to have it among them?",
    ),
    Mistake(
        dict.fromkeys(RULES, "all"),
        "All letters are enough for any rule. Asked is for the fewest.",
    ),
    Mistake(
        RIGHT | {"doubling": "3", "harmony": "2"},
        "You have exchanged two. In bol? the o decides whether another l comes. In boll? the same "
        "o decides the vowel, and stands one letter further back.",
    ),
)
WRONG = {
    "doubling": "Doubling: in bol? it is asked whether another l comes. What decides it, and how "
    "many letters back is that?",
    "harmony": "Harmony: in boll? a vowel comes. How many letters back is the last one, at most?",
    "ending": "Ending: the letter that decides stands at the beginning, and a name has five "
    "to fifteen letters.",
}


@exercise(mistakes=REACH_MISTAKES, page=Choice(FEWEST, each=RULES))
def letters_back(answer: Any) -> Verdict:
    """Check how many letters back each rule reaches: {"doubling": "1", ...}."""
    return check_choices(
        answer,
        RIGHT,
        FEWEST,
        REACH_MISTAKES,
        wrong=WRONG,
        praise="So a bigram, which sees one letter, can keep none of the three.",
    )
