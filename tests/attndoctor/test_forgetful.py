"""What is forgotten in one situation only is found there, and named for what it is."""

from functools import cache

import pytest
import torch
from tools.broken_attentions import MISSED, Limited, Plain
from tools.forgetful_attentions import (
    AT_AN_EDGE,
    FIRST_TOLD,
    KEEPING,
    Caching,
    DetachedForOneQuery,
    DroppingForgetsMasks,
    Drops,
    Grouped,
    GroupedForgetsMasks,
    Hiding,
    LimitsOfBatches,
    MasksOfSquaresAlone,
    MasksOrCausal,
    OneQuerySeesAll,
    PaddingOfSquaresAlone,
    TakesPaddingOut,
)

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
    MaskCombinations,
    limits_in,
)
from attnlib import MultiHeadAttention

pytestmark = pytest.mark.thorough

diagnosed = cache(diagnose)
SITUATIONS = (
    ON_THE_RIGHT, ANYWHERE, ONE_SAMPLE, THIRTEEN_SAMPLES, ONE_QUERY, AS_MANY_TOKENS, MORE_KEYS,
    MORE_QUERIES,
)  # fmt: skip


def of_each(classes):
    pairs = [(probe, each) for probe, some in classes.items() for each in some]
    return pytest.mark.parametrize(
        ("probe", "candidate"), pairs, ids=lambda one: getattr(one, "__name__", None)
    )


@pytest.mark.parametrize("right", [Hiding, Drops, Grouped, Caching])
def test_what_they_are_made_of_is_right(right):
    assert diagnosed(right).failed == ()


@of_each(FIRST_TOLD)
def test_what_is_forgotten_in_one_situation_is_told(probe, candidate):
    diagnosis = diagnosed(candidate)
    assert diagnosis.heading == "Broken." and diagnosis.exhibits == ()
    assert diagnosis.failed[0] == probe


@of_each(AT_AN_EDGE)
def test_what_matters_to_few_is_told_and_passes(probe, candidate):
    diagnosis = diagnosed(candidate)
    assert diagnosis and diagnosis.failed == diagnosis.edges == (probe,)
    assert "It matters only" in diagnosis.message


@pytest.mark.parametrize("candidate", KEEPING)
def test_what_is_kept_is_not_taken_for_another_bug(candidate):
    diagnosis = diagnosed(candidate)
    assert diagnosis.heading == "Broken." and diagnosis.exhibits == ()
    assert "it keeps something of earlier calls" in diagnosis.message.lower()


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.says)
@pytest.mark.parametrize("causal", [False, True])
def test_every_real_query_has_a_key_left_and_no_limit_is_idle(situation, causal):
    adapter = examine(
        MISSED["AlwaysCausalFilled"] if causal else MultiHeadAttention, DiagnoseOptions()
    ).first
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


@pytest.mark.parametrize("width", [8, 24, 64, 96, 160])
def test_gradients_are_asked_where_no_query_is_left_without_a_key(width):
    """torch's own layer gives NaN there, at whatever width; and so the draws differ."""
    module = torch.nn.MultiheadAttention(width, 4, batch_first=True)
    assert diagnose(module).heading == "Healthy, but it differs at the edges."


def test_the_cell_that_is_wrong_is_told():
    for candidate, cell in (
        (LimitsOfBatches, "(a mask, on one sample)"),
        (OneQuerySeesAll, "(a mask, on one query of another sequence)"),
        (PaddingOfSquaresAlone, "(padding, with more keys than queries)"),
        (DetachedForOneQuery, "(a mask, on one query of another sequence)"),
        (GroupedForgetsMasks, "with 6 query heads on 3 key heads (a mask)"),
        (MasksOfSquaresAlone, "(a mask for each sample, with more keys than queries)"),
    ):
        assert cell in diagnosed(candidate).message


def test_a_limit_that_is_dropped_is_named():
    message = diagnosed(MISSED["MaskOrPadding"]).message
    assert "It answers as it should without padding: that is dropped beside a mask." in message
    assert "that is dropped. " in diagnosed(LimitsOfBatches).message
    assert "dropped" not in diagnosed(DetachedForOneQuery).message
    message = diagnosed(MasksOrCausal).message
    assert "without causal=True: that is dropped beside a mask for each sample." in message
    assert "a mask [B, T, T] is forgotten" in diagnosed(DroppingForgetsMasks).message


def test_a_path_that_does_it_is_named_beside_an_exhibit():
    class CausalInEvaluation(Limited):
        def forward(self, x):
            causal = not self.training
            return super().forward(x, causal=causal)[0]

    message = diagnose(CausalInEvaluation).message
    assert "in train()" in message and "its paths don't do the same" in message


