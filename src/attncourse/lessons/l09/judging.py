"""Which keys a head can look at most, and one more model that tells number from width."""

from typing import Any

from attncourse.checking import CheckResult, Choice, Choices, Mistake, exercise, read_mistakes
from attncourse.checking.functions import check_choices, correct, not_yet, what_misfits

# Two models of the row (A) of Vaswani et al. 2017, table 3: (h, d_k), and its BLEU.
FEWER, MORE = (16, 32), (32, 16)
BLEU = {FEWER: 25.8, MORE: 25.4}
SIZES = (8, 16, 32, 64)  # numbers of heads, and widths, to choose from
SCORES = (25.4, 25.6, 25.8)
UNEQUAL = {
    "nothing": "nothing",
    "maps": "the number of maps",
    "parameters": "the parameters of the attention",
}

RUN = {"heads": 32, "d_k": 32, "bleu": 25.8, "unequal": "parameters"}


def _model(heads: int, d_k: int) -> str:
    return f"{heads} heads of {d_k}"


def _several_changes(model: tuple[int, int]) -> str:
    """Return from which of the row's models another one differs in both things, or ""."""
    both = [
        _model(*old)
        for old in (FEWER, MORE)
        if all(new != had for new, had in zip(model, old, strict=True))
    ]
    if not both:
        return ""
    return (
        f"{_model(*model)} differ from {' and from '.join(both)} in number *and* width. Whatever "
        "comes out, that comparison won't tell which of the two did it."
    )


@exercise(
    mistakes=(
        Mistake(RUN | {"heads": 8}, _several_changes((8, 32))),
        *read_mistakes("number_or_width", globals()),
    ),
    page=Choices(
        {
            "Heads": SIZES,
            "Width of a head": SIZES,
            "Its BLEU, if the width alone did it": SCORES,
            "What else differs from the row's model with as many heads": UNEQUAL,
        },
        answer=lambda *said: dict(zip(RUN, said, strict=True)),
    ),
)
def number_or_width(answer: Any) -> CheckResult:
    """Check a model that tells number from width: {"heads", "d_k", "bleu", "unequal"}.

    bleu: what it would score if the width alone mattered; unequal: "nothing", "maps", "parameters".
    """
    offered = {"heads": SIZES, "d_k": SIZES, "bleu": SCORES, "unequal": UNEQUAL}
    if misfit := what_misfits(answer, offered):
        return not_yet(misfit)
    heads, d_k = model = answer["heads"], answer["d_k"]
    if model in BLEU:
        return not_yet(number_or_width.hints["in_the_row"])
    if heads * d_k == FEWER[0] * FEWER[1]:
        return not_yet(number_or_width.hints["along_the_row"])
    if several := _several_changes(model):
        return not_yet(several)
    [as_wide] = [bleu for (_, width), bleu in BLEU.items() if width == d_k]
    if answer["bleu"] != as_wide:
        return not_yet(
            number_or_width.hints["number_did_it" if answer["bleu"] in BLEU.values() else "halfway"]
        )
    if answer["unequal"] != "parameters":
        return not_yet(
            number_or_width.hints["maps" if answer["unequal"] == "maps" else "nothing_unequal"]
        )
    return correct(
        "It shares its number with one model of the row and its width with the other. It can't "
        "keep the parameters equal as well: that takes a second experiment."
    )


PLANE = {
    "a": (2.0, 0.0), "b": (0.0, 2.0), "c": (-2.0, -1.0),
    "d": (0.4, 0.5), "e": (-1.0, 0.3), "f": (0.6, -0.6),
}  # fmt: skip
REACHED = {"a": "yes", "b": "yes", "c": "yes", "d": "no", "e": "no", "f": "yes"}


def _said(reached: str) -> dict[str, str]:
    return {key: "yes" if key in reached else "no" for key in PLANE}


WRONG_REACH = {
    "a": "a lies furthest out to the right: ask with (1, 0).",
    "b": "b lies furthest out upward: ask with (0, 1).",
    "c": "c lies furthest out to the left: ask with (-1, 0).",
    "d": "d lies between the others. Wherever a query points, another key lies further out.",
    "e": "e lies just inside the line from b to c. For any query, b or c has a larger product.",
    "f": "f is short, but it lies furthest out in a direction of its own: ask with (0.3, -1).",
}


@exercise(
    page=Choice(
        {"yes": "yes", "no": "no"},
        each={key: f"{key} ({x:g}, {y:g})" for key, (x, y) in PLANE.items()},
    )
)
def reachable(answer: object) -> CheckResult:
    """Check which of six keys some query can look at most: {"a": "yes", ...}."""
    praise = "They are the corners of the keys' hull. More dimensions have more corners."
    return check_choices(answer, REACHED, reachable, wrong=WRONG_REACH, praise=praise)
