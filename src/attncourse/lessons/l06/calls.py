"""Which calls of PyTorch's two attentions let a token see a later one."""

from collections.abc import Collection
from numbers import Real
from typing import Any

from attncourse.checking import CheckResult, Lines, Mistake, correct, exercise, not_yet
from attncourse.checking.numbers import as_list

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

MISTAKES = tuple(Mistake([2, 6, line], hint) for line, hint in _SAFE.items())


def _missing(lines: Collection[int]) -> str:
    asked = min(LEAKING.keys() - set(lines))
    return (
        f"{len(lines)} of the three so far, and no line too many. Of another line ask: "
        f"{LEAKING[asked]}"
    )


@exercise(mistakes=MISTAKES, page=Lines(CALLS, pick=len(LEAKING)))
def leaking_calls(answer: Any) -> CheckResult:
    """Check the numbers of the lines of `CALLS` that let a token see a later one, from 1."""
    listed = as_list(answer)
    lines = set(listed) if all(isinstance(line, Real) for line in listed) else set()
    if not lines or not lines <= LEAKING.keys() | _SAFE.keys():
        return not_yet(f"A list of line numbers from 1 to {len(CALLS.splitlines())} was wanted.")
    safe = sorted(lines & _SAFE.keys())
    if safe:
        return not_yet(_SAFE[safe[0]])
    if lines == LEAKING.keys():
        return correct("Three calls without an error, and three models that read the answer.")
    return not_yet(_missing(lines))
