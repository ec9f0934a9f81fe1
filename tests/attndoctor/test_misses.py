"""Bugs that hide from careless questions are found, whatever formula, path or size hides them."""

import math
from functools import cache
from itertools import chain

import pytest
import torch
from tools.broken_attentions import AT_AN_EDGE, FOUND_BEFORE, MISSED, Limited, Plain, scaled_by
from tools.forgetful_attentions import AT_AN_EDGE as FORGETFUL_EDGES
from tools.forgetful_attentions import FIRST_TOLD
from tools.uncommon_attentions import SharedDropout

from attndoctor import diagnose
from attndoctor.build import FIRST, SECOND
from attndoctor.examine import examine
from attndoctor.match import Answers
from attndoctor.museum import EXHIBITS
from attndoctor.options import DiagnoseOptions
from attndoctor.probes import PROBES

pytestmark = pytest.mark.thorough

BROKEN = MISSED | FOUND_BEFORE
diagnosed = cache(diagnose)

# What somebody may divide scores by instead of the root of d_k.
FORMULAS = {
    name: eval(f"lambda d, h, d_k, B, T: {name}", vars(math).copy())
    for name in (
        "d_k ** 1 / 2", "d_k ** 1 // 2", "d_k // 2", "d_k / 2", "int(sqrt(d_k))",
        "round(sqrt(d_k))", "sqrt(d_k - 1)", "sqrt(d_k + 1)", "sqrt(d_k // 2)", "sqrt(2 * d_k)",
        "log2(d_k)", "log(d_k)", "d_k", "d", "h", "B", "T", "sqrt(d)", "sqrt(h)", "sqrt(B)",
        "sqrt(T)", "sqrt(T - 1)", "sqrt(T + 1)", "sqrt(B * h)", "sqrt(B * T)", "sqrt(h * T)",
        "sqrt(h + 1)", "sqrt(h - 1)",
        "sqrt(d // 2)", "sqrt(d - 1)", "sqrt(d / T)", "sqrt(T + h)", "sqrt(B + T)", "sqrt(2 * T)",
        "d_k ** (1 / 3)", "d_k ** 0.25", "h + 1", "h - 1", "T - 1", "B + 1", "1", "2", "3", "4",
        "8", "sqrt(8)", "sqrt(10)", "sqrt(12)", "sqrt(14)", "sqrt(16)", "sqrt(64)", "1 / sqrt(d_k)",
        "d ** 0.25", "log2(d)", "sqrt(d) / 2", "sqrt(B * h * T)", "sqrt(d // T)",
    )
}  # fmt: skip


@pytest.mark.parametrize("right", [Plain, Limited])
def test_what_the_broken_ones_are_made_of_is_right(right):
    assert diagnose(right).failed == ()


@pytest.mark.parametrize("name", BROKEN)
def test_what_others_miss_is_found(name):
    diagnosis = diagnosed(BROKEN[name])
    # A scale of another size that is the same for every d_k, and what is for inference alone.
    known_elsewhere = name in ("2", "WithoutGradients")
    heading = "Broken, unless it is meant so." if known_elsewhere else "Broken."
    assert not diagnosis and diagnosis.heading == heading, diagnosis


@pytest.mark.parametrize("probe", AT_AN_EDGE)
def test_what_matters_to_few_is_told_and_passes(probe):
    diagnosis = diagnosed(AT_AN_EDGE[probe])
    assert diagnosis and diagnosis.failed == diagnosis.edges == (probe,)
    assert "It matters only" in diagnosis.message


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_formula_of_the_sizes_passes_for_the_root_of_d_k(formula):
    answers = Answers.of(examine(scaled_by(FORMULAS[formula]), DiagnoseOptions()))
    assert answers.wrong  # which diagnose() would then explain, three times as long


def test_no_two_sizes_of_a_width_agree():
    for sizes in (FIRST, SECOND):
        d_k = sizes.d_model // sizes.num_heads
        for B, T in ((2, 7), (5, 9)):
            assert len({sizes.d_model, sizes.num_heads, d_k, B, T}) == 5


def test_every_probe_is_the_first_to_find_something():
    found = {exhibit.killed_by for exhibit in EXHIBITS}
    broken = [*(BROKEN | AT_AN_EDGE).values(), *chain(*(FIRST_TOLD | FORGETFUL_EDGES).values())]
    found |= {diagnosed(one).failed[0] for one in [*broken, SharedDropout]}
    assert {probe.name for probe in PROBES} - found == set()


def test_what_is_kept_of_earlier_calls_is_told():
    first = diagnosed(MISSED["KeepsTheFirstMask"]).message
    assert "it keeps something of earlier calls" in first
    assert "Asked the same once more" in diagnosed(MISSED["KeepsTheLastKeys"]).message
    for name in ("MaskOrCausal", "RandomInEvaluation", "ReturnsFloat64"):
        assert "earlier calls" not in diagnosed(BROKEN[name]).message


def test_an_output_of_another_dtype_is_told():
    diagnosis = diagnosed(MISSED["ReturnsFloat64"])
    assert diagnosis.failed == ("dtype",)
    assert "its tokens are float32, and its output isn't" in diagnosis.message


