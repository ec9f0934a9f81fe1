"""Checks of L02: right answers in other words, what is nearly right, and the numbers asked for."""

import math

import torch
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l02
from attncourse.lessons.l02.maps import RIGHT as MAPS
from attncourse.lessons.l02.noticing import READERS
from attncourse.lessons.l02.noticing import RIGHT as NOTICED
from attncourse.lessons.l02.rotary import KEY, LATER, PLACES, QUERY, turned
from attncourse.lessons.l02.rotary import RIGHT as TURNS
from attncourse.lessons.l02.sinusoids import DOT_PRODUCTS, PAIRS, WIDTH
from attnlib import causal_mask
from attnlib.positions import sinusoidal_positions


def by_the_identity(ids, table):
    one_hot = torch.eye(len(table))[ids]
    return one_hot, torch.einsum("tv,vd->td", one_hot, table)


def by_embedding(ids, table):
    return nn.functional.one_hot(ids, len(table)), nn.functional.embedding(ids, table)


def by_whole_numbers(ids, table):
    one_hot = nn.functional.one_hot(ids, len(table))
    return one_hot, one_hot @ table  # whole numbers times others: PyTorch refuses


def pe_in_double(p, d):
    numbers = [
        f(p * math.exp(-2 * i / d * math.log(10_000)))
        for i in range(d // 2)
        for f in (math.sin, math.cos)
    ]
    return torch.tensor(numbers, dtype=torch.float64)


def quicker(p, d):
    angles = [p * 10_000 ** (2 * i / d) for i in range(d // 2)]
    return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])


TOO_QUICK = math.cos(2) + math.cos(0.2)

test_answers = verdicts(
    {
        l02.lookup: {PASSES: [by_the_identity, by_embedding], "dtype": [by_whole_numbers]},
        l02.pe: {
            PASSES: [pe_in_double, lambda p, d: sinusoidal_positions(p + 1, d)[-1]],
            "quicker": [quicker],
        },
        l02.dot_products: {
            PASSES: [[2, 0.58, 0.58]],
            "second": [[2, TOO_QUICK, TOO_QUICK]],  # a little: and yet not called close
        },
        l02.quarter_turns: {PASSES: [[-3.0, -1, 1, 2, -5, -5]]},
        l02.notices: {
            PASSES: [dict(reversed(NOTICED.items()))],
            "these keys": [None, {}, {"A": "rotary"}, ["yes"] * 5],
            "mean: ": [NOTICED | {"mean": "perhaps"}],
        },
        l02.score_maps: {
            PASSES: [dict(reversed(MAPS.items()))],
            "B: ": [MAPS | {"B": ["none"]}],
        },
    }
)


def test_the_dot_products_are_those_of_the_vectors():
    table = sinusoidal_positions(1003, WIDTH, dtype=torch.float64)
    products = torch.stack([table[p] @ table[q] for p, q in PAIRS])
    torch.testing.assert_close(DOT_PRODUCTS, products)


def test_the_score_is_that_of_turned_pairs_at_both_places():
    for query_at, key_at in (PLACES, LATER):
        query = torch.tensor(turned(QUERY, query_at))
        assert query @ torch.tensor(turned(KEY, key_at)) == TURNS[-1] == TURNS[-2]
    angle = torch.tensor(5 * math.pi / 2)  # as rotary positions turn, by sines and cosines
    x, y = KEY
    pair = torch.stack([x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()])
    torch.testing.assert_close(pair, torch.tensor(turned(KEY, 5)))


def test_those_notice_the_order_whose_output_differs():
    dog, bites, man, period = torch.randn(4, 8) / 2
    places = torch.randn(3, 8) / 2

    def attend(x, mask):
        return (x @ x.T).masked_fill(~mask, -math.inf).softmax(-1) @ x

    def read(*three):
        words, ended = torch.stack(three), torch.stack([*three, period])
        everyone = torch.ones(3, 3, dtype=torch.bool)
        return {
            "mean": words.mean(0),
            "attention": attend(words, everyone)[1],
            "positions": attend(words + places, everyone)[1],
            "causal": attend(words, causal_mask(3))[1],
            "period": attend(ended, causal_mask(4))[3],
        }

    one, other = read(dog, bites, man), read(man, bites, dog)
    for reader in READERS:
        differs = not torch.allclose(one[reader], other[reader], atol=1e-4)
        assert ("yes" if differs else "no") == NOTICED[reader], reader
