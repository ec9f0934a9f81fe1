"""Bugs that hide from careless questions are found, whatever formula, path or size hides them."""

import math

import pytest
import torch
from tools import forgetful_attentions as forgetful
from tools.broken_attentions import (
    BROKEN,
    AlwaysCausal,
    Limited,
    Plain,
    but,
    filled_with,
    scaled_by,
)
from tools.diagnoses import ask, diagnosed, diagnoses
from tools.uncommon_attentions import SharedDropout

from attndoctor import diagnose
from attndoctor.call import RandomInputs
from attndoctor.examine import examine
from attndoctor.match import Answers
from attndoctor.museum import EXHIBITS, named
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
FORMULAS = {
    name: eval(f"lambda d, h, d_k, B, T: {name}", vars(math).copy())
    for name in (
        "d_k ** 1 / 2", "d_k // 2", "int(sqrt(d_k))", "round(sqrt(d_k))", "log2(d_k)", "d", "h",
        "B", "T", "sqrt(d)", "sqrt(h)", "sqrt(B)", "sqrt(T)", "sqrt(T + 1)", "sqrt(B * h)",
        "sqrt(B * T)", "sqrt(d / T)", "sqrt(d) / 2", "h + 1", "3", "4", "sqrt(10)", "sqrt(14)",
    )
}  # fmt: skip

test_what_others_miss_is_found = diagnoses(
    {"nothing": (forgetful.RIGHT, {}, "healthy")}
    | {name: (one, {}, "broken", *facts) for name, (one, *facts) in BROKEN.items()}
    | {
        f"{probe}: {name}": (one, {}, "broken", "no exhibit", f"first: {probe}", *facts)
        for probe, some in forgetful.PARTLY.items()
        for name, (one, *facts) in some.items() if facts
    }
)  # fmt: skip


@pytest.mark.parametrize(("probe", "name"), [
    (probe, name) for probe, some in forgetful.PARTLY.items() for name in some
])  # fmt: skip
def test_each_situation_has_its_question(probe, name):
    candidate, *_ = forgetful.PARTLY[probe][name]
    (asked,) = (one for one in PROBES if one.name == probe)
    assert not asked.edge and not examine(candidate, DiagnoseOptions()).right(asked)


@pytest.mark.parametrize("probe", forgetful.AT_AN_EDGE)
def test_what_matters_to_few_is_told_and_passes(probe):
    diagnosis = ask(forgetful.AT_AN_EDGE[probe], "at the edges", f"{probe}: edge")
    assert diagnosis.failed == diagnosis.edges == (probe,)


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_formula_of_the_sizes_passes_for_the_root_of_d_k(formula):
    answers = Answers.of(examine(scaled_by(FORMULAS[formula]), DiagnoseOptions()))
    assert answers.wrong  # which diagnose() would then explain, three times as long


def test_every_probe_finds_something():
    found = {exhibit.killed_by for exhibit in EXHIBITS}
    found |= forgetful.PARTLY.keys() | forgetful.AT_AN_EDGE.keys()
    candidates = SharedDropout, *(one for one, *_ in BROKEN.values())
    found |= {diagnosed(candidate).failed[0] for candidate in candidates}
    assert {probe.name for probe in PROBES} - found == set()


# --- what is told of them ------------------------------------------------------------------------


def causal_in_evaluation(self, x):
    return Limited.forward(self, x, causal=not self.training)[0]


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


class OfEach(Plain):
    """Padding of the queries, and of the keys of another sequence."""

    def forward(self, x, context=None, mask=None, encoder_mask=None):
        mask = encoder_mask if context is not None else mask
        return self.attend(x, context, allowed=None if mask is None else mask[:, None, None])


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


def first_head_steeper(self, q, k):
    scores = Plain.scores(self, q, k)
    return torch.cat([scores[:, :1] * 1.05, scores[:, 1:]], 1)


def output_alone(self, x):
    return self.attend(x)[0]


test_what_is_told_of_a_bug = diagnoses({
    "warms up": (WarmsUp, {}, "broken", "train()"),
    "causal in evaluation": (but(Limited, forward=causal_in_evaluation), {}, "",
        "report: other path", "train()"),
    "causal, filled with -1e4": (but(AlwaysCausal, weigh=filled_with(-1e4)), {}, "healthy"),
    "filled with -1e4": (but(Everywhere, weigh=filled_with(-1e4)), {}, "at the edges",
        "not fails: a forbidden key that shouts"),
    "padding of each": (OfEach, {}, "healthy", "skipped: padding between two sequences"),
    "one head steeper": (but(Plain, scores=first_head_steeper, forward=output_alone), {}, "broken",
        "not report: rounded", "report: heads", "head 0"),
    "NaN rows": (FILLED, {}, "at the edges", named("NaN rows").hint,
        f"not {named('NaN rows').cause}"),
    "NaN rows, which count": (FILLED, {"edges": True}, "at the edges", named("NaN rows").hint,
        named("NaN rows").cause),
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


@pytest.mark.parametrize("width", [8, 160])
def test_gradients_are_asked_where_no_query_is_left_without_a_key(width):
    """torch's own layer gives NaN there, at whatever width; and so the draws differ."""
    ask(torch.nn.MultiheadAttention(width, 4, batch_first=True), "at the edges")
