"""Scores of heads against plain loops: any shapes and dtypes, padding, rows that look nowhere."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import refusals

from attnlib import patterns
from attnlib.pattern_sums import OffsetSums

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@st.composite
def attentions(draw):
    """Draw weights [B, h, T, T] with tokens, partners and which words are real, all [B, T]."""
    torch.manual_seed(draw(st.integers(0, 999)))
    B, h, T = (draw(st.integers(1, most)) for most in (3, 3, 7))
    scores = torch.randn(B, h, T, T) * draw(st.sampled_from([0, 1, 30]))
    weights = scores.softmax(-1) * (torch.rand(B, h, T, 1) < draw(st.sampled_from([0.7, 1])))
    tokens = torch.randint(draw(st.integers(1, 4)), (B, T))
    partners = torch.randint(-1, T, (B, T))
    real = torch.rand(B, T) < draw(st.sampled_from([0.6, 1]))
    return weights.to(draw(st.sampled_from(DTYPES))), tokens, partners, real


def plain_score(weights, targets):
    """Return heads' scores, the best offset, its score, how many rows; targets[b][i] = columns."""
    T = weights.shape[-1]
    rows = [(b, i) for b, of in enumerate(targets) for i, columns in enumerate(of) if columns]
    if not rows:
        return None
    heads = [
        sum(maps[b][i][j] for b, i in rows for j in targets[b][i]) / len(rows)
        for maps in weights.double().transpose(0, 1).tolist()
    ]
    hits = {o: sum(i + o in targets[b][i] for b, i in rows) for o in range(1 - T, T)}
    offset = min(hits, key=lambda o: (-hits[o], abs(o), o))
    return pytest.approx(heads), offset, pytest.approx(hits[offset] / len(rows)), len(rows)


def columns_where(rule, tokens, real):
    """Return for each row the columns at which a rule of (i, j, tokens) wants weight."""
    T = range(tokens.shape[1])
    return [
        [{j for j in T if is_real[i] and is_real[j] and rule(i, j, own)} for i in T]
        for own, is_real in zip(tokens.tolist(), real.tolist(), strict=True)
    ]


def follows(after):
    return lambda i, j, own: after <= j <= i and own[j - after] == own[i]


PATTERNS = {
    "previous": (lambda w, t, **m: patterns.previous_token_score(w, **m),
        lambda i, j, own: j == i - 1),
    "same": (patterns.same_token_score, lambda i, j, own: own[i] == own[j] and i != j),
    "same, causal": (partial(patterns.same_token_score, causal=True),
        lambda i, j, own: own[i] == own[j] and j < i),
    "induction": (patterns.induction_score, follows(1)),
    "one further": (partial(patterns.induction_score, after=2), follows(2)),
}  # fmt: skip


def assert_scores(score, expected):
    """Compare scores, or see that they are refused where no row has a target."""
    if expected is None:
        with pytest.raises(ValueError, match=r"^(weights|tokens|partners) must have .* got none"):
            score()
        return
    found = score()
    assert found.heads.dtype == torch.float64
    assert (found.heads.tolist(), found.offset, found.baseline, found.rows) == expected
    assert found.best == found.heads.tolist().index(max(found.heads.tolist()))


@given(attentions(), st.sampled_from(list(PATTERNS)), st.booleans(), st.booleans())
def test_patterns_are_scored_as_plain_loops_score_them(case, name, padded, batched):
    weights, tokens, _, real = case
    real = real if padded else torch.ones_like(real)
    shown = [weights, tokens, real] if batched else [weights[0], tokens[0], real[0]]
    if not batched:
        weights, tokens, real = weights[:1], tokens[:1], real[:1]
    score, rule = PATTERNS[name]
    mask = {"key_mask": shown.pop()} if padded else {}
    expected = plain_score(weights, columns_where(rule, tokens, real))
    assert_scores(lambda: score(*shown[:2], **mask), expected)


