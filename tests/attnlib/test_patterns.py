"""Scores of heads: maps made by hand with known scores, what always holds, what is refused."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attncourse.tasks import concord, pack
from attnlib import patterns

T = 6
TOKENS = torch.tensor([3, 1, 3, 1, 2, 3])


def looking_at(*columns):
    """One head [1, T, T] in which each row looks at one column; None = may look nowhere."""
    weights = torch.zeros(1, len(columns), len(columns))
    for row, column in enumerate(columns):
        if column is not None:
            weights[0, row, column] = 1
    return weights


PREVIOUS = looking_at(0, 0, 1, 2, 3, 4)
FIRST = looking_at(0, 0, 0, 0, 0, 0)
EVENLY = torch.full((1, T, T), 1 / T)
LOWER = torch.ones(1, T, T).tril().div(torch.arange(1, T + 1)[:, None])  # evenly to the left
HEADS = torch.cat([PREVIOUS, FIRST, EVENLY])


def scored(scores):
    """A score's numbers, to be compared."""
    return scores.heads.tolist(), scores.baseline, scores.offset, scores.rows


def test_the_previous_token():
    expected = [1, 1 / 5, 1 / 6]  # row 1 of FIRST looks at the word before it as well
    scores = patterns.previous_token_score(HEADS)
    assert scored(scores) == (pytest.approx(expected), 1, -1, 5)


def test_the_first_token():
    scores = patterns.first_token_score(HEADS)
    expected = [1 / 5, 1, 1 / 6]
    assert scored(scores) == (pytest.approx(expected), pytest.approx(1 / 5), -1, 5)


def test_the_same_token():
    # Rows 0, 2, 5 hold 3, which stands at two other places; rows 1 and 3 hold 1, which has one.
    twin = looking_at(2, 3, 5, 1, 4, 0)
    scores = patterns.same_token_score(torch.cat([twin, EVENLY, PREVIOUS]), TOKENS)
    even = (3 * 2 / 6 + 2 * 1 / 6) / 5
    # Of the offsets, +2 finds a twin in the rows 0 and 1; so do -2, in 2 and 3, and +3 in one.
    assert scored(scores) == (pytest.approx([1, even, 0]), pytest.approx(2 / 5), -2, 5)


def test_the_same_token_to_the_left():
    left = looking_at(0, 1, 0, 1, 4, 2)
    scores = patterns.same_token_score(torch.cat([left, LOWER]), TOKENS, causal=True)
    even = (1 / 3 + 1 / 4 + 2 / 6) / 3  # rows 2, 3 and 5
    assert scored(scores) == (pytest.approx([1, even]), pytest.approx(2 / 3), -2, 3)


def test_what_followed_before():
    # Row 2: 3 stood at 0, so it looks at 1. Row 3: 1 at 1, so 2. Row 5: 3 at 0 and 2, so 1 and 3.
    follower = looking_at(0, 0, 1, 2, 3, 3)
    scores = patterns.induction_score(torch.cat([follower, LOWER]), TOKENS)
    even = (1 / 3 + 1 / 4 + 2 / 6) / 3
    assert scored(scores) == (pytest.approx([1, even]), pytest.approx(2 / 3), -1, 3)


def test_what_followed_two_places_after():
    # Row 2: 3 stood at 0, so it looks at 2. Row 3: 1 at 1, so 3. Row 5: 3 at 0 and 2, so 2 and 4.
    further = looking_at(0, 0, 2, 3, 3, 4)
    scores = patterns.induction_score(torch.cat([further, LOWER]), TOKENS, after=2)
    even = (1 / 3 + 1 / 4 + 2 / 6) / 3
    assert scored(scores) == (pytest.approx([1, even]), pytest.approx(2 / 3), 0, 3)


def test_a_relation():
    partners = torch.tensor([-1, 0, -1, 1, 2, -1])
    half = torch.zeros(1, T, T)
    half[0, :, 0] = 0.6
    half[0, :, 2] = half[0, :, 5] = 0.2
    heads = torch.cat([PREVIOUS, half])
    mass = patterns.relation_mass(heads, partners)
    expected = [1 / 3, (0.6 + 0 + 0.2) / 3]
    assert scored(mass) == (pytest.approx(expected), pytest.approx(2 / 3), -2, 3)
    accuracy = patterns.relation_accuracy(heads, partners)
    assert scored(accuracy) == (pytest.approx([1 / 3, 1 / 3]), pytest.approx(2 / 3), -2, 3)
    assert mass.best == 0 and accuracy.best == 0
    assert repr(mass) == "Scores(heads=[0.33, 0.27], baseline=0.67 at offset -2, rows=3)"


