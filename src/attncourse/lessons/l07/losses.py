"""What is wrong with a model? A diagnosis from two losses and the names that it writes."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choices, exercise, read_mistakes

CAUSES = {
    "fine": "nothing is wrong",
    "heart": "it has learned its names by heart",
    "leak": "it reads the answer",
    "blind": "its tokens can't look at each other",
}
DIAGNOSIS = {"A": "leak", "B": "blind", "C": "heart", "D": "fine"}
MISTAKES = read_mistakes("four_models", globals())


@exercise(
    mistakes=MISTAKES, page=Choice(CAUSES, each={model: f"Model {model}" for model in DIAGNOSIS})
)
def four_models(answer: Any) -> CheckResult:
    """Check what is wrong with each of four models: {"A": "fine", ...}."""
    praise = (
        "A loss says little by itself. Compare it with the floor, the other loss and what the "
        "model writes, and each of the four gives itself away."
    )
    return check_choices(answer, DIAGNOSIS, CAUSES, MISTAKES, praise=praise)
