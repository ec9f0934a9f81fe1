"""What the checks of lesson L02 do beyond what every check does."""

import math
from itertools import permutations

import pytest
import torch
from torch import nn

from attncourse.lessons import l02
from attncourse.lessons.l02.judging import KINDS, MAPS, NOTICED, READERS
from attncourse.lessons.l02.positions import (
    DOT_PRODUCTS,
    KEY,
    LATER,
    PAIRS,
    PLACES,
    QUERY,
    TURNS,
    WIDTH,
    turned,
)  # fmt: skip
from attnlib import causal_mask
from attnlib.positions import sinusoidal_positions


def by_the_identity(ids, table):
    one_hot = torch.eye(len(table))[ids]
    return one_hot, torch.einsum("tv,vd->td", one_hot, table)


def by_one_product_each(ids, table):
    one_hot = nn.functional.one_hot(ids, len(table)).to(table.dtype)
    return one_hot, torch.stack([row @ table for row in one_hot])


def by_sums(ids, table):
    one_hot = nn.functional.one_hot(ids, len(table))
    return one_hot, (one_hot[:, :, None] * table).sum(1)


def pe_in_double(p, d):
    numbers = [
        f(p * math.exp(-2 * i / d * math.log(10_000)))
        for i in range(d // 2)
        for f in (math.sin, math.cos)
    ]
    return torch.tensor(numbers, dtype=torch.float64)


def test_solutions_may_be_written_in_other_ways():
    assert l02.lookup(by_the_identity)
    assert l02.lookup(by_one_product_each)
    assert l02.lookup(by_sums)
    assert l02.pe(pe_in_double)
    assert l02.pe(lambda p, d: sinusoidal_positions(p + 1, d)[-1])
    assert l02.dot_products([2, 0.58, 0.58])
    assert l02.quarter_turns([-3.0, -1, 2, 1, -7, -7])
    assert l02.notices(dict(reversed(NOTICED.items())))
    assert l02.score_maps(dict(reversed(MAPS.items())))


# --- the numbers and words that are asked for ---------------------------------------------------


def test_the_dot_products_are_those_of_the_vectors():
    table = sinusoidal_positions(1003, WIDTH, dtype=torch.float64)
    products = torch.stack([table[p] @ table[q] for p, q in PAIRS])
    torch.testing.assert_close(DOT_PRODUCTS, products)


def test_the_score_is_that_of_turned_pairs_at_both_places():
    for places in (PLACES, LATER):
        query, key = (
            torch.tensor(turned(pair, place))
            for pair, place in zip((QUERY, KEY), places, strict=True)
        )
        assert query @ key == TURNS[-1] == TURNS[-2]
    angle = torch.tensor(5 * math.pi / 2)  # as rotary positions turn, by sines and cosines
    x, y = KEY
    pair = torch.stack([x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()])
    torch.testing.assert_close(pair, torch.tensor(turned(KEY, 5)))


def test_those_notice_the_order_whose_output_differs():
    torch.manual_seed(0)
    dog, bites, man = torch.randn(3, 8) / 2
    places = torch.randn(3, 8) / 2
    everyone = torch.ones(3, 3, dtype=torch.bool)

    def attend(x, mask):
        return (x @ x.T).masked_fill(~mask, -math.inf).softmax(-1) @ x

    def read(words, at_dog):
        to_the_left = attend(words, causal_mask(3))
        return {
            "mean": words.mean(0),
            "attention": attend(words, everyone)[2],
            "positions": attend(words + places, everyone)[2],
            "causal": to_the_left[2],
            "dog": to_the_left[at_dog],
        }

    one = read(torch.stack([dog, bites, man]), at_dog=0)
    other = read(torch.stack([bites, dog, man]), at_dog=1)
    for reader in READERS:
        differs = not torch.allclose(one[reader], other[reader], atol=1e-4)
        assert ("yes" if differs else "no") == NOTICED[reader], reader


# --- hints --------------------------------------------------------------------------------------


def test_a_loop_over_clocks_in_python_s_own_numbers_gets_the_hint_of_its_mistake():
    def quicker(p, d):
        angles = [p * 10_000 ** (2 * i / d) for i in range(d // 2)]
        return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])

    verdict = l02.pe(quicker)
    assert not verdict and "quicker" in verdict.message


def test_a_second_clock_that_is_a_little_too_quick_is_not_called_close():
    too_quick = math.cos(2) + math.cos(0.2)
    verdict = l02.dot_products([2, too_quick, too_quick])
    assert not verdict and "second turns by" in verdict.message


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0, 1, 2, 1, -7, -7], "The query isn't right"),
        ([-3, -1, -1, -2, -7, -7], "the key isn't: five quarter turns"),
        ([-3, -1, 2, 1, -4, -7], "the score isn't: number times number"),
        ([-3, -1, 2, 1, -7, 4], "How far apart"),
    ],
)
def test_the_first_row_that_is_wrong_is_named(numbers, words):
    verdict = l02.quarter_turns(numbers)
    assert not verdict and words in verdict.message


def test_a_one_hot_row_by_hand_may_be_of_another_kind_of_number():
    def whole(ids, table):
        one_hot = nn.functional.one_hot(ids, len(table))
        return one_hot, one_hot @ table  # whole numbers times others: PyTorch refuses

    verdict = l02.lookup(whole)
    assert not verdict and "returns integers" in verdict.message


@pytest.mark.parametrize(
    "rows_of",
    [
        lambda ids, table: table[ids],
        lambda ids, table: torch.stack([table[i] for i in ids]),
        lambda ids, table: table.index_select(0, ids),
        lambda ids, table: nn.Embedding.from_pretrained(table)(ids),
    ],
)
def test_rows_that_are_looked_up_are_no_product(rows_of):
    verdict = l02.lookup(lambda ids, table: (torch.eye(len(table))[ids], rows_of(ids, table)))
    assert not verdict and "These rows are looked up" in verdict.message


@pytest.mark.parametrize("check", [l02.notices, l02.score_maps])
@pytest.mark.parametrize("answer", [None, "rotary", {}, {"A": "rotary"}, ["yes"] * 5])
def test_only_a_whole_dictionary_is_an_answer(check, answer):
    verdict = check(answer)
    assert not verdict and "dictionary with these keys" in verdict.message


def test_unknown_words_are_named():
    assert (
        "mean: one of these was wanted: yes, no"
        in l02.notices(NOTICED | {"mean": "perhaps"}).message
    )
    assert "B: one of these was wanted" in l02.score_maps(MAPS | {"B": ["none"]}).message


def test_every_wrong_order_of_kinds_gets_a_hint_about_a_wrong_map():
    for kinds in permutations(KINDS):
        answer = dict(zip(MAPS, kinds, strict=True))
        assert bool(l02.score_maps(answer)) == (answer == MAPS)
