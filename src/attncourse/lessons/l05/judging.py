"""What a map of even weights means, what a stack lacks, and which two stacks to compare."""

from numbers import Integral
from typing import Any

from attncourse.checking import CheckResult, Choice, Choices, Mistake, exercise, read_mistakes
from attncourse.checking.functions import check_choice, check_choices, correct, not_yet
from attncourse.checking.numbers import as_list

VARIANTS = {  # name -> (whether it has a skip, where its norm sits)
    "neither": (False, None), "norm only": (False, "post"), "residual only": (True, None),
    "post-norm": (True, "post"), "pre-norm": (True, "pre"),
}  # fmt: skip
DEPTHS = (2, 6, 12, 24, 48)
# Two stacks differ in the skip alone. Up to this depth their cosines can be told apart, by where
# the norms sit; deeper, both are 1, or nearly.
DEEPEST = {None: 12, "post": 6}
COSINE, SIZE = "cosine between tokens", "root mean square of the output"
FIRST, LAST = "gradient norm, first block", "gradient norm, last matrix"
FEWEST_SEEDS = 3

SEEDS = (1, 2, 3, 10)  # to choose from on the page

DESIGN = {"compare": ("norm only", "post-norm"), "depth": 6, "measure": COSINE, "seeds": 3}

_HAS_NORM, _PLACE, _FINAL = "whether there is a norm", "where the norms sit", "the final norm"


def _differences(one: str, other: str) -> list[str]:
    """Return in what the stacks of two variants differ."""
    (skip, norm), (other_skip, other_norm) = VARIANTS[one], VARIANTS[other]
    differ = {
        "the skip": skip != other_skip,
        _HAS_NORM: (norm is None) != (other_norm is None),
        _PLACE: None not in (norm, other_norm) and norm != other_norm,
        _FINAL: (norm == "pre") != (other_norm == "pre"),
    }
    return [name for name, differs in differ.items() if differs]


def _wrong_pair(one: str, other: str) -> str:
    """Return why two stacks can't tell what the skip does, or nothing."""
    differences = _differences(one, other)
    if differences in ([], ["the skip"]):
        return ""
    *first, last = differences
    if "the skip" in differences:
        return (
            f"These two stacks differ in more than one thing: {', '.join(first)} and {last}. "
            "Whatever you measure, you won't know which of them did it."
        )
    have = "both have a skip" if VARIANTS[one][0] else "neither has a skip"
    return (
        f"These two differ in {' and '.join(differences)}; {have}. It is the skip that should "
        "differ."
    )


_WRONG_PAIRS = (
    ("norm only", "pre-norm"), ("neither", "post-norm"), ("residual only", "post-norm"),
    ("neither", "norm only"),
)  # fmt: skip


@exercise(
    mistakes=(
        *(Mistake(DESIGN | {"compare": pair}, _wrong_pair(*pair)) for pair in _WRONG_PAIRS),
        *read_mistakes("design", globals()),
    ),
    page=Choices(
        {
            "One stack": tuple(VARIANTS),
            "The other": tuple(VARIANTS),
            "Depth": DEPTHS,
            "Measure": (FIRST, SIZE, COSINE, LAST),
            "Seeds": SEEDS,
        },
        answer=lambda one, other, *rest: dict(zip(DESIGN, ((one, other), *rest), strict=True)),
    ),
)
def design(answer: Any) -> CheckResult:
    """Check an experiment on what a skip does: {"compare", "depth", "measure", "seeds"}.

    compare: two variants, in any order; depth: one of 2, 6, 12, 24, 48; measure: the title of a
    panel; seeds: how many.
    """
    if complaint := _unfinished(answer):
        return not_yet(complaint)
    one, other = answer["compare"]
    if hint := _wrong_pair(one, other):
        return not_yet(hint)
    made = {
        "same_twice": one == other,
        "first_gradient": answer["measure"] == FIRST,
        "last_gradient": answer["measure"] == LAST,
        "size": answer["measure"] == SIZE,
        "too_deep": answer["depth"] > max(DEEPEST.values()),
        "upper_end": one != other and answer["depth"] > DEEPEST[VARIANTS[one][1]],
        "too_few_seeds": answer["seeds"] < FEWEST_SEEDS,
    }
    for name, applies in made.items():
        if applies:
            return not_yet(design.hints[name])
    return correct("One thing differs, and it is measured where it can be seen.")


def _unfinished(answer: Any) -> str:
    """Return what keeps an answer from being a design; nothing if it is one."""
    if not isinstance(answer, dict) or set(answer) != set(DESIGN):
        return f"A dictionary with the keys {', '.join(map(repr, DESIGN))} is wanted."
    pair = as_list(answer["compare"])
    if len(pair) != 2 or not all(isinstance(name, str) and name in VARIANTS for name in pair):
        return f'"compare" wants two of {", ".join(map(repr, VARIANTS))}.'
    if not isinstance(answer["depth"], Integral) or answer["depth"] not in DEPTHS:
        return f'"depth" wants one of {", ".join(map(str, DEPTHS))}.'
    measure = answer["measure"]
    if not isinstance(measure, str) or measure not in (COSINE, SIZE, FIRST, LAST):
        return f'"measure" wants the title of a panel: {FIRST!r}, {SIZE!r}, {COSINE!r} or {LAST!r}.'
    return "" if isinstance(answer["seeds"], Integral) else '"seeds" wants a number: how many.'


DIAGNOSIS = {"A": "residual", "B": "norm", "C": "both"}
LOG_CHOICES = {"residual": "the residual", "norm": "the norm", "both": "both"}


@exercise(page=Choice(LOG_CHOICES, each={log: f"Log {log} lacks" for log in DIAGNOSIS}))
def diagnosis(answer: object) -> CheckResult:
    """Check which part each log's stack lacks: {"A": ..., "B": ..., "C": ...}."""
    praise = "Loss, gradient and token cosine together tell the three apart."
    return check_choices(answer, DIAGNOSIS, diagnosis, praise=praise)


MAP_CHOICES = ("gradient norm", "root mean square", "row sums", "token cosine")


@exercise(page=Choice(MAP_CHOICES))
def even_map(answer: object) -> CheckResult:
    """Check which measurement tells equal tokens from a head whose queries are zero."""
    praise = "It is 1 where the tokens have become equal, and below 1 where a head is idle."
    return check_choice(answer, "token cosine", even_map, praise)
