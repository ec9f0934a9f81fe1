"""What guesses cost, beside counts in plain loops and torch's cross-entropy."""

import math
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import refusals

from attncourse.tasks import names
from attncourse.training import bigram_loss, pair_counts, uniform_loss, unigram_loss
from attncourse.training.sampling import name_guesses

texts_of_5 = st.lists(st.lists(st.integers(0, 4), max_size=9), min_size=1, max_size=9).filter(
    lambda texts: any(len(text) > 1 for text in texts)
)


def cross_entropy(shares, pairs):
    """Return the mean cost of what comes after, where row i of shares is the guess after i."""
    before, after = torch.tensor(pairs).unbind(1)
    return F.cross_entropy(shares.double().log()[before], after).item()


@given(texts_of_5, texts_of_5)
def test_losses_are_the_cross_entropies_of_such_guesses(texts, others):
    pairs, of = ([pair for text in some for pair in pairwise(text)] for some in (texts, others))
    counts, other = pair_counts(map(tuple, texts), 5), pair_counts(others, 5)
    assert counts.dtype == torch.int64
    assert counts.tolist() == [[Counter(pairs)[i, j] for j in range(5)] for i in range(5)]
    tokens = counts.sum(0)
    approx = partial(pytest.approx, abs=1e-9)
    assert bigram_loss(counts) == approx(cross_entropy(counts, pairs))
    everywhere = tokens.expand(5, 5)
    assert unigram_loss(tokens) == approx(cross_entropy(everywhere, pairs))
    assert unigram_loss(tokens.float()) == approx(unigram_loss(tokens))
    assert bigram_loss(counts) <= unigram_loss(tokens) + 1e-9
    assert unigram_loss(tokens) <= uniform_loss(5) + 1e-9 == math.log(5) + 1e-9
    known = all(counts[pair] for pair in of)
    expected = cross_entropy(counts, of) if known else math.inf
    assert bigram_loss(counts, other) == approx(expected)
    expected = cross_entropy(everywhere, of) if all(tokens[j] for _, j in of) else math.inf
    assert unigram_loss(tokens, other.sum(0)) == approx(expected)


def test_names_are_foretold_better_the_more_is_known():
    known, held_out = (names.sentences(number, seed=number) for number in (5_000, 500))
    found = name_guesses(known, held_out)
    texts = [names.spelled(one.ids) for one in held_out]
    tokens = sum(len(text) + 1 for text in texts)
    assert found["floor"] == pytest.approx(-sum(map(names.log_probability, texts)) / tokens)
    losses = [found[guess] for guess in ("floor", "bigram", "unigram", "uniform")]
    assert losses[-1] == math.log(27) and all(b - a > 0.2 for a, b in pairwise(losses))
    counts = pair_counts([[*one.ids, 26] for one in known], 27)
    pairs = [pair for one in held_out for pair in pairwise([*one.ids, 26])]
    assert found["bigram"] == pytest.approx(cross_entropy(counts, pairs))
    assert found["unigram"] == pytest.approx(cross_entropy(counts.sum(0).expand(27, 27), pairs))


COUNTS = torch.tensor([[1, 1, 1], [0, 0, 1], [2, 0, 0]])
of_tokens, of_pairs = partial(unigram_loss, COUNTS[0]), partial(bigram_loss, COUNTS)
count = partial(pair_counts, vocabulary_size=3)
REFUSED = {
    TypeError: {
        uniform_loss: {"vocabulary_size": [2.5]},
        count: {"texts": [["emma"], [[0.0, 1.0]], [0, 1], 3]},
        unigram_loss: {"counts": [[1, 2]]},
        of_pairs: {"of": [[[1]]]},
    },
    ValueError: {
        uniform_loss: {"vocabulary_size": [0]},
        count: {"texts": [[[0, 3]], [[0], [0, -1]]]},
        partial(pair_counts, []): {"vocabulary_size": [0, -1]},
        unigram_loss: {
            "counts": [COUNTS, COUNTS[0, :0], COUNTS[0] - 1 - COUNTS[1], COUNTS[0] * math.nan],
        },
        bigram_loss: {"counts": [COUNTS[0], COUNTS[:2], 0 * COUNTS]},
        of_tokens: {"of": [torch.ones(2)]},
        of_pairs: {"of": [0 * COUNTS]},
    },
}  # fmt: skip

test_what_does_not_fit_is_refused = refusals(REFUSED)
