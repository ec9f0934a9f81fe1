"""Which bug drew which map, and which test, which call, which experiment finds a leak."""

from attncourse.checking import CheckResult, Choice, Lines, Mistake, exercise
from attncourse.checking.functions import check_choice, check_choices, check_lines

CALLS = """\
F.scaled_dot_product_attention(q, k, v, attn_mask=may)
F.scaled_dot_product_attention(q, k, v, attn_mask=~may)
F.scaled_dot_product_attention(q, k, v, attn_mask=may.float())
F.scaled_dot_product_attention(q, k, v, attn_mask=minus)
F.scaled_dot_product_attention(q, k, v, is_causal=True)
mha(x, x, x, attn_mask=may)[0]
mha(x, x, x, attn_mask=~may)[0]
mha(x, x, x, attn_mask=minus)[0]"""
LEAKING = {
    2: "who may look where in line 1, and what does ~ do to it?",
    3: "what happens to a mask that isn't boolean?",
    6: "what does True mean to this class?",
}
_SAFE = {
    1: "Line 1 is safe: in this function True means *may look*.",
    4: "Line 4 is safe: a mask of numbers is added to the scores, and minus infinity plus anything "
    "stays minus infinity.",
    5: "Line 5 is safe: the function makes the triangle itself.",
    7: "Line 7 is safe: this class takes True for *may not look*, and ~ turns the mask around.",
    8: "Line 8 is safe: this class adds a mask of numbers too, and minus infinity forbids.",
}


@exercise(
    mistakes=tuple(Mistake([2, 6, line], hint) for line, hint in _SAFE.items()),
    page=Lines(CALLS, pick=len(LEAKING)),
)
def leaking_calls(answer: object) -> CheckResult:
    """Check the numbers of the lines of `CALLS` that let a token see a later one, from 1."""
    praise = "Three calls without an error, and three models that read the answer."
    return check_lines(answer, LEAKING, _SAFE, praise)


BUGS = {
    "off": "a mask switches causality off",
    "ahead": "causal mask peeks one ahead",
    "itself": "causal mask hides the token itself",
    "axis": "padding on the wrong axis",
    "turned": "causal triangle turned around",
    "thrown": "mask thrown away",
}  # the names that the museum has for them
DRAWN = {"A": "axis", "B": "off", "C": "itself", "D": "ahead"}

_WRONG_MAPS = {
    "A": "Map A: its triangle is whole. But two columns have weight that should have none, and "
    "they are those of ...?",
    "B": "Map B: no column of padding has weight. What else should be blank, and isn't?",
    "C": "Map C: compare its diagonal with that of the right map. Which row lost its only look?",
    "D": "Map D: one diagonal has weight that has none in the right map.",
}


@exercise(page=Choice(BUGS, each={letter: f"Map {letter}" for letter in DRAWN}))
def bugs_of_maps(answer: object) -> CheckResult:
    """Check which bug has drawn each of four maps: {"A": "off", ...}."""
    praise = "None of the four raises an error. Two of them read the future, one reads padding."
    return check_choices(answer, DRAWN, bugs_of_maps, wrong=_WRONG_MAPS, praise=praise)


TESTS = {
    "all": "the replacement, the slopes and the cut",
    "both": "the replacement and the cut",
    "slopes": "the slopes alone",
    "none": "none of the three",
}
LAYERS = {
    "rounded": "x + x[-1:].round()",
    "mean": "x + 1e-6 * x.mean(0)",
    "shout": "x + (x[-1:] - 6).relu()",
}
FOUND = {"rounded": "both", "mean": "slopes", "shout": "none"}


@exercise(page=Choice(TESTS, each={name: f"`{code}`" for name, code in LAYERS.items()}))
def tests_that_find(answer: object) -> CheckResult:
    """Check which tests find the leak of each of three layers: {"rounded": "both", ...}."""
    praise = "No test finds all leaks, and one leak escapes all of them with this input."
    return check_choices(answer, FOUND, tests_that_find, praise=praise)


EXPERIMENTS = {
    "maps": "Average the attention maps over 1,000 sentences, and look above the diagonal.",
    "jacobian": "Compute the Jacobian of the whole block, in place of the leak matrix.",
    "parts": "Compute the leak matrix of the norm, of the attention and of the feed-forward "
    "network, each alone.",
    "without": "Train three models, each without one of the parts, and compare the losses.",
    "deeper": "Compute the leak matrix of stacks of 1, 2 and 4 such blocks.",
}


@exercise(page=Choice(EXPERIMENTS))
def telling_experiment(answer: object) -> CheckResult:
    """Check which experiment finds the part of a block that leaks."""
    praise = (
        "Parts that don't leak, joined by skips, make a block that doesn't. The test is the same "
        "for each, and needs no training."
    )
    return check_choice(answer, "parts", telling_experiment, praise)
