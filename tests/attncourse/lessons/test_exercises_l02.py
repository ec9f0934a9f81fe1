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
        l02.pe: {PASSES: [pe_in_double]},
        l02.quarter_turns: {PASSES: [(*positions._TURNED, -7, torch.tensor(-7.0))]},
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
    words, places = torch.randn(2, 3, 8) / 2
    everyone = torch.ones(3, 3).bool()

    def attend(x, mask):
        return (x @ x.T).masked_fill(~mask, -math.inf).softmax(-1) @ x

    readers = {
        "mean": lambda x: x.mean(0),
        "attention": lambda x: attend(x, everyone)[2],
        "positions": lambda x: attend(x + places, everyone)[2],
        "causal": lambda x: attend(x, causal_mask(3))[2],
        "dog": lambda x: attend(x, causal_mask(3))[(x == words[0]).all(-1)],  # wherever it is
    }
    for reader in READERS:
        one, other = readers[reader](words), readers[reader](words[[1, 0, 2]])
        differs = not torch.allclose(one, other, atol=1e-4)
        assert ("yes" if differs else "no") == NOTICED[reader], reader
