"""Which of eight maps is an induction head, and which sentence a sweep bears out."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_choice
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

INDUCTION_MISTAKES = (
    Mistake(
        "1.1",
        "Each row looks one place back, whatever stands there. An induction head needs such a head "
        "below it.",
    ),
    Mistake(
        "1.2",
        "Each row looks at the start: the head rests. Nothing depends on what comes again.",
    ),
    Mistake(
        "1.3",
        "Take the second `a`: it looks at the first `a` itself. An induction head looks at what "
        "*followed* it.",
    ),
    Mistake(
        "1.4",
        "Each row looks at all tokens so far alike. Nothing is chosen.",
    ),
    Mistake(
        "2.1",
        "It is right for the second `a` and the second `b`. Now take the second `c`: three back is "
        "a fixed offset, which hits where the distance happens to be three.",
    ),
    Mistake(
        "2.3",
        "Take the second `a`: what followed the first one is `b`. This head looks one place "
        "further, at `c`.",
    ),
    Mistake(
        "2.4",
        "Each row looks two back. Compare the rows of the second `a` and of the second `d`.",
    ),
)


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
def induction_head(answer: Any) -> Verdict:
    """Check which of eight maps is an induction head: "1.1" to "2.4", layer and head from 1."""
    return check_choice(
        answer,
        "2.2",
        INDUCTION_MISTAKES,
        "It looks at what followed the same symbol last time, at whatever distance.",
    )


SWEEP_MISTAKES = (
    Mistake(
        "best",
        "One run of five has that loss, and another run of the same setting is above runs with "
        "four heads. Whoever picks the best seed finds a winner in any noise.",
    ),
    Mistake(
        "trend",
        "From one to two heads it falls, in every seed. From four to eight the seeds lie among "
        "each other: a line through the means is no trend.",
    ),
    Mistake(
        "equal",
        "That no difference is seen in five seeds doesn't show that there is none: a small one "
        "would drown in this scatter.",
    ),
    Mistake(
        "cause",
        "The sweep tells *that* a second head helps, not why. For the why, look at what the heads "
        "do, and change it.",
    ),
    Mistake(
        "all",
        "One task and one kind of model were tried. Another model may do with one head, say with a "
        "second layer.",
    ),
)


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
def sweep_sentence(answer: Any) -> Verdict:
    """Check which sentence about a sweep survives its error bars."""
    return check_choice(
        answer,
        "seen",
        SWEEP_MISTAKES,
        "It says what was varied, in how many seeds it was seen, and where nothing could be seen.",
    )
