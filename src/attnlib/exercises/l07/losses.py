"""What is the matter with a model? A diagnosis from two losses and the names that it writes."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

CAUSES = {
    "fine": "nothing is the matter",
    "heart": "it has learned its names by heart",
    "leak": "it reads the answer",
    "blind": "its tokens can't look at each other",
}
DIAGNOSIS = {"A": "leak", "B": "blind", "C": "heart", "D": "fine"}

_HINTS = {
    ("A", "fine"): "A: its losses lie below the floor, where no honest guess can be. Be glad when "
    "a loss is low, but not when it is too low.",
    ("A", "heart"): "A: by heart it could know only the names that it trained on. Its loss on new "
    "ones is as low.",
    ("A", "blind"): "A: without a look at other letters a model pays more than a bigram or hardly "
    "less. This one pays next to nothing.",
    ("B", "fine"): "B: compare its losses with the floor, and its names with those of D. Something "
    "is missing.",
    ("B", "heart"): "B: who has learned by heart pays little in training. This one pays much, on "
    "both.",
    ("B", "leak"): "B: who reads the answer pays less than the floor. This one pays far more.",
    ("C", "fine"): "C: what it writes is fine. Now compare its two losses.",
    ("C", "leak"): "C: who reads the answer reads it in new names as well. Its loss on new names "
    "is high.",
    ("C", "blind"): "C: its training loss lies below the floor, and its names keep the rules. A "
    "model that can't look back does neither.",
    ("D", "heart"): "D: by heart it would pay less in training than on new names. Its two losses "
    "are alike.",
    (
        "D",
        "leak",
    ): "D: who reads the answer gets far below the floor. Both its losses lie at it, as "
    "closely as luck with a few names lets one tell.",
    ("D", "blind"): "D: without a look back it couldn't know the first letter when the last one is "
    "asked. See how many of its names are right.",
}
LOSS_MISTAKES = tuple(
    Mistake(DIAGNOSIS | {model: said}, hint) for (model, said), hint in _HINTS.items()
)


@exercise(
    mistakes=LOSS_MISTAKES,
    page=Choice(CAUSES, each={model: f"Model {model}" for model in DIAGNOSIS}),
)
def four_models(answer: Any) -> Verdict:
    """Check what is the matter with each of four models: {"A": "fine", ...}."""
    if not isinstance(answer, dict) or set(answer) != set(DIAGNOSIS):
        return not_yet('A dictionary with the keys "A" to "D" was wanted.')
    for model, said in answer.items():
        if not isinstance(said, str) or said not in CAUSES:
            return not_yet(f"{model}: one of these was wanted: {', '.join(CAUSES)}.")
    for model, cause in DIAGNOSIS.items():
        if answer[model] != cause:
            return not_yet(_HINTS[model, answer[model]])
    return correct(
        "A loss says little by itself. Beside the floor, the other loss and what a model writes, "
        "it gives each of the four away."
    )
