"""The steps of a head, put in order."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Order

STEPS = {
    "mix": "mix the values with the weights: weights @ V",
    "softmax": "take the softmax of each row: the weights",
    "project": "make Q, K and V: X @ W_q, X @ W_k, X @ W_v",
    "mask": "set forbidden scores to -inf",
    "match": "match every query with every key: Q @ K.T, the scores",
    "scale": "divide the scores by √d_k",
}

_LATE_MASK = Mistake(
    ["project", "match", "scale", "softmax", "mask", "mix"],
    "After the softmax there are weights, no scores: minus infinity among them is no share of "
    "anything. The mask has to work on scores, so that the others still sum to 1.",
)
_LATE_SCALE = Mistake(
    ["project", "match", "mask", "softmax", "scale", "mix"],
    "Weights that are divided no longer sum to 1, and are as far apart as before. The scale works "
    "on scores.",
)
_EARLY_MIX = Mistake(
    ["project", "match", "scale", "mask", "mix", "softmax"],
    "To mix the values you need the weights, and only the softmax makes them.",
)
_EARLY_SCORES = Mistake(
    ["project", "mask", "scale", "match", "softmax", "mix"],
    "One of your steps works on scores, but queries and keys haven't met yet.",
)
_LATE_PROJECTION = Mistake(
    ["match", "scale", "mask", "softmax", "mix", "project"],
    "Begin with what the tokens bring: every other step needs queries, keys or values.",
)
# Which step must come before which, and what to say if it doesn't. Scale and mask may change
# places: minus infinity, divided, stays what it is.
_RULES = (
    ("project", "match", _LATE_PROJECTION),
    ("project", "mix", _LATE_PROJECTION),
    ("match", "softmax", _EARLY_SCORES),
    ("softmax", "mix", _EARLY_MIX),
    ("mask", "softmax", _LATE_MASK),
    ("scale", "softmax", _LATE_SCALE),
    ("match", "mask", _EARLY_SCORES),
    ("match", "scale", _EARLY_SCORES),
)


@exercise(
    mistakes=(_LATE_MASK, _LATE_SCALE, _EARLY_MIX, _EARLY_SCORES, _LATE_PROJECTION),
    page=Order(STEPS),
)
def head_in_order(answer: Any) -> Verdict:
    """Check the order of a head's six steps, a list of their names."""
    if not isinstance(answer, list | tuple) or not all(isinstance(step, str) for step in answer):
        return not_yet("A list of the six names is wanted, the first step first.")
    if sorted(answer) != sorted(STEPS):
        return not_yet(f"Each of {', '.join(STEPS)} is wanted, once.")
    for earlier, later, mistake in _RULES:
        if answer.index(earlier) > answer.index(later):
            return not_yet(mistake.hint)
    return correct("So a head works, and so you will write it.")
