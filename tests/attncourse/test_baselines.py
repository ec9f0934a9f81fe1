"""What guesses cost, beside counts that were taken by hand."""

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import assert_refused

from attncourse.tasks import names
from attncourse.training import bigram_loss, pair_counts, uniform_loss, unigram_loss

TEXTS = [[2, 0, 1, 2], [2, 0, 0, 2]]  # ".ab." and ".aa.", of a, b and a boundary
COUNTS = torch.tensor([[1, 1, 1], [0, 0, 1], [2, 0, 0]])


def test_counts_by_hand():
    assert torch.equal(pair_counts(TEXTS, 3), COUNTS)
    assert torch.equal(pair_counts([[1], [], [0, 3]], 4).nonzero(), torch.tensor([[0, 3]]))
    assert pair_counts([], 2).tolist() == [[0, 0], [0, 0]]
    assert torch.equal(pair_counts((text for text in map(tuple, TEXTS)), 3), COUNTS)


def test_losses_by_hand():
    assert uniform_loss(27) == pytest.approx(3.2958, abs=5e-5)
    # a comes 3 of 6 times, b once, the boundary twice.
    by_hand = -(3 * math.log(3 / 6) + math.log(1 / 6) + 2 * math.log(2 / 6)) / 6
    assert unigram_loss(COUNTS.sum(0)) == pytest.approx(by_hand)
    # Behind a each of three things comes once; b and the boundary leave no choice.
    assert bigram_loss(COUNTS) == pytest.approx(3 * math.log(3) / 6)


def test_another_text_is_guessed_from_the_counts():
    other = pair_counts([[2, 0, 1, 2]], 3)
    assert bigram_loss(COUNTS, other) == pytest.approx(math.log(3) / 3)
    by_hand = -(math.log(3 / 6) + math.log(1 / 6) + math.log(2 / 6)) / 3
    assert unigram_loss(COUNTS.sum(0), other.sum(0)) == pytest.approx(by_hand)
    assert bigram_loss(COUNTS, pair_counts([[1, 1]], 3)) == math.inf
    assert bigram_loss(pair_counts([[0, 1]], 3), pair_counts([[2, 1]], 3)) == math.inf
    assert unigram_loss(torch.tensor([1, 0]), torch.tensor([0, 1])) == math.inf


@given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=9), min_size=1, max_size=9))
def test_they_are_the_cross_entropies_of_such_guesses(texts):
    counts = pair_counts(texts, 5)
    before = torch.tensor([token for text in texts for token in text[:-1]])
    after = torch.tensor([token for text in texts for token in text[1:]])
    logits = counts.sum(0).double().log().expand(len(after), -1)
    wanted = F.cross_entropy(logits, after).item()
    assert unigram_loss(counts.sum(0)) == pytest.approx(wanted, abs=1e-9)
    pairs = F.cross_entropy(counts.double().log()[before], after).item()
    assert bigram_loss(counts) == pytest.approx(pairs, abs=1e-9)
    assert -1e-9 <= bigram_loss(counts) <= unigram_loss(counts.sum(0)) + 1e-9
    assert unigram_loss(counts.sum(0)) <= uniform_loss(5) + 1e-9
    assert unigram_loss(counts.sum(0).float()) == pytest.approx(wanted, abs=1e-9)


def test_names_are_foretold_better_the_more_is_known():
    texts = names.texts(5_000, seed=3)
    tokens = sum(len(text) + 1 for text in texts)
    counts = pair_counts([[*names.read(text).ids, names.boundary] for text in texts], 27)
    assert counts.sum() == tokens
    floor = -sum(map(names.log_probability, texts)) / tokens
    losses = [floor, bigram_loss(counts), unigram_loss(counts.sum(0)), uniform_loss(27)]
    assert all(b - a > 0.2 for a, b in pairwise(losses))


CASES = {
    "no tokens": (lambda: uniform_loss(0), ["vocabulary_size", "0"]),
    "half a token": (lambda: uniform_loss(2.5), ["vocabulary_size", "float"]),
    "an unknown token": (lambda: pair_counts([[0, 3]], 3), ["texts", "0 to 2", "[0, 3]", "at 0"]),
    "a negative token": (lambda: pair_counts([[0], [0, -1]], 3), ["texts", "at 1"]),
    "letters": (lambda: pair_counts(["emma"], 27), ["texts", "'emma'"]),
    "floats": (lambda: pair_counts([[0.0, 1.0]], 3), ["texts", "at 0"]),
    "flags": (lambda: pair_counts([[True, False]], 3), ["texts", "at 0"]),
    "one text": (lambda: pair_counts([0, 1], 3), ["texts[0]", "int"]),
    "a number": (lambda: pair_counts(3, 3), ["texts", "int"]),
    "counts as list": (lambda: unigram_loss([1, 2]), ["counts", "list"]),
    "pairs for tokens": (lambda: unigram_loss(COUNTS), ["counts", "[V]", "[3, 3]"]),
    "tokens for pairs": (lambda: bigram_loss(COUNTS[0]), ["counts", "[V, V]", "[3]"]),
    "not square": (lambda: bigram_loss(COUNTS[:2]), ["counts", "[V, V]", "[2, 3]"]),
    "nothing counted": (lambda: bigram_loss(0 * COUNTS), ["counts", "0 or more"]),
    "no vocabulary": (lambda: unigram_loss(COUNTS[0, :0]), ["counts", "[0]"]),
    "below 0": (lambda: unigram_loss(COUNTS[0] - 1 - COUNTS[1]), ["counts", "0 or more"]),
    "NaN": (lambda: unigram_loss(COUNTS[0] * math.nan), ["counts", "0 or more"]),
    "another vocabulary": (lambda: unigram_loss(COUNTS[0], torch.ones(2)), ["of", "[3]", "[2]"]),
    "of as list": (lambda: bigram_loss(COUNTS, [[1]]), ["of", "list"]),
    "of nothing": (lambda: bigram_loss(COUNTS, 0 * COUNTS), ["of", "0 or more"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    assert_refused(*CASES[name])
