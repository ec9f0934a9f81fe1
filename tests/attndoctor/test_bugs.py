"""Bugs that hide from careless questions are found, whatever formula, path or size hides them."""

import math

import pytest
import torch
from tools import broken_attentions as broken
from tools import forgetful_attentions as forgetful
from tools.broken_attentions import AlwaysCausal, Drops, Limited, Plain, but, filled_with, scaled_by
from tools.diagnoses import ask, diagnosed, diagnoses, verdict
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

MISSED = broken.MISSED
BROKEN = MISSED | broken.FOUND_BEFORE

# What somebody may divide scores by instead of the root of d_k.
FORMULAS = {
    name: eval(f"lambda d, h, d_k, B, T: {name}", vars(math).copy())
    for name in (
        "d_k ** 1 / 2", "d_k ** 1 // 2", "d_k // 2", "int(sqrt(d_k))", "round(sqrt(d_k))",
        "sqrt(d_k - 1)", "sqrt(d_k + 1)", "sqrt(d_k // 2)", "sqrt(2 * d_k)", "log2(d_k)",
        "log(d_k)", "d_k", "d", "h", "B", "T", "sqrt(d)", "sqrt(h)", "sqrt(B)", "sqrt(T)",
        "sqrt(T - 1)", "sqrt(T + 1)", "sqrt(B * h)", "sqrt(B * T)", "sqrt(h * T)", "sqrt(h + 1)",
        "sqrt(d // 2)", "sqrt(d - 1)", "sqrt(d / T)", "sqrt(T + h)", "sqrt(B + T)", "d_k ** 0.25",
        "h + 1", "h - 1", "T - 1", "B + 1", "1", "2", "3", "4", "8", "sqrt(8)", "sqrt(10)",
        "sqrt(12)", "sqrt(14)", "sqrt(16)", "sqrt(64)", "1 / sqrt(d_k)", "sqrt(d) / 2",
    )
}  # fmt: skip

RIGHT = Plain, Limited, Drops, forgetful.RIGHT
KEEPS, VARIES = "report: keeps something", "report: varies"
# A scale of another size that is the same for every d_k, and what is for inference alone.
MEANT = "2", "WithoutGradients"
SHOUTS = "a forbidden key that shouts: often"
OFF = "exhibit: a mask switches causality off"
TOLD = {  # of BROKEN
    "KeepsTheLastKeys": (VARIES,),
    "MaskOrCausal": (f"not {KEEPS}",),
    "RandomInEvaluation": (f"not {KEEPS}", VARIES,),
    "MadeAnew": (VARIES,),
    "ReturnsFloat64": ("first: dtype", f"not {KEEPS}", "float32",),
    "TrainsUnscaled": ("only: no scale", "report: other path", "train()",),
    "FusedPathTakesAnyMaskForCausal": ("only: any mask taken for causal", "report: other path",),
    "AlwaysCausalAndRenormalizes": ("only: mask after the softmax, renormalized",),
    "ExponentiatesAsItIs": ("first: a very large score", "a very large score: often",),
    "MultipliesScoresByTheMask": (SHOUTS,),
    "FillsWithMinus100": (SHOUTS,),
    "AlwaysCausalFilledWithMinus20": ("report: leaking", "taken: always causal",),
    "MaskOrPadding": ("without padding", "beside a mask", f"not {OFF}",),
    "PaddingOrCausal": ("only: a mask switches causality off",),
}  # fmt: skip
test_what_others_miss_is_found = diagnoses(
    {one.__name__: (one, {}, "healthy") for one in RIGHT}
    | {name: (one, {}, "meant" if name in MEANT else "broken", *TOLD.get(name, ()))
       for name, one in BROKEN.items()}
    | {
        f"{probe}: {name}": (one, {}, "broken", "no exhibit", f"first: {probe}", *facts)
        for probe, some in forgetful.PARTLY.items()
        for name, (one, *facts) in some.items()
    }
)  # fmt: skip


@pytest.mark.parametrize("probe", forgetful.AT_AN_EDGE)
def test_what_matters_to_few_is_told_and_passes(probe):
    diagnosis = ask(forgetful.AT_AN_EDGE[probe], "at the edges", f"{probe}: edge")
    assert diagnosis.failed == diagnosis.edges == (probe,)


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_formula_of_the_sizes_passes_for_the_root_of_d_k(formula):
    answers = Answers.of(examine(scaled_by(FORMULAS[formula]), DiagnoseOptions()))
    assert answers.wrong  # which diagnose() would then explain, three times as long


