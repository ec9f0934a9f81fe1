"""How far back a model must look to keep a rule of the names."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

RULES = {
    "doubling": "doubling: after e and o a consonant inside is doubled, else not",
    "harmony": "harmony: the next vowel is of the last one's kind",
    "ending": "ending: the first letter fixes the last one",
}
FEWEST = {"1": "1 letter", "2": "2 letters", "3": "3 letters", "all": "all letters so far"}
RIGHT = {"doubling": "2", "harmony": "3", "ending": "all"}

MISTAKES = read_mistakes("letters_back", globals())
WRONG = {
    "doubling": "Doubling: in bol? the question is whether another l comes. What decides it, and "
    "how many letters back is that?",
    "harmony": "Harmony: in boll? a vowel comes. How many letters back is the last one, at most?",
    "ending": "Ending: the letter that decides stands at the beginning, and a name has five "
    "to fifteen letters.",
}


@exercise(mistakes=MISTAKES, page=Choice(FEWEST, each=RULES))
def letters_back(answer: Any) -> CheckResult:
    """Check how many letters back each rule reaches: {"doubling": "1", ...}."""
    praise = "So a bigram, which sees one letter, can keep none of the three."
    return check_choices(answer, RIGHT, FEWEST, MISTAKES, wrong=WRONG, praise=praise)
