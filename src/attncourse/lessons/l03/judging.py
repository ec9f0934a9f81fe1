"""The steps of a head in order, two odd rows of a map, and the run that tells a cause."""

from attncourse.checking import CheckResult, Choice, Order, exercise
from attncourse.checking.functions import check_choice, check_choices, correct, not_yet

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


@exercise(page=Order(STEPS))
def head_in_order(answer: object) -> CheckResult:
    """Check the order of a head's six steps, a list of their names."""
    if not isinstance(answer, list | tuple) or not all(isinstance(step, str) for step in answer):
        return not_yet("A list of the six names is wanted, the first step first.")
    if sorted(answer) != sorted(STEPS):
        return not_yet(f"Each of {', '.join(STEPS)} is wanted, once.")
    for earlier, later, name in _RULES:
        if answer.index(earlier) > answer.index(later):
            return not_yet(head_in_order.hints[name])
    return correct("That is how a head works. Now write one.")


CAUSES = {
    "twice": "Its name stands twice in the book.",
    "missing": "Its name isn't in the book.",
    "untrained": "The head never met its name in training.",
    "digits": "Two entries of the book have the same digit.",
}
ROW_CAUSES = {"row 2": "twice", "row 5": "missing"}


@exercise(page=Choice(CAUSES, each={"row 2": "Row 2", "row 5": "Row 5"}))
def odd_rows(answer: object) -> CheckResult:
    """Check the causes of two odd rows of a map, {"row 2": cause, "row 5": cause}."""
    praise = "And row 5 is a warning: a look, however firm, need not be a match."
    return check_choices(answer, ROW_CAUSES, odd_rows, praise=praise)


RUNS = {
    "longer": "Without the scale, ten times as many steps",
    "narrow": "Without the scale, at width 64",
    "seeds": "Without the scale, with thirty seeds instead of three",
    "louder": "With the scale, and W_q multiplied by √d_k at the start",
    "both": "Without the scale, W_q divided by 10 at the start, and a tenth of the learning rate",
}


@exercise(page=Choice(RUNS))
def telling_run(answer: object) -> CheckResult:
    """Check which run tells whether large scores at step 0 are enough to make a head slow."""
    praise = (
        "It has the scale, as the fast head has, and starts with the map of the slow one. Fast or "
        "slow, one doubt is left: keys meet a larger W_q, so each step on W_k moves the scores "
        "√d_k times as far. The solution trains this head with W_k's learning rate divided by √d_k "
        "as well."
    )
    return check_choice(answer, "louder", telling_run, praise)
