"""What one pass over a sentence is worth: its honest questions, and the rows that it costs."""

from typing import Any

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

T = 8  # words of the sentence that go in
RIGHT = [[T, T], [1, T], [T, sum(range(1, T + 1))]]
COUNTED = ["honest questions", "rows"]
LABELS = {
    "One pass, causal mask": COUNTED,
    "One pass, no mask": COUNTED,
    "A pass per prefix, no mask": COUNTED,
}
MISTAKES = read_mistakes("honest_questions", globals())
PAGE = Numbers(right=RIGHT, labels=LABELS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def honest_questions(answer: Any) -> CheckResult:
    """Check the honest questions and the rows of three ways to train on a sentence, [3, 2]."""
    otherwise = [
        "Causal: each word that goes in is one row, and is asked for the word after it.",
        "No mask: at which places does the answer stand among the words that go in?",
        "Prefixes: how many are there, and how many words does each of them have?",
    ]
    praise = "The causal mask asks all questions for the price of one pass."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
