"""Checks of L02: right answers in other words, what is nearly right, and the numbers asked for."""

import math

import torch
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l02
from attncourse.lessons.l02 import positions
from attncourse.lessons.l02.judging import MAPS, NOTICED, READERS
from attnlib import causal_mask
from attnlib.positions import sinusoidal_positions


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


test_answers = verdicts(
    {
        l02.lookup: {PASSES: [by_sums]},
        l02.pe: {PASSES: [pe_in_double, lambda p, d: sinusoidal_positions(p + 1, d)[-1]]},
        l02.score_maps: {"B: one of these was wanted": [MAPS | {"B": ["none"]}]},
    }
)


def test_the_dot_products_are_those_of_the_vectors():
    table = sinusoidal_positions(1003, positions.WIDTH, dtype=torch.float64)
    products = torch.stack([table[p] @ table[q] for p, q in positions.PAIRS])
    torch.testing.assert_close(positions.DOT_PRODUCTS, products)


def test_the_score_is_that_of_turned_pairs_at_both_places():
    query, key, turned = positions.QUERY, positions.KEY, positions.turned
    for at, other in (positions.PLACES, positions.LATER):
        score = torch.tensor(turned(query, at)) @ torch.tensor(turned(key, other))
        assert score == positions.TURNS[-1] == positions.TURNS[-2]
    angle = torch.tensor(5 * math.pi / 2)  # as rotary positions turn, by sines and cosines
    x, y = key
    pair = torch.stack([x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()])
    torch.testing.assert_close(pair, torch.tensor(turned(key, 5)))


def test_those_notice_the_order_whose_output_differs():
    dog, bites, man = torch.randn(3, 8) / 2
    places = torch.randn(3, 8) / 2

    def attend(x, mask):
        return (x @ x.T).masked_fill(~mask, -math.inf).softmax(-1) @ x

    def read(words, at_dog):
        to_the_left, everyone = attend(words, causal_mask(3)), torch.ones(3, 3).bool()
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
