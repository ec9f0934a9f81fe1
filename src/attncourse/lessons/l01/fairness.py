"""Two models that cut their texts differently: which guesses better?"""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choice, exercise, read_mistakes

LOSSES = {"letters": (1.9, 1.0), "merges": (3.1, 2.1)}  # nats per token, letters per token
READINGS = {
    "letters": "The one with letters: its loss is lower.",
    "merges": "The one with merges: it pays less per letter.",
    "vocabulary": "Divide each loss by ln V of its vocabulary; the smaller quotient wins.",
    "never": "Losses over different tokens can't be compared.",
}
MISTAKES = read_mistakes("fair_comparison", globals())


@exercise(mistakes=MISTAKES, page=Choice(READINGS))
def fair_comparison(answer: Any) -> CheckResult:
    """Check which of two models with different tokens guesses better."""
    (letters, _), (loss, length) = LOSSES["letters"], LOSSES["merges"]
    praise = (
        f"{loss} / {length} = {loss / length:.2f} nats per letter, and the other pays {letters}."
    )
    return check_choice(answer, "merges", MISTAKES, praise)
