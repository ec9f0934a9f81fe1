"""Which part does a stack lack? A diagnosis from three training logs."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

DIAGNOSIS = {"A": "residual", "B": "norm", "C": "both"}
CHOICES = tuple(sorted(DIAGNOSIS.values()))

DIAGNOSIS_MISTAKES = (
    Mistake(
        DIAGNOSIS | {"A": "norm"},
        "Log A: without a norm, sizes drift with depth, and the gradient with them. Is its first "
        "gradient far from 1?",
    ),
    Mistake(
        DIAGNOSIS | {"A": "both"},
        "Log A: the loss looks as in log C, but compare the gradients at step 0. Something in A "
        "keeps the sizes healthy.",
    ),
    Mistake(
        DIAGNOSIS | {"B": "residual"},
        "Log B: a loss so far above that of a guess means huge outputs. Can that happen where a "
        "norm has the last word in each block?",
    ),
    Mistake(
        DIAGNOSIS | {"B": "both"},
        "Log B: with neither part, each block shrinks what it gets. Here something has grown: what "
        "adds up and is never brought back to size?",
    ),
    Mistake(
        DIAGNOSIS | {"C": "residual"},
        "Log C: the tokens are equal as without a residual, but look at the gradient at step 0. "
        "Would a norm let it get that small?",
    ),
    Mistake(
        DIAGNOSIS | {"C": "norm"},
        "Log C: a residual carries the gradient past every block. Has anything carried this one?",
    ),
)


@exercise(
    mistakes=DIAGNOSIS_MISTAKES,
    page=Choice(
        {"residual": "the residual", "norm": "the norm", "both": "both"},
        each={log: f"Log {log} lacks" for log in DIAGNOSIS},
    ),
)
def diagnosis(answer: Any) -> Verdict:
    """Check which part each log's stack lacks: {"A": ..., "B": ..., "C": ...}."""
    if not isinstance(answer, dict) or set(answer) != set(DIAGNOSIS):
        return not_yet('A dictionary with the keys "A", "B" and "C" is wanted.')
    for log, missing in answer.items():
        if missing not in CHOICES:
            return not_yet(f"Log {log}: choose one of {', '.join(map(repr, CHOICES))}.")
    if answer == DIAGNOSIS:
        return correct("Loss, gradient and token cosine together tell the three apart.")
    for mistake in DIAGNOSIS_MISTAKES:
        wrong = next(log for log in DIAGNOSIS if mistake.answer[log] != DIAGNOSIS[log])
        if answer[wrong] == mistake.answer[wrong]:
            return not_yet(mistake.hint)
    raise AssertionError("every wrong choice has a hint")
