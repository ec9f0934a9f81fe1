"""Checks of L01: right answers in other words, what is nearly right, and the numbers asked for."""

import math
from collections import Counter
from itertools import pairwise

import torch
from tools.verdicts import PASSES, verdicts

from attncourse.lessons import l01
from attncourse.lessons.l01.letters import LETTERS, decode, encode
from attncourse.lessons.l01.losses import CHANCE
from attncourse.lessons.l01.merging import RIGHT as MERGES
from attncourse.lessons.l01.merging import WORDS
from attncourse.tasks import names


def by_dict(text):
    places = {letter: i for i, letter in enumerate(LETTERS)}
    return torch.tensor([places["."], *(places[letter] for letter in text), places["."]])


def merge_by_taking(ids, pair, new):
    left, merged = list(ids), []
    while left:
        taken = left.pop(0)
        if left and (taken, left[0]) == tuple(pair):
            left.pop(0)
            taken = new
        merged.append(taken)
    return tuple(merged)


def loss_by_loop(counts):
    paid = 0.0
    for row in counts.tolist():
        for count in row:
            if count:
                paid -= count * math.log(count / sum(row))
    return paid / counts.sum().item()


test_answers = verdicts(
    {
        l01.codec: {
            PASSES: [(by_dict, lambda ids: names.spelled(list(ids)))],
            "Two functions": [[encode]],
            "A function": [[encode, "decode"]],
            "list of ids": [[lambda text: text, decode]],
            "whole numbers": [[lambda text: list(map(float, encode(text))), decode]],
            "'e' became 0": [[lambda text: [26, *encode(text)[-2:0:-1], 26], decode]],
            "emma should": [[lambda text: [*encode(text), 26], decode]],
            "and have 3": [[lambda text: encode("emma"), decode]],
            "'EMMA'": [[encode, lambda ids: decode(ids).upper()]],
        },
        l01.merge_pair: {
            PASSES: [merge_by_taking],
            ", not [9], when called with": [lambda ids, pair, new: [new]],
        },
        l01.bigram_loss: {PASSES: [loss_by_loop]},
        l01.two_merges: {
            PASSES: [dict(reversed(MERGES.items()))],
            "first, second, tokens": [{"first": "ot"}],
            "first: one of these was wanted: ho, ot, te, el": [MERGES | {"first": "th"}],
            "3, 8, 10, 13": [MERGES | {"tokens": 9}],
        },
    }
)


def test_the_merges_and_chances_are_those_of_a_plain_count():
    words = [list(word) for word in WORDS.split()]
    found = []
    for _ in range(2):
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = counts.most_common(1)[0][0]  # of equals the one that was counted first
        found.append(best)
        words = [list(merge_by_taking(word, best, "".join(best))) for word in words]
    assert ["".join(found[0]), "+".join(found[1])] == [MERGES["first"], MERGES["second"]]
    assert sum(map(len, words)) == MERGES["tokens"]
    assert CHANCE.tolist() == [72 / 168, math.log(168 / 72)]
