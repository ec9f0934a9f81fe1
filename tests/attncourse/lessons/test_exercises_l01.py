"""What the checks of lesson L01 do beyond what every check does."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
import torch

from attncourse.lessons import l01
from attncourse.lessons.l01.chances import RIGHT as CHANCE
from attncourse.lessons.l01.letters import LETTERS, decode, encode
from attncourse.lessons.l01.merging import RIGHT as MERGES
from attncourse.lessons.l01.merging import WORDS
from attncourse.tasks import names


def by_dict(text):
    places = {letter: i for i, letter in enumerate(LETTERS)}
    return torch.tensor([places["."], *(places[letter] for letter in text), places["."]])


def by_library(ids):
    return names.spelled(list(ids))


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


def test_solutions_may_be_written_in_other_ways():
    assert l01.codec((by_dict, by_library))
    assert l01.merge_pair(merge_by_taking)
    assert l01.bigram_loss(loss_by_loop)
    assert l01.chance_from_counts([Fraction(3, 7), 0.847])
    assert l01.two_merges(dict(reversed(MERGES.items())))
    assert l01.fair_comparison("merges")


# --- the numbers that are asked for ------------------------------------------------------------


def test_the_merges_are_those_of_a_plain_count():
    words = [list(word) for word in WORDS.split()]
    found = []
    for _ in range(2):
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = counts.most_common(1)[0][0]  # of equals the one that was counted first
        found.append(best)
        words = [list(merge_by_taking(word, best, "".join(best))) for word in words]
    assert ["+".join(pair) for pair in found] == ["o+t", MERGES["second"]]
    assert MERGES["first"] == "".join(found[0])
    assert sum(map(len, words)) == MERGES["tokens"]


def test_the_chance_is_a_share_and_its_cost_minus_its_logarithm():
    assert CHANCE.tolist() == [72 / 168, math.log(168 / 72)]


# --- hints for answers that are wrong in other ways --------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (encode, "Two functions were wanted"),
        ([encode], "Two functions were wanted"),
        ([encode, "decode"], "A function was wanted"),
        ([lambda text: text, decode], "a list of ids"),
        ([lambda text: list(map(str, encode(text))), decode], "which are whole numbers"),
        ([lambda text: list(map(float, encode(text))), decode], "which are whole numbers"),
        (
            [lambda text: [26, *(ord(c) - 96 for c in text), 26], decode],
            "Your letters count from a",
        ),
        ([lambda text: [26, *encode(text)[-2:0:-1], 26], decode], "its letter 'e' became 0"),
        ([lambda text: [26] * 10**4, decode], "but became 10000 ids"),
        ([lambda text: [*encode(text), 26], decode], "emma should begin and end with 26"),
        ([encode, lambda ids: decode(ids).upper()], "came back as 'EMMA'"),
        ([encode, lambda ids: decode(ids)[:3]], "came back as 'emm'"),
        ([lambda text: encode("emma"), decode], "a should begin and end with 26 and have 3"),
        ([lambda text: 1 / 0, decode], "ZeroDivisionError"),
        ([encode, lambda ids: None], "None"),
    ],
)
def test_the_codec_tells_what_came_out(answer, words):
    verdict = l01.codec(answer)
    assert not verdict
    assert words in verdict.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("ot", "A dict with first, second, tokens"),
        ({"first": "ot"}, "A dict with"),
        (MERGES | {"first": "th"}, "Of `first` one of these was wanted: 'el', 'ho', 'ot', 'te'"),
        (MERGES | {"tokens": 9}, "Of `tokens` one of these was wanted: 10, 13, 3, 8"),
        (MERGES | {"first": [1]}, "Of `first` one of these"),
    ],
)
def test_of_the_merges_the_first_wrong_part_is_told(answer, words):
    verdict = l01.two_merges(answer)
    assert not verdict
    assert words in verdict.message


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0.5, 0.847], "The probability: of all times"),
        ([42.86, 0.847], "Not in percent"),
        ([72 / 168, 0.9], "The probability is right"),
        ([72 / 168, 0.849], "Very close"),
    ],
)
def test_each_wrong_number_of_the_chance_gets_its_hint(numbers, words):
    verdict = l01.chance_from_counts(numbers)
    assert not verdict
    assert words in verdict.message


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda ids, pair, new: [new], "should have shape"),
        (lambda ids, pair, new: "97 98", "tensor"),
        (lambda ids, pair, new: list(ids) * 2, "when called with [1, 2, 3, 1, 2], (1, 2), 9"),
        (lambda ids, pair, new: ids, "make it a tuple"),
    ],
)
def test_another_merge_is_told_where_it_differs(function, words):
    verdict = l01.merge_pair(function)
    assert not verdict
    assert words in verdict.message