def test_a_row_that_may_look_nowhere_has_found_nothing():
    weights = looking_at(None, 0, None)
    partners = torch.tensor([0, 0, 0])
    for score in (patterns.relation_mass, patterns.relation_accuracy):
        assert score(weights, partners).heads.tolist() == pytest.approx([1 / 3])
    assert patterns.entropy(weights).tolist() == [0]


def test_of_equal_weights_the_leftmost_counts_as_largest():
    scores = patterns.relation_accuracy(EVENLY, torch.tensor([0, 0, 1, -1, -1, -1]))
    assert scores.heads.tolist() == pytest.approx([2 / 3])


def test_entropy():
    heads = torch.cat([PREVIOUS, EVENLY, LOWER])
    lower = sum(math.log(n) for n in range(1, T + 1)) / T
    assert patterns.entropy(heads).tolist() == pytest.approx([0, math.log(T), lower])


def test_each_offset_alone():
    scores = patterns.offset_scores(HEADS, reach=2)
    # PREVIOUS rests on itself in row 0; row 2 of FIRST looks two back; EVENLY is the same anywhere.
    expected = [[0, 1, 1 / 6, 0, 0], [1 / 4, 1 / 5, 1 / 6, 0, 0], [1 / 6] * 5]
    torch.testing.assert_close(scores, torch.tensor(expected).double(), atol=1e-7, rtol=0)
    previous = patterns.previous_token_score(HEADS).heads
    torch.testing.assert_close(scores[:, 1], previous)


def test_an_offset_that_no_row_has_is_nan():
    scores = patterns.offset_scores(torch.eye(2)[None], reach=3)
    assert scores.isnan().tolist() == [[True, True, False, False, False, True, True]]


def test_the_best_offset_is_the_shortest_of_the_best():
    assert patterns.best_offset(torch.tensor([1, 0, 0, -1])) == (-1, pytest.approx(1 / 3))
    two = torch.tensor([[1, 2, -1], [-1, 0, -1]])
    assert patterns.best_offset(two) == (1, pytest.approx(2 / 3))


def test_padding_is_left_out():
    weights = torch.zeros(2, 1, 4, 4)
    weights[0, 0] = looking_at(0, 0, 1, 2)[0]
    weights[1, 0] = looking_at(1, 1, 0, 0)[0]  # two real words; what padding looks at is nothing
    key_mask = torch.tensor([[True] * 4, [True, True, False, False]])
    tokens = torch.tensor([[5, 5, 6, 7], [5, 0, 0, 0]])  # 0 fills up, and is a word as well
    previous = patterns.previous_token_score(weights, key_mask=key_mask)
    assert scored(previous) == (pytest.approx([3 / 4]), 1, -1, 4)
    first = patterns.first_token_score(weights, key_mask=key_mask)
    assert first.rows == 4
    same = patterns.same_token_score(weights, tokens, key_mask=key_mask)
    assert scored(same) == (pytest.approx([1 / 2]), 1 / 2, -1, 2)
    again = patterns.induction_score(weights, tokens, key_mask=key_mask)
    assert scored(again) == (pytest.approx([0]), 1, 0, 1)
    offsets = patterns.offset_scores(weights, reach=1, key_mask=key_mask)
    assert offsets[0].tolist() == pytest.approx([3 / 4, 1 / 3, 1 / 4])
    blurred = weights.clone()
    blurred[1, 0, 2:] = 1 / 4
    assert patterns.entropy(blurred, key_mask=key_mask).tolist() == [0]


# What always holds


@st.composite
def attention(draw):
    """Weights [B, h, T, T] of any sharpness, some rows wholly 0, with partners that fit."""
    B, h, T = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(2, 7))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    scores = torch.randn(B, h, T, T, generator=generator) * draw(st.sampled_from([0.1, 1, 30]))
    weights = scores.softmax(-1)
    if draw(st.booleans()):
        weights = weights * (torch.rand(B, h, T, 1, generator=generator) < 0.7)
    partners = torch.randint(-1, T, (B, T), generator=generator)
    partners[0, 0] = 1
    return weights, partners


