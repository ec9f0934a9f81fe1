"""One small mistake in attnlib's own attention is seen by a diagnosis, wherever it stands.

These are some of all kinds; `benchmarks/mutations.py` asks all of them.
"""

import pytest
from tools.mutants import build, mutations, seen

from attnlib import MultiHeadAttention

pytestmark = pytest.mark.thorough

CHOSEN = {
    "masks": (
        "parts.append(_fit_key_mask(key_mask, scores_shape)) -> parts",
        "triangle(T_q, past, device) -> T_q",
        "past + T -> past - T",
        "allowed | fully_masked -> allowed & fully_masked",
        "causal and nothing_else -> causal or nothing_else",
    ),
    "functional": (
        "heads.masked_fill(fully_masked, 0.0) -> heads",
        "(gradient * weights).sum(-1, keepdim=True) -> (gradient * weights).sum(-1)",
        "1 / math.sqrt(q.shape[-1]) -> 1 // math.sqrt(q.shape[-1])",
        "_unstack_groups(_stack_groups(x, h_kv) @ y, x.shape[1]) -> _stack_groups(x, h_kv) @ y",
    ),
    "attention": (
        "self.W_o(merge(heads)) -> merge(heads)",
        "key if value is None else value -> key if True else value",
        "not dropout -> dropout",
        "cache.keep(self, *remembered) -> cache",
        "self.dropout if self.training else 0.0 -> self.dropout if True else 0.0",
    ),
}


def find(file, change):
    return next(m for m in mutations() if (m.path.stem, m.change) == (file, change))


@pytest.mark.parametrize(
    ("file", "change"), [(file, change) for file, changes in CHOSEN.items() for change in changes]
)
def test_a_mutant_is_seen(file, change):
    assert seen(build(find(file, change))) == "wrong"


def test_attnlib_is_taken_for_what_it_is():
    assert seen(MultiHeadAttention) == ""


@pytest.mark.parametrize(
    ("file", "change"),
    [("masks", "mask.dim() == 4 -> mask.dim() != 4"), ("attention", "0.0 -> 1.0")],
)
def test_what_only_raises_an_error_that_others_raise_too_is_told(file, change):
    assert seen(build(find(file, change))) == "another"
