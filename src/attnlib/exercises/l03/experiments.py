"""Design the experiment: which run tells one cause from another?"""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

RUNS = {
    "longer": "Without the scale, ten times as many steps",
    "narrow": "Without the scale, at width 64",
    "seeds": "Without the scale, with thirty seeds instead of three",
    "louder": "With the scale, and W_q multiplied by √d_k at the start",
    "both": "Without the scale, W_q divided by 10 at the start, and a tenth of the learning rate",
}

_LONGER = Mistake(
    "longer",
    "That shows where the head arrives, not what held it up.",
)
_NARROW = Mistake(
    "narrow",
    "The figure has this run already. Another width changes the first scores and how fast they "
    "change: either could be why.",
)
_SEEDS = Mistake(
    "seeds",
    "More seeds tell whether the delay was luck. In three out of three runs it hardly was, and "
    "its cause stays unknown.",
)
_BOTH = Mistake(
    "both",
    "That changes two things. If the run is faster, or slower, which of them did it?",
)


@exercise(mistakes=(_LONGER, _NARROW, _SEEDS, _BOTH), page=Choice(RUNS))
def telling_run(answer: Any) -> Verdict:
    """Check which run tells whether large first scores are enough to make a head slow."""
    if answer == "louder":
        return correct(
            "It has the scale, as the fast head has, and starts with the map of the slow one. Fast "
            "or slow, one doubt is left: keys meet a larger W_q, so each step on W_k moves the "
            "scores √d_k times as far. The solution trains this head with W_k's learning rate "
            "divided by √d_k as well."
        )
    for mistake in (_LONGER, _NARROW, _SEEDS, _BOTH):
        if answer == mistake.answer:
            return not_yet(mistake.hint)
    return not_yet(f"The runs to choose from are {', '.join(RUNS)}.")
