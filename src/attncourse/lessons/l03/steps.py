"""The steps of a head, put in order."""

from typing import Any

from attncourse.checking import CheckResult, Order, exercise, hints_by_name, read_mistakes
from attncourse.checking.functions import correct, not_yet

STEPS = {
    "mix": "mix the values with the weights: weights @ V",
    "softmax": "take the softmax of each row: the weights",
    "project": "make Q, K and V: X @ W_q, X @ W_k, X @ W_v",
    "mask": "set forbidden scores to -inf",
    "match": "match every query with every key: Q @ K.T, the scores",
    "scale": "divide the scores by √d_k",
}

# Which step must come before which, and the mistake if it doesn't. Scale and mask may change
# places: minus infinity, divided, stays what it is.
_RULES = (
    ("project", "match", "late_projection"),
    ("project", "mix", "late_projection"),
    ("match", "softmax", "early_scores"),
    ("softmax", "mix", "early_mix"),
    ("mask", "softmax", "late_mask"),
    ("scale", "softmax", "late_scale"),
    ("match", "mask", "early_scores"),
    ("match", "scale", "early_scores"),
)
MISTAKES = read_mistakes("head_in_order", globals())
HINTS = hints_by_name(MISTAKES)


@exercise(mistakes=MISTAKES, page=Order(STEPS))
def head_in_order(answer: Any) -> CheckResult:
    """Check the order of a head's six steps, a list of their names."""
    if not isinstance(answer, list | tuple) or not all(isinstance(step, str) for step in answer):
        return not_yet("A list of the six names is wanted, the first step first.")
    if sorted(answer) != sorted(STEPS):
        return not_yet(f"Each of {', '.join(STEPS)} is wanted, once.")
    for earlier, later, name in _RULES:
        if answer.index(earlier) > answer.index(later):
            return not_yet(HINTS[name])
    return correct("So a head works, and so you will write it.")
