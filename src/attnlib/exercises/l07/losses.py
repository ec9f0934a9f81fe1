"""What is the matter with a model? A diagnosis from two losses and the names that it writes."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choices
from attnlib.exercises._exercise import exercise
from attnlib.exercises._mistakes import read_mistakes
from attnlib.exercises._on_page import Choice

CAUSES = {
    "fine": "nothing is the matter",
    "heart": "it has learned its names by heart",
    "leak": "it reads the answer",
    "blind": "its tokens can't look at each other",
}
DIAGNOSIS = {"A": "leak", "B": "blind", "C": "heart", "D": "fine"}
MISTAKES = read_mistakes("four_models", globals())


@exercise(
    mistakes=MISTAKES,
    page=Choice(CAUSES, each={model: f"Model {model}" for model in DIAGNOSIS}),
)
def four_models(answer: Any) -> Verdict:
    """Check what is the matter with each of four models: {"A": "fine", ...}."""
    return check_choices(
        answer,
        DIAGNOSIS,
        CAUSES,
        MISTAKES,
        praise="A loss says little by itself. Beside the floor, the other loss and what a model "
        "writes, it gives each of the four away.",
    )
