"""Sentences about heads of famous models: which can be checked, and which can't."""

from attncourse.checking import CheckResult, Choice, check_choices, exercise

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


@exercise(page=Choice(KINDS, each=SENTENCES))
def what_can_be_checked(answer: object) -> CheckResult:
    """Check which of five sentences is true, false or can't be checked: {"A": "true", ...}."""
    praise = (
        "A claim about a model is as good as its source: weights, a paper, a configuration. Where "
        "there is none, honest words are: we don't know."
    )
    return check_choices(answer, RIGHT, what_can_be_checked, praise=praise)
