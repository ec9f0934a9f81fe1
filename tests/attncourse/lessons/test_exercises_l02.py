"""Checks of L02: right answers in other words, what is nearly right, and the numbers asked for."""

import math

import torch
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l02
from attncourse.lessons.l02.judging import MAPS, NOTICED, READERS
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


def quicker(p, d):
    angles = [p * 10_000 ** (2 * i / d) for i in range(d // 2)]
    return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])


def looked_up(rows):
    """Return right one-hot rows beside rows that aren't made from them."""
    return lambda ids, table: (torch.eye(len(table))[ids], rows(ids, table))


test_answers = verdicts(
    {
        l02.lookup: {
            PASSES: [by_sums],
            "returns integers": [looked_up(lambda ids, table: nn.functional.one_hot(ids) @ table)],
            "These rows are looked up": [
                looked_up(lambda ids, table: torch.stack([table[i] for i in ids])),
                looked_up(lambda ids, table: nn.Embedding.from_pretrained(table)(ids)),
            ],
        },
        l02.pe: {
            PASSES: [pe_in_double, lambda p, d: sinusoidal_positions(p + 1, d)[-1]],
            "quicker": [quicker],
            "were one larger": [lambda p, d: pe_in_double(p + 1, d)],
        },
        l02.dot_products: {
            PASSES: [[2, 0.58, 0.58]],
        },
        l02.quarter_turns: {
            PASSES: [[-3.0, -1, 2, 1, -7, -7]],
        },
        l02.score_maps: {"B: one of these was wanted": [MAPS | {"B": ["none"]}]},
    }
)


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