def with_offset(partners, offset):
    """A head that always looks at one distance, and nowhere where that is outside."""
    B, T = partners.shape
    weights = torch.zeros(T, T)
    weights.diagonal(offset).fill_(1)
    return weights.expand(B, 1, T, T)


@given(attention())
def test_scores_are_shares_and_a_fixed_offset_gets_the_baseline(case):
    weights, partners = case
    for score in (patterns.relation_mass, patterns.relation_accuracy):
        scores = score(weights, partners)
        assert 0 <= scores.heads.min() <= scores.heads.max() <= 1 + 1e-4
        assert scores.rows == (partners >= 0).sum()
        T = partners.shape[1]
        fixed = {o: float(score(with_offset(partners, o), partners).heads) for o in range(1 - T, T)}
        assert scores.baseline == pytest.approx(max(fixed.values()))
        assert scores.baseline == pytest.approx(fixed[scores.offset])
        assert (scores.offset, scores.baseline) == patterns.best_offset(partners)


@given(attention())
def test_a_batch_scores_the_mean_of_its_samples(case):
    weights, partners = case
    whole = patterns.relation_mass(weights, partners)
    alone = [
        patterns.relation_mass(maps, own)
        for maps, own in zip(weights, partners, strict=True)
        if (own >= 0).any()
    ]
    total = sum(scores.heads * scores.rows for scores in alone)
    assert torch.allclose(whole.heads, total / whole.rows)
    assert sum(scores.rows for scores in alone) == whole.rows


@given(attention(), st.randoms(use_true_random=False))
def test_heads_are_scored_one_by_one(case, random):
    weights, partners = case
    order = random.sample(range(weights.shape[1]), weights.shape[1])
    for score in (patterns.relation_mass, patterns.relation_accuracy):
        assert torch.equal(
            score(weights[:, order], partners).heads, score(weights, partners).heads[order]
        )


@given(attention())
def test_looking_at_the_partner_alone_scores_1(case):
    _, partners = case
    weights = torch.nn.functional.one_hot(partners.clamp(min=0)).float()
    weights = torch.nn.functional.pad(weights, (0, partners.shape[1] - weights.shape[-1]))
    for score in (patterns.relation_mass, patterns.relation_accuracy):
        assert score(weights[:, None], partners).heads.tolist() == [1]


@given(attention())
def test_entropy_lies_between_one_word_and_all(case):
    weights, _ = case
    if (weights.sum(-1) > 0).any(-1).any(0).all():
        entropies = patterns.entropy(weights)
        assert -1e-6 <= entropies.min() <= entropies.max() <= math.log(weights.shape[-1]) + 1e-4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_precision_will_do(dtype):
    scores = patterns.previous_token_score(HEADS.to(dtype))
    assert scores.heads.dtype == torch.float64
    assert scores.heads.tolist() == pytest.approx([1, 1 / 5, 1 / 6], rel=1e-2)


def test_a_language_can_be_scored_as_it_is_packed():
    batch = pack(concord.sentences(50, seed=0))
    T = batch.tokens.shape[1]
    weights = torch.eye(T).expand(50, 2, T, T)
    for relation in concord.relations:
        scores = patterns.relation_mass(weights, batch.partners[relation.name])
        assert scores.heads.tolist() == [0, 0]
        assert 0 < scores.baseline < 1
    patterns.same_token_score(weights, batch.tokens, key_mask=batch.key_mask)


# Bad input

