"""Design the experiment: which run tells one cause from another?"""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choice, exercise, read_mistakes

RUNS = {
    "longer": "Without the scale, ten times as many steps",
    "narrow": "Without the scale, at width 64",
    "seeds": "Without the scale, with thirty seeds instead of three",
    "louder": "With the scale, and W_q multiplied by √d_k at the start",
    "both": "Without the scale, W_q divided by 10 at the start, and a tenth of the learning rate",
}
MISTAKES = read_mistakes("telling_run", globals())


@exercise(mistakes=MISTAKES, page=Choice(RUNS))
def telling_run(answer: Any) -> CheckResult:
    """Check which run tells whether large first scores are enough to make a head slow."""
    praise = (
        "It has the scale, as the fast head has, and starts with the map of the slow one. Fast or "
        "slow, one doubt is left: keys meet a larger W_q, so each step on W_k moves the scores "
        "√d_k times as far. The solution trains this head with W_k's learning rate divided by √d_k "
        "as well."
    )
    return check_choice(answer, "louder", MISTAKES, praise)
