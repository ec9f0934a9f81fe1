"""Which experiment finds the part of a block that leaks."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choice, exercise, read_mistakes

EXPERIMENTS = {
    "maps": "Average the attention maps over 1,000 sentences, and look above the diagonal.",
    "jacobian": "Compute the Jacobian of the whole block, in place of the leak matrix.",
    "parts": "Compute the leak matrix of the norm, of the attention and of the feed-forward "
    "network, each alone.",
    "without": "Train three models, each without one of the parts, and compare the losses.",
    "deeper": "Compute the leak matrix of stacks of 1, 2 and 4 such blocks.",
}
MISTAKES = read_mistakes("telling_experiment", globals())


@exercise(mistakes=MISTAKES, page=Choice(EXPERIMENTS))
def telling_experiment(answer: Any) -> CheckResult:
    """Check which experiment finds the part of a block that leaks."""
    praise = (
        "Parts that don't leak, joined by skips, make a block that doesn't. The test is the same "
        "for each, and needs no training."
    )
    return check_choice(answer, "parts", MISTAKES, praise)
