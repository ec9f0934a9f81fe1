"""Tokenizer's Python side: its state, its traits, its refusals."""

import numpy as np
import torch
from tools.refusing import refusals

from attncourse.tokens import BytePairTokenizer
from attncourse.widgets import Tokenizer

TOKENIZER = BytePairTokenizer.train("banana bandana", 4)
COUNTS = torch.tensor([[0, 2, 1], [3, 0, 0], [1, 1, 0]])


def test_state_holds_merges_and_counts_as_bytes():
    widget = Tokenizer(TOKENIZER, "ban", counts=COUNTS, vocabulary="ab.", origin="two words")
    merges = np.frombuffer(widget.merges, "<u2").reshape(-1, 2)
    assert [tuple(pair) for pair in merges.tolist()] == list(TOKENIZER.merges)
    assert np.array_equal(np.frombuffer(widget.counts, "<f4").reshape(3, 3), COUNTS.numpy())
    assert (widget.most, widget.num_merges, widget.text) == (4, 4, "ban")
    assert (widget.vocabulary, widget.origin) == (["a", "b", "."], "two words")


def test_a_tokenizer_may_have_no_merges_and_no_counts():
    widget = Tokenizer(BytePairTokenizer())
    assert (widget.merges, widget.counts, widget.most, widget.vocabulary) == (b"", b"", 0, [])


def bigram(vocabulary="ab.", counts=COUNTS):
    return Tokenizer(TOKENIZER, counts=counts, vocabulary=vocabulary)


def bare(tokenizer):
    return Tokenizer(tokenizer)


def shown(**options):
    return Tokenizer(TOKENIZER, **options)


MANY = BytePairTokenizer([(i // 256, i % 256) for i in range(4097)])


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            bare: {"tokenizer": [[]]}, shown: {"text": [3], "origin": [None]},
            bigram: {"counts": [[[1]]]},
        },
        ValueError: {
            bare: {"tokenizer": [MANY]},
            shown: {
                "text": ["two\nlines", "two\rlines", "a" * 201, "😀" * 101, "\ud83d"],
                "num_merges": [-1, 5],
            },
            bigram: {"counts": [None, -COUNTS, COUNTS / 2, COUNTS / 0, COUNTS.flatten()],
                     "vocabulary": [["a", "bc", "."], "aa."]},
        },
    }
)  # fmt: skip