def test_what_is_wrong_in_training_is_not_told_of_dropout():
    class Unscaled(Drops):
        def scores(self, q, k):
            return super().scores(q, k) * (self.d_k**0.5 if self.training else 1.0)

    diagnosis = diagnose(Unscaled)
    assert diagnosis.failed[0] == "self-attention", diagnosis
    assert "first seen on one sequence in train()" in diagnosis.message


def test_what_counts_its_calls_in_training_is_not_taken_for_random():
    class WarmsUp(Plain):
        steps = 0

        def scores(self, q, k):
            self.steps += self.training
            return super().scores(q, k) * (min(1.0, self.steps / 1000) if self.training else 1.0)

    class Noisy(Plain):
        def scores(self, q, k):
            scores = super().scores(q, k)
            return scores + torch.randn_like(scores) if self.training else scores

    diagnosis = diagnose(WarmsUp)
    assert diagnosis.heading == "Broken." and "in train()" in diagnosis.message
    assert "Not tested in train()" in diagnose(Noisy).message


def test_no_triangle_is_spoken_of_where_none_is_asked_for():
    off = named("a mask switches causality off")
    assert off not in diagnosed(MISSED["MaskOrPadding"]).exhibits
    assert diagnosed(MISSED["PaddingOrCausal"]).exhibits == (off,)


def test_padding_that_is_dropped_is_not_on_the_wrong_axis():
    class Dropped(Limited):
        def forward(self, query, *, key_mask=None):
            return super().forward(query)

    on_queries = named("padding on the wrong axis")
    assert on_queries not in diagnose(Dropped).exhibits


def test_padding_of_the_queries_is_not_asked_of_another_sequence():
    """Where an argument is for theirs."""

    class OfEach(Plain):
        def forward(self, x, context=None, mask=None, encoder_mask=None):
            mask = encoder_mask if context is not None else mask
            return self.attend(x, context, allowed=None if mask is None else mask[:, None, None])

    diagnosis = diagnose(OfEach)
    assert diagnosis.heading.startswith("Healthy"), diagnosis
    assert "padding between two sequences" in diagnosis.untried


def test_code_without_padding_inside_needs_no_option():
    assert "attention_mask [B, T] where True = may look" in diagnosed(TakesPaddingOut).taken


def test_combinations_cover_what_is_taken_and_nothing_else():
    (probe,) = (probe for probe in PROBES if probe.name == "limits on few and many")
    assert isinstance(probe.run, MaskCombinations)
    cells = probe.run.combinations(frozenset({"causal", "key_mask", "two sequences"}))
    assert [(situation, group) for situation, group in cells] == [
        (ONE_SAMPLE, ("key_mask",)), (ONE_SAMPLE, ("causal",)),
        (ONE_SAMPLE, ("key_mask", "causal")), (THIRTEEN_SAMPLES, ("key_mask",)),
        (THIRTEEN_SAMPLES, ("causal",)), (THIRTEEN_SAMPLES, ("key_mask", "causal")),
    ]  # fmt: skip


# --- what is slightly off ------------------------------------------------------------------------


class OneHeadSteeper(Plain):
    def scores(self, q, k):
        scores = super().scores(q, k)
        return torch.cat([scores[:, :1] * 1.05, scores[:, 1:]], 1)

    def forward(self, x):
        return self.attend(x)[0]


class SteeperInEvaluation(Plain):
    def scores(self, q, k):
        return super().scores(q, k) * (1.0 if self.training else 1.02)


class LosesTheLastHead(OneHeadSteeper):
    def scores(self, q, k):
        return Plain.scores(self, q, k)

    def mix(self, weights, v):
        return super().mix(weights, torch.cat([v[:, :-1], 0 * v[:, -1:]], 1))


def test_what_is_slightly_off_is_not_talked_away():
    steeper = diagnosed(OneHeadSteeper).message
    assert "Counted from 0, head 0 alone is wrong" in steeper
    evaluated = diagnosed(SteeperInEvaluation).message
    assert "It is right in train()" in evaluated
    assert "Dot products are multiplied by 0.3225" in evaluated
    for message in (steeper, evaluated, diagnosed(LosesTheLastHead).message):
        assert "That is little" not in message
    assert "head 2 alone is wrong" in diagnosed(LosesTheLastHead).message


def test_edges_take_few_words_unless_they_count():
    class Naive(Limited):
        def weigh(self, scores, allowed):
            return scores.masked_fill(~allowed, -torch.inf).softmax(-1)

    rows = named("NaN rows")
    for edges in (False, True):
        message = diagnose(Naive, edges=edges).message
        assert rows.hint in message and (rows.cause in message) == edges