NONE = torch.full((T,), -1)
CASES = {
    "no weights": (lambda: patterns.relation_mass([[1.0]], NONE), TypeError,
        "weights must be a torch.Tensor, got list"),
    "scores": (lambda: patterns.relation_mass(EVENLY * 2, NONE), ValueError,
        "each row of weights must sum to 1"),
    "one map": (lambda: patterns.relation_mass(EVENLY[0], NONE), ValueError,
        r"weights must have shape \[B, h, T, T\] or \[h, T, T\], got \[6, 6\]"),
    "a rectangle": (lambda: patterns.entropy(torch.full((1, 2, 4), 1 / 4)), ValueError,
        r"weights must have shape \[B, h, T, T\] or \[h, T, T\], got \[1, 2, 4\]"),
    "no partner": (lambda: patterns.relation_mass(EVENLY, NONE), ValueError,
        "partners must have a row with a partner, got none"),
    "no partner, accuracy": (lambda: patterns.relation_accuracy(EVENLY, NONE), ValueError,
        "partners must have a row with a partner, got none"),
    "partners of a batch": (lambda: patterns.relation_mass(EVENLY, NONE[None]), ValueError,
        r"partners must have shape \[6\] beside weights of shape \[1, 6, 6\], got \[1, 6\]"),
    "partners of another length": (
        lambda: patterns.relation_mass(EVENLY[None], NONE[None, 1:]), ValueError,
        r"partners must have shape \[1, 6\] .* got \[1, 5\]"),
    "partners beyond": (lambda: patterns.relation_mass(EVENLY, NONE + 7), ValueError,
        "partners must be columns from 0 to 5, or -1 for none, got 6 to 6"),
    "partners below": (lambda: patterns.best_offset(NONE - 1), ValueError,
        "partners must be columns from 0 to 5, or -1 for none, got -2 to -2"),
    "partners of numbers": (lambda: patterns.relation_mass(EVENLY, NONE.float()), TypeError,
        r"partners must be whole numbers \(int64\), got .*float32"),
    "partners in a dict": (lambda: patterns.relation_mass(EVENLY, {1: 0}), TypeError,
        "partners must be a torch.Tensor, got dict"),
    "partners in a cube": (lambda: patterns.best_offset(NONE[None, None]), ValueError,
        r"partners must have shape \[B, T\] or \[T\], got \[1, 1, 6\]"),
    "no offset": (lambda: patterns.best_offset(NONE), ValueError,
        "partners must have a row with a partner, got none"),
    "tokens of another length": (lambda: patterns.induction_score(EVENLY, TOKENS[1:]), ValueError,
        r"tokens must have shape \[6\] beside weights of shape \[1, 6, 6\], got \[5\]"),
    "tokens as numbers": (lambda: patterns.same_token_score(EVENLY, TOKENS / 1), TypeError,
        r"tokens must be whole numbers \(int64\), got .*float32"),
    "no token twice": (lambda: patterns.same_token_score(EVENLY, torch.arange(T)), ValueError,
        "tokens must have a word that comes twice, got none"),
    "no place after": (lambda: patterns.induction_score(EVENLY, TOKENS, after=0), ValueError,
        "after must be at least 1, got 0"),
    "nothing again": (lambda: patterns.induction_score(EVENLY, torch.arange(T)), ValueError,
        "tokens must have a word that comes twice, got none"),
    "one word": (lambda: patterns.previous_token_score(torch.ones(1, 1, 1)), ValueError,
        "weights must have a row with a word before it, got none"),
    "one word, first": (lambda: patterns.first_token_score(torch.ones(1, 1, 1)), ValueError,
        "weights must have a row after the first, got none"),
    "reach as a float": (lambda: patterns.offset_scores(EVENLY, reach=1.0), TypeError,
        "reach must be an int, got float"),
    "reach below 0": (lambda: patterns.offset_scores(EVENLY, reach=-1), ValueError,
        "reach must be at least 0, got -1"),
    "no row that looks": (lambda: patterns.entropy(torch.zeros(1, 3, 3)), ValueError,
        "weights must have a row that may look, in each head, got none"),
    "a float key mask": (
        lambda: patterns.entropy(EVENLY, key_mask=torch.ones(T)), TypeError,
        "key_mask must be boolean"),
    "a key mask of another length": (
        lambda: patterns.entropy(EVENLY, key_mask=torch.ones(5, dtype=torch.bool)), ValueError,
        r"key_mask must have shape \[6\] .* got \[5\]"),
    "causal as a number": (
        lambda: patterns.same_token_score(EVENLY, TOKENS, causal=1), TypeError,
        "causal must be True or False, got int"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), CASES.values(), ids=CASES)
def test_bad_input_is_refused_by_name(call, error, words):
    with pytest.raises(error, match=words):
        call()