@given(attentions(), st.booleans())
def test_relations_are_scored_as_plain_loops_score_them(case, batched):
    weights, _, partners, _ = case
    if not batched:
        weights, partners = weights[:1], partners[:1]
    favorites = torch.zeros_like(weights)
    for row in ((b, k, i) for b, k, i in weights.sum(-1).nonzero().tolist()):
        favorites[*row, weights[row].tolist().index(weights[row].max())] = 1
    targets = [[{j} if j >= 0 else set() for j in own] for own in partners.tolist()]
    shown = (weights, partners) if batched else (weights[0], partners[0])
    for score, maps in (
        (patterns.relation_mass, weights), (patterns.relation_accuracy, favorites)
    ):  # fmt: skip
        expected = plain_score(maps, targets)
        assert_scores(lambda score=score: score(*shown), expected)
    if expected is None:
        with pytest.raises(ValueError, match=r"^partners must have"):
            patterns.best_offset(shown[1])
    else:
        assert patterns.best_offset(shown[1]) == expected[1:3]


@given(attentions(), st.sampled_from([0, 2, 8]), st.booleans())
def test_offsets_and_entropies_are_those_of_plain_loops(case, reach, padded):
    weights, _, _, real = case
    B, h, T, _ = weights.shape
    real = real if padded else torch.ones_like(real)
    mask = {"key_mask": real} if padded else {}
    offsets = range(-reach, reach + 1)
    expected, entropies = torch.full((h, len(offsets)), math.nan).double(), []
    maps = weights.double().tolist()
    for k in range(h):
        for column, o in enumerate(offsets):
            pairs = [(b, i) for b in range(B) for i in range(T) if 0 <= i + o < T]
            own = [maps[b][k][i][i + o] for b, i in pairs if real[b, i] and real[b, i + o]]
            if own:
                expected[k, column] = sum(own) / len(own)
        rows = [maps[b][k][i] for b in range(B) for i in range(T) if real[b, i]]
        own = [-sum(p * math.log(p) for p in row if p) for row in rows if any(row)]
        entropies.append(sum(own) / len(own) if own else None)
    sums = OffsetSums(reach)
    sums.add(weights.double(), real[:, :, None] & real[:, None], range(T))
    torch.testing.assert_close(sums.means(), expected, equal_nan=True)
    if None in entropies:
        with pytest.raises(ValueError, match=r"^weights must have a row"):
            patterns.entropy(weights, **mask)
    else:
        assert patterns.entropy(weights, **mask).tolist() == pytest.approx(entropies, abs=1e-9)


def test_scores_say_what_they_are():
    for partners, said in (
        ([-1, 0, 1, 0], "0.67 at offset -1, rows=3"), ([1, 2, -1, -1], "offset +1"),
    ):  # fmt: skip
        mass = patterns.relation_mass(torch.eye(4).roll(-1, 1)[None], torch.tensor(partners))
        assert said in repr(mass)


EVENLY, NONE = torch.full((1, 6, 6), 1 / 6), torch.full((6,), -1)
TOKENS = torch.tensor([3, 1, 3, 1, 2, 3])
mass = partial(patterns.relation_mass, weights=EVENLY, partners=NONE + 1)
same, again = (
    partial(of, weights=EVENLY, tokens=TOKENS)
    for of in (patterns.same_token_score, patterns.induction_score)
)
entropy = partial(patterns.entropy, weights=EVENLY)

test_what_does_not_fit_is_refused = refusals({
    TypeError: {
        mass: {"weights": [[[1.0]]], "partners": [NONE.float(), {1: 0}]},
        same: {"tokens": [TOKENS / 1, [3]], "causal": [1]},
        again: {"after": [1.0]},
        entropy: {"key_mask": [torch.ones(6)]},
    },
    ValueError: {
        mass: {
            "weights": [EVENLY[0], EVENLY[None, None], EVENLY * 2],  # scores are no weights
            "partners": [NONE[None], NONE[1:], NONE + 7, NONE - 1],
        },
        patterns.best_offset: {"partners": [NONE + 7, NONE - 1, NONE[None, None], NONE[0]]},
        again: {"tokens": [TOKENS[1:]], "after": [0]},
        entropy: {
            "weights": [torch.full((1, 2, 4), 1 / 4)],
            "key_mask": [torch.ones(5).bool(), torch.ones(1, 6).bool()],
        },
    },
})  # fmt: skip
