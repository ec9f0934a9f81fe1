"""Which map is an induction head, which sentence a sweep bears out, which roles were measured."""

from attncourse.checking import CheckResult, Choice, exercise
from attncourse.checking.functions import check_choice, check_choices


@exercise(
    page=Choice(
        {
            f"{layer}.{head}": f"layer {layer}, head {head}"
            for layer in (1, 2)
            for head in range(1, 5)
        }
    )
)
def induction_head(answer: object) -> CheckResult:
    """Check which of eight maps is an induction head: "1.1" to "2.4", layer and head from 1."""
    praise = "It looks at what followed the same symbol last time, at whatever distance."
    return check_choice(answer, "2.2", induction_head, praise)


@exercise(
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
    )
)
def sweep_sentence(answer: object) -> CheckResult:
    """Check which sentence about a sweep survives its error bars."""
    praise = (
        "It says what was varied, in how many seeds it was seen, and where nothing could be seen."
    )
    return check_choice(answer, "seen", sweep_sentence, praise)


TITLES = {
    3: "Head 3: pronouns and whom they mean",
    5: "Head 5: verbs and their objects",
    7: "Head 7: the neighboring word",
    9: "Head 9: words of similar meaning",
    11: "Head 11: punctuation and separators",
}
CHOICES = {
    "measured": "such heads were measured",
    "rest": "such looks were measured, and are better read as doing nothing",
    "none": "we know of no source",
}
REPAIRED = {3: "measured", 5: "measured", 7: "measured", 9: "none", 11: "rest"}


@exercise(page=Choice(CHOICES, each=TITLES))
def role_table(answer: object) -> CheckResult:
    """Check a verdict on each row: {3: ..., 5: ..., 7: ..., 9: ..., 11: ...}.

    Each is one of "measured", "rest" and "none".
    """
    praise = (
        "And every row still lacks what makes it a claim: a model, a layer, a score, a baseline."
    )
    return check_choices(answer, REPAIRED, role_table, praise=praise)
