"""What is wrong with four models, and how far back a rule of the names reaches."""

from attncourse.checking import CheckResult, Choice, check_choices, exercise

CAUSES = {
    "fine": "nothing is wrong",
    "heart": "it has learned its names by heart",
    "leak": "it reads the answer",
    "blind": "its tokens can't look at each other",
}
DIAGNOSIS = {"A": "leak", "B": "blind", "C": "heart", "D": "fine"}


@exercise(page=Choice(CAUSES, each={model: f"Model {model}" for model in DIAGNOSIS}))
def four_models(answer: object) -> CheckResult:
    """Check what is wrong with each of four models: {"A": "fine", ...}."""
    praise = (
        "A loss says little by itself. Compare it with the floor, the other loss and what the "
        "model writes, and each of the four gives itself away."
    )
    return check_choices(answer, DIAGNOSIS, four_models, praise=praise)


RULES = {
    "doubling": "doubling: after e and o a consonant inside is doubled, else not",
    "harmony": "harmony: the next vowel is of the last one's kind",
    "ending": "ending: the first letter fixes the last one",
}
FEWEST = {"1": "1 letter", "2": "2 letters", "3": "3 letters", "all": "all letters so far"}
REACH = {"doubling": "2", "harmony": "3", "ending": "all"}

WRONG_REACH = {
    "doubling": "Doubling: in bol? the question is whether another l comes. What decides it, and "
    "how many letters back is that?",
    "harmony": "Harmony: in boll? a vowel comes. How many letters back is the last one, at most?",
    "ending": "Ending: the letter that decides stands at the beginning, and a name has five "
    "to fifteen letters.",
}


@exercise(page=Choice(FEWEST, each=RULES))
def letters_back(answer: object) -> CheckResult:
    """Check how many letters back each rule reaches: {"doubling": "1", ...}."""
    praise = "So a bigram, which sees one letter, can keep none of the three."
    return check_choices(answer, REACH, letters_back, wrong=WRONG_REACH, praise=praise)
