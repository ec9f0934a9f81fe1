"""Bugs that hide from careless questions are found, whatever formula, path or size hides them."""

import math

import pytest
import torch
from tools.broken_attentions import (
    BROKEN,
    AlwaysCausal,
    Limited,
    Plain,
    but,
    filled_with,
    scaled_by,
)
from tools.diagnoses import diagnoses
from tools.forgetful_attentions import AT_AN_EDGE, PARTLY

from attndoctor import diagnose
from attndoctor.call import RandomInputs
from attndoctor.examine import examine
from attndoctor.museum import named
from attndoctor.options import DiagnoseOptions
from attndoctor.probes import PROBES
from attndoctor.questions import (
    ANYWHERE,
    AS_MANY_TOKENS,
    MORE_KEYS,
    MORE_QUERIES,
    ON_THE_RIGHT,
    ONE_QUERY,
    ONE_SAMPLE,
    THIRTEEN_SAMPLES,
    limits_in,
)
from attnlib import MultiHeadAttention

pytestmark = pytest.mark.thorough

# What somebody may divide scores by instead of the root of d_k.
FORMULAS = (
    "d_k ** 1 / 2", "round(sqrt(d_k))", "log2(d_k)", "h", "sqrt(h)", "sqrt(B)", "sqrt(T)",
    "sqrt(T + 1)", "sqrt(B * h)", "sqrt(B * T)", "sqrt(d / T)", "h + 1", "sqrt(10)", "sqrt(14)",
)  # fmt: skip


def test_no_formula_of_the_sizes_passes_for_the_root_of_d_k():
    asked = [probe for probe in PROBES if probe.name in ("self-attention", "other sizes")]
    for formula in FORMULAS:
        candidate = scaled_by(eval(f"lambda d, h, d_k, B, T: {formula}", vars(math).copy()))
        tested = examine(candidate, DiagnoseOptions())
        assert not all(tested.right(probe) for probe in asked), formula


@pytest.mark.parametrize("probe", PARTLY | AT_AN_EDGE)
def test_each_situation_has_its_question(probe):
    (asked,) = (one for one in PROBES if one.name == probe)
    assert bool(asked.edge) == (probe in AT_AN_EDGE)
    for candidate in (PARTLY | AT_AN_EDGE)[probe]:
        assert not examine(candidate, DiagnoseOptions()).right(asked)


test_what_others_miss_is_found = diagnoses(
    {name: (one, {}, "broken", *facts) for name, (one, *facts) in BROKEN.items()}
    | {
        probe: (PARTLY[probe][0], {}, "broken", "no exhibit", f"first: {probe}", *facts)
        for probe, *facts in (
            ("a second call", "report: keeps something"),
            ("limits on few and many", "(a mask, on one sample)", "dropped"),
            ("masks for samples and others", "without causal=True"),
            ("gradients with a limit", "(a mask, on one query of another sequence)", "not dropped"),
            ("limits in training with dropout", "[B, T, T]"),
        )
    }
    | {
        "weights": (*AT_AN_EDGE["gradients of the weights"], {}, "at the edges",
            "first: gradients of the weights", "gradients of the weights: edge"),
    }
)  # fmt: skip

# --- what is told of them ------------------------------------------------------------------------


class WarmsUp(Plain):
    steps = 0

    def scores(self, q, k):
        self.steps += self.training
        return super().scores(q, k) * (min(1.0, self.steps / 1000) if self.training else 1.0)


class Everywhere(Limited):
    """Not between two sequences."""

    def forward(self, query, *, mask=None, key_mask=None, causal=False):
        return super().forward(query, mask=mask, key_mask=key_mask, causal=causal)


FILLED = but(Everywhere, weigh=filled_with(-torch.inf))


class TriangleNotKept(Plain):
    """Its masked_fill returns what nobody keeps."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.register_buffer("mask", torch.ones(99, 99).triu(1))

    def forward(self, x):
        return self.attend(x)[0]

    def weigh(self, scores, allowed):
        T = scores.shape[-1]
        scores.masked_fill(self.mask[:T, :T].bool(), float("-inf"))
        return scores.softmax(-1)


test_what_is_told_of_a_bug = diagnoses({
    "warms up": (WarmsUp, {}, "broken", "train()"),
    "causal, filled with -1e4": (but(AlwaysCausal, weigh=filled_with(-1e4)), {}, "healthy"),
    "filled with -1e4": (but(Everywhere, weigh=filled_with(-1e4)), {}, "at the edges",
        "not fails: a forbidden key that shouts"),
    "one head steeper": (but(Plain, scores=lambda self, q, k: Plain.scores(
        self, torch.cat([q[:, :1] * 1.05, q[:, 1:]], 1), k),
        forward=lambda self, x: self.attend(x)[0]), {}, "broken",
        "not report: rounded", "report: heads", "head 0"),
    "masks of four axes": (but(Plain, forward=lambda self, x, mask=None:
        self.attend(x, allowed=mask)), {}, "at the edges", "conventions: four axes"),
    "NaN rows": (FILLED, {}, "at the edges", named("NaN rows").hint,
        f"not {named('NaN rows').cause}"),
    "a triangle lost": (TriangleNotKept, {}, "meant", "report: not causal", 'causal="always"'),
    "a triangle that isn't meant": (TriangleNotKept, {"causal": "when asked"}, "healthy",
        "taken: not causal"),
})  # fmt: skip

# --- what is asked -------------------------------------------------------------------------------


def test_the_number_of_runs_stays_small():
    """A diagnosis that finds nothing is the longest search; each guess is one run or two."""
    runs = 0

    class Counted(Plain):
        def mix(self, weights, v):
            nonlocal runs
            runs += 1
            return super().mix(weights, v) + 1

    diagnose(Counted)
    assert runs < 100


SITUATIONS = (
    ON_THE_RIGHT, ANYWHERE, ONE_SAMPLE, THIRTEEN_SAMPLES, ONE_QUERY, AS_MANY_TOKENS, MORE_KEYS,
    MORE_QUERIES,
)  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
def test_every_real_query_has_a_key_left_and_no_limit_is_idle(causal):
    candidate = AlwaysCausal if causal else MultiHeadAttention
    adapter = examine(candidate, DiagnoseOptions()).first
    for situation in SITUATIONS:
        for seed in range(1, 40):
            limits = limits_in(situation, RandomInputs(adapter, seed))
            real = limits["key_mask"]
            assert not real.all()
            for mask in (limits["mask"], limits["masks"]):
                allowed = mask & real[:, None]
                if situation.queries is None:
                    triangle = torch.ones_like(mask).tril()
                    assert (allowed & triangle).any(-1)[real].all()
                assert allowed.any(-1)[real if situation.queries is None else ...].all()
                assert not (mask | ~real[:, None]).all()
