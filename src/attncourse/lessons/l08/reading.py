"""Which of eight maps is an induction head, and which sentence a sweep bears out."""

from typing import Any

from attncourse.checking import CheckResult, Choice, check_choice, exercise, read_mistakes

INDUCTION_MISTAKES = read_mistakes("induction_head", globals())


@exercise(
    mistakes=INDUCTION_MISTAKES,
    page=Choice(
        {
            f"{layer}.{head}": f"layer {layer}, head {head}"
            for layer in (1, 2)
            for head in range(1, 5)
        }
    ),
)
def induction_head(answer: Any) -> CheckResult:
    """Check which of eight maps is an induction head: "1.1" to "2.4", layer and head from 1."""
    praise = "It looks at what followed the same symbol last time, at whatever distance."
    return check_choice(answer, "2.2", INDUCTION_MISTAKES, praise)


SWEEP_MISTAKES = read_mistakes("sweep_sentence", globals())


@exercise(
    mistakes=SWEEP_MISTAKES,
    page=Choice(
        {
            "best": "Eight heads are best: they reach .022.",
            "trend": "The more heads, the lower the loss.",
            "seen": "On this task a second head lowers the loss in all five seeds; "
            "between four and eight heads the seeds overlap.",
            "equal": "Four and eight heads are equally good.",
            "cause": "The loss falls because each relation gets a head of its own.",
            "all": "A Transformer needs at least two heads.",
        }
    ),
)
def sweep_sentence(answer: Any) -> CheckResult:
    """Check which sentence about a sweep survives its error bars."""
    praise = (
        "It says what was varied, in how many seeds it was seen, and where nothing could be seen."
    )
    return check_choice(answer, "seen", SWEEP_MISTAKES, praise)