def test_every_probe_is_the_first_to_find_something():
    found = {exhibit.killed_by for exhibit in EXHIBITS}
    found |= forgetful.PARTLY.keys() | forgetful.AT_AN_EDGE.keys()
    found |= {diagnosed(candidate).failed[0] for candidate in (*BROKEN.values(), SharedDropout)}
    assert {probe.name for probe in PROBES} - found == set()


# --- what is told of them ------------------------------------------------------------------------


def causal_in_evaluation(self, x):
    return Limited.forward(self, x, causal=not self.training)[0]


def unscaled_in_training(self, q, k):
    return Plain.scores(self, q, k) * (self.d_k**0.5 if self.training else 1.0)


class WarmsUp(Plain):
    steps = 0

    def scores(self, q, k):
        self.steps += self.training
        return super().scores(q, k) * (min(1.0, self.steps / 1000) if self.training else 1.0)


class Everywhere(Limited):
    """Not between two sequences."""

    def forward(self, query, *, mask=None, key_mask=None, causal=False):
        return super().forward(query, mask=mask, key_mask=key_mask, causal=causal)


def without_diagonal(self, scores, allowed):
    return scores.masked_fill(~allowed.tril(-1), -1e9).softmax(-1)


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


def steeper_in_evaluation(self, q, k):
    return Plain.scores(self, q, k) * (1.0 if self.training else 1.02)


def without_last_head(self, weights, v):
    return Plain.mix(self, weights, torch.cat([v[:, :-1], 0 * v[:, -1:]], 1))


def output_alone(self, x):
    return self.attend(x)[0]


def bounded(fill):
    candidate = but(Everywhere, weigh=filled_with(fill))
    return candidate, {}, "at the edges", "not fails: a forbidden key that shouts"


LOST = "report: not causal", 'causal="always"'
SLIGHT = "not report: rounded", "report: heads"
test_what_is_told_of_a_bug = diagnoses({
    "unscaled in training, with dropout": (but(Drops, scores=unscaled_in_training), {},
        "broken", "first: self-attention", "train()"),
    "warms up": (WarmsUp, {}, "broken", "train()"),
    "causal in evaluation": (but(Limited, forward=causal_in_evaluation), {}, "",
        "report: other path", "train()"),
    "filled with -10": (but(Everywhere, weigh=filled_with(-10.0)), {}, "broken", "report: leaking"),
    "causal, filled with -1e4": (but(AlwaysCausal, weigh=filled_with(-1e4)), {}, "healthy"),
    "no diagonal, filled with -1e9": (but(AlwaysCausal, weigh=without_diagonal), {}, "broken",
        "exhibit: causal mask hides the token itself", "exhibit: a finite minimum"),
    "filled with -1e4": bounded(-1e4),
    "filled with -1e9": bounded(-1e9),
    "filled with the least": bounded(torch.finfo(torch.float32).min),
    "padding dropped": (but(Limited, forward=lambda self, query, *, key_mask=None:
        Limited.forward(self, query)), {}, "", "not exhibit: padding on the wrong axis"),
    "padding of each": (OfEach, {}, "healthy", "skipped: padding between two sequences"),
    "one head steeper": (but(Plain, scores=first_head_steeper, forward=output_alone), {}, "broken",
        *SLIGHT, "head 0"),
    "a head lost": (but(Plain, mix=without_last_head, forward=output_alone), {}, "broken", *SLIGHT,
        "head 2"),
    "steeper in evaluation": (but(Plain, scores=steeper_in_evaluation), {}, "broken",
        "not report: rounded", "report: other path", "0.3225"),
    "NaN rows": (FILLED, {}, "at the edges", named("NaN rows").hint,
        f"not {named('NaN rows').cause}"),
    "a triangle lost": (TriangleNotKept, {}, "meant", *LOST),
    "a triangle lost, built": (TriangleNotKept(48, 4), {}, "meant", *LOST),
    "a triangle that isn't meant": (TriangleNotKept, {"causal": "when asked"}, "healthy",
        "taken: not causal"),
    "a triangle that is": (TriangleNotKept, {"causal": "always"}, "broken"),
})  # fmt: skip


def test_edges_that_count_are_told_in_full():
    diagnosis = diagnosed(FILLED, edges=True)
    assert not diagnosis and verdict(diagnosis) == "at the edges"
    assert all(words in diagnosis.message for words in (named("NaN rows").hint, "NaN rows"))
    assert named("NaN rows").cause in diagnosis.message


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
    candidate = MISSED["AlwaysCausalFilled"] if causal else MultiHeadAttention
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


@pytest.mark.parametrize("width", [8, 64, 160])
def test_gradients_are_asked_where_no_query_is_left_without_a_key(width):
    """torch's own layer gives NaN there, at whatever width; and so the draws differ."""
    ask(torch.nn.MultiheadAttention(width, 4, batch_first=True), "at the edges")