def test_a_path_that_differs_is_named_with_its_bug():
    diagnosis = diagnosed(MISSED["TrainsUnscaled"])
    assert [exhibit.name for exhibit in diagnosis.exhibits] == ["no scale"]
    assert "first seen on one sequence in train()" in diagnosis.message


def filled_with(fill):
    class Filled(Limited):
        def forward(self, query, *, mask=None, key_mask=None, causal=False):
            return super().forward(query, mask=mask, key_mask=key_mask, causal=causal)

        def weigh(self, scores, allowed):
            return scores.masked_fill(~allowed, fill).softmax(-1)

    return Filled


@pytest.mark.parametrize("fill", [-1e4, -1e9, torch.finfo(torch.float32).min])
def test_a_number_for_minus_infinity_that_people_use_is_low_enough(fill):
    diagnosis = diagnose(filled_with(fill))
    assert diagnosis and not any("shouts" in probe for probe in diagnosis.failed)
    assert diagnosis.heading == "Healthy, but it differs at the edges."


def test_what_cannot_bridge_scores_far_apart_is_told_why():
    for name in ("ExponentiatesAsItIs", "MultipliesScoresByTheMask", "FillsWithMinus100"):
        diagnosis = diagnosed(MISSED[name])
        assert diagnosis.failed[0].endswith("key that shouts")
        assert "Mask the scores with -inf, and leave the rest to softmax." in diagnosis.message


def test_a_number_that_is_nearly_low_enough_is_told():
    """Also where it lets so little through that attention looks always causal."""

    class Leaking(Limited):
        def forward(self, query, *, mask=None):
            return super().forward(query, mask=mask)

        def weigh(self, scores, allowed):
            return scores.masked_fill(~allowed, -10.0).softmax(-1)

    for leaking in (Leaking, MISSED["AlwaysCausalFilledWithMinus20"]):
        assert "If the number that stands for minus infinity isn't low" in diagnose(leaking).message
    assert "always causal" in diagnose(MISSED["AlwaysCausalFilledWithMinus20"]).taken


def test_an_always_causal_fill_that_is_low_enough_is_healthy():
    class Filled(MISSED["AlwaysCausalFilled"]):
        fill = -1e4

    assert diagnose(Filled).heading == "Healthy."


def test_a_forbidden_key_shouts_further_than_an_exponential_reaches():
    """And not as far as the numbers that stand for minus infinity."""
    gaps, seen = [], []

    class Recorded(Limited):
        def weigh(self, scores, allowed):
            seen.append(scores[:, :, 0, 0])
            forbidden = scores.masked_fill(allowed, -math.inf).amax(-1)
            above = forbidden - scores.masked_fill(~allowed, -math.inf).amax(-1)
            gaps.append(above)
            return super().weigh(scores, allowed)

    tested = examine(Recorded, DiagnoseOptions())
    (probe,) = (probe for probe in PROBES if probe.name == "a forbidden key that shouts")
    gaps.clear()
    tested.answer(probe)
    assert len(gaps) == 4  # behind a mask, padding, the triangle; and one that is left alone
    for above in gaps[:3]:
        above = above[:, :, 1:-1]
        assert (above > 104).sum() >= 3 and above.max() < 1000
    own = seen[-1]  # the first token's score with itself, and it may look at nothing else
    assert (own < -104).sum() >= 3 and own.min() > -2000


def test_a_path_that_takes_any_mask_for_causal_is_named():
    diagnosis = diagnosed(MISSED["FusedPathTakesAnyMaskForCausal"])
    assert [exhibit.name for exhibit in diagnosis.exhibits] == ["any mask taken for causal"]
    assert "without asking for weights" in diagnosis.message


def test_renormalizing_is_named_where_it_is_always_causal():
    diagnosis = diagnosed(MISSED["AlwaysCausalAndRenormalizes"])
    assert [e.name for e in diagnosis.exhibits] == ["mask after the softmax, renormalized"]


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


class FlagNotRead(Plain):
    def __init__(self, d_model, num_heads, causal=True):
        super().__init__(d_model, num_heads)

    def forward(self, x):
        return self.attend(x)[0]


@pytest.mark.parametrize("candidate", [TriangleNotKept, FlagNotRead, TriangleNotKept(48, 4)])
def test_a_triangle_that_is_lost_is_told(candidate):
    diagnosis = diagnose(candidate)
    assert not diagnosis and diagnosis.heading == "Broken, unless it is meant so."
    assert diagnosis.message.startswith("Not causal") and 'causal="always"' in diagnosis.message
    assert diagnose(candidate, causal="when asked").heading == "Healthy."
    assert "not causal" in diagnose(candidate, causal="when asked").taken
    assert diagnose(candidate, causal="always").heading == "Broken."


def test_a_triangle_is_no_sign_where_masks_are_handed_over():
    class TakesAMask(TriangleNotKept):
        def forward(self, x, mask=None):
            return self.attend(x, allowed=mask)[0]

        def weigh(self, scores, allowed):
            return Plain.weigh(self, scores, allowed)

    diagnosis = diagnose(TakesAMask, mask_shape="[T, T]")
    assert diagnosis and diagnosis.message.startswith("Not causal"), diagnosis
