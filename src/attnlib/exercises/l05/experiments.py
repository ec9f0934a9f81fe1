"""Two stacks to compare: which differ in one thing, and where can the difference be seen?"""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._numbers import as_list
from attnlib.exercises._on_page import Choices

VARIANTS = {  # name -> (whether it has a skip, where its norm sits)
    "neither": (False, None), "norm only": (False, "post"), "residual only": (True, None),
    "post-norm": (True, "post"), "pre-norm": (True, "pre"),
}  # fmt: skip
DEPTHS = (2, 6, 12, 24, 48)
DEEPEST = 12  # in deeper stacks both of each pair have collapsed
COSINE, SIZE = "cosine between tokens", "root mean square of the output"
FIRST, LAST = "gradient norm, first block", "gradient norm, last matrix"
FEWEST_SEEDS = 3

SEEDS = (1, 2, 3, 10)  # to choose from on the page

DESIGN = {"compare": ("norm only", "post-norm"), "depth": 6, "measure": COSINE, "seeds": 3}

DESIGN_MISTAKES = (
    Mistake(
        "two changes",
        DESIGN | {"compare": ("norm only", "pre-norm")},
        "These two stacks differ in the skip and in the norm. Whatever you measure, you won't know "
        "which of the two did it.",
    ),
    Mistake(
        "the norm changed",
        DESIGN | {"compare": ("residual only", "post-norm")},
        "These two differ in the norm; both have a skip. It is the skip that should differ.",
    ),
    Mistake(
        "the same twice",
        DESIGN | {"compare": ("post-norm", "post-norm")},
        "That is one stack, named twice. What does it differ from?",
    ),
    Mistake(
        "a gradient",
        DESIGN | {"measure": FIRST},
        "A gradient can be healthy while all tokens are alike. The claim speaks of tokens that are "
        "kept apart.",
    ),
    Mistake(
        "the last gradient",
        DESIGN | {"measure": LAST},
        "The last matrix's gradient tells how the end of the stack learns. The claim speaks of "
        "tokens that are kept apart.",
    ),
    Mistake(
        "a size",
        DESIGN | {"measure": SIZE},
        "Sizes don't tell whether tokens are alike: behind a norm they are 1 in any case.",
    ),
    Mistake(
        "too deep",
        DESIGN | {"depth": 24},
        "So deep, both stacks have collapsed: the cosine is at its upper end and can't tell them "
        "apart. Look for a depth at which one of them still lives.",
    ),
    Mistake(
        "too few seeds",
        DESIGN | {"seeds": 1},
        "From so few seeds you can't see whether the difference is larger than luck. This page "
        "takes three.",
    ),
)


def _design(one: str, other: str, depth: int, measure: str, seeds: int) -> dict[str, Any]:
    return {"compare": (one, other), "depth": depth, "measure": measure, "seeds": seeds}


@exercise(
    mistakes=DESIGN_MISTAKES,
    page=Choices(
        {
            "One stack": tuple(VARIANTS),
            "The other": tuple(VARIANTS),
            "Depth": DEPTHS,
            "Measure": (FIRST, SIZE, COSINE, LAST),
            "Seeds": SEEDS,
        },
        answer=_design,
    ),
)
def design(answer: Any) -> Verdict:
    """Check an experiment on what a skip does: {"compare", "depth", "measure", "seeds"}.

    compare: two variants, in any order; depth: one of 2, 6, 12, 24, 48; measure: the title of a
    panel; seeds: how many.
    """
    if complaint := _unfinished(answer):
        return not_yet(complaint)
    (skip, norm), (other_skip, other_norm) = (VARIANTS[name] for name in answer["compare"])
    made = {
        "the same twice": skip == other_skip and norm == other_norm,
        "two changes": skip != other_skip and norm != other_norm,
        "the norm changed": skip == other_skip,
        "a gradient": answer["measure"] == FIRST,
        "the last gradient": answer["measure"] == LAST,
        "a size": answer["measure"] == SIZE,
        "too deep": answer["depth"] > DEEPEST,
        "too few seeds": answer["seeds"] < FEWEST_SEEDS,
    }
    hints = {mistake.name: mistake.hint for mistake in DESIGN_MISTAKES}
    for name, applies in made.items():
        if applies:
            return not_yet(hints[name])
    return correct("One thing differs, and it is measured where it can be seen.")


def _unfinished(answer: Any) -> str:
    """Say what keeps an answer from being a design; nothing if it is one."""
    if not isinstance(answer, dict) or set(answer) != set(DESIGN):
        return f"A dictionary with the keys {', '.join(map(repr, DESIGN))} is wanted."
    pair = as_list(answer["compare"])
    if len(pair) != 2 or not all(map(_is_variant, pair)):
        return f'"compare" wants two of {", ".join(map(repr, VARIANTS))}.'
    if not isinstance(answer["depth"], int) or answer["depth"] not in DEPTHS:
        return f'"depth" wants one of {", ".join(map(str, DEPTHS))}.'
    measure = answer["measure"]
    if not isinstance(measure, str) or measure not in (COSINE, SIZE, FIRST, LAST):
        return f'"measure" wants the title of a panel: {FIRST!r}, {SIZE!r}, {COSINE!r} or {LAST!r}.'
    return "" if isinstance(answer["seeds"], int) else '"seeds" wants a number: how many.'


def _is_variant(name: Any) -> bool:
    return isinstance(name, str) and name in VARIANTS
