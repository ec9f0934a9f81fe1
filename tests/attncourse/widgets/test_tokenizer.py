"""Tokenizer's Python side: its state, its traits, its refusals."""

import torch
from tools.refusing import refusals

from attncourse.tokens import BytePairTokenizer
from attncourse.widgets import Tokenizer

TOKENIZER = BytePairTokenizer.train("banana bandana", 4)
COUNTS = torch.tensor([[0, 2, 1], [3, 0, 0], [1, 1, 0]])


def bigram(vocabulary="ab.", counts=COUNTS):
    return Tokenizer(TOKENIZER, counts=counts, vocabulary=vocabulary)


def shown(tokenizer=TOKENIZER, **options):
    return Tokenizer(tokenizer, **options)


MANY = BytePairTokenizer([(i // 256, i % 256) for i in range(4097)])

test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        shown: {"tokenizer": [[]], "text": [3], "origin": [None]},
        bigram: {"counts": [[[1]]]},
    },
    ValueError: {
        shown: {
            "tokenizer": [MANY], "text": ["two\nlines", "a" * 201, "😀" * 101, "\ud83d"],
            "num_merges": [-1, 5],
        },
        bigram: {"counts": [None, -COUNTS, COUNTS / 2, COUNTS.flatten()],
                 "vocabulary": [["a", "bc", "."], "aa."]},
    },
})  # fmt: skip
