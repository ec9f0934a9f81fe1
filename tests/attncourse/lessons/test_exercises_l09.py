"""Checks of L09: right answers in other words, what is nearly right, and the numbers asked for."""

import math
from itertools import product

import torch
from tools.verdicts import PASSES, verdicts

from attncourse.lessons import l09
from attncourse.lessons.l09.by_hand import COSTS, DIFFERENCES, HEADS, KEYS, RIGHT, WIDTH
from attncourse.lessons.l09.judging import PLANE, REACHED, RUN, SCORES, SIZES, UNEQUAL
from attnlib import MultiHeadAttention


def by_singular_values(module, head):
    d_k = module.d_model // module.num_heads
    W_q, W_k = (W.weight.unflatten(0, (-1, d_k))[head] for W in (module.W_q, module.W_k))
    return (torch.linalg.svdvals(W_q.mT @ W_k) > 1e-4).sum()


test_answers = verdicts(
    {
        l09.one_head: {
            PASSES: [  # other numbers than in the solution; a score of -inf hides a box
                lambda first, second: [20 * (2 * first - 1) + 3, 20 * (1 - 2 * second) + 3, 3],
                lambda first, second: [20 if first else -math.inf, -math.inf if second else 20, 0],
            ],
            "0 in the first box and 1": [lambda first, second: [8 * first, 1 - second, 0]],
            "score of the first": [lambda first, second: torch.tensor([0.0, 8 * second, 0.0])],
            "score of the second": [lambda first, second: torch.tensor([16 * first - 8, 1.0, 0.0])],
            "Three finite": [lambda first, second: [1, 2, math.inf]],
        },
        l09.reachable: {"e lies": [REACHED | {"e": "yes"}]},
        l09.head_rank: {PASSES: [by_singular_values]},
        l09.cost_of_heads: {"Multiplications: ": [[1024, 1024, 4096, 320, 320, 999]]},
        l09.number_or_width: {
            PASSES: [RUN | {"heads": 16, "d_k": 16, "bleu": 25.4}],
            "bleu: one of these was wanted: 25.4": [RUN | {"bleu": "25.8"}],
        },
    }
)


def test_the_fourth_content_is_that_of_a_mixture_with_fixed_weights():
    first, second = 0.75, 0.25
    own = {3: DIFFERENCES[3, 3], 7: DIFFERENCES[7, 7]}
    for (a, b), said in DIFFERENCES.items():
        assert first * own[a] + second * own[b] == said
    assert RIGHT.tolist() == [first * own[3] + second * own[7], first, second]


def test_costs_are_those_of_the_module():
    for (h, d_k), (size, work) in zip(HEADS.values(), COSTS.T.tolist(), strict=True):
        columns = [(WIDTH, h * d_k)] * 3 + [(h * d_k, WIDTH)]
        assert size == sum(rows * width for rows, width in columns)
        assert work == h * (KEYS * d_k + KEYS * d_k)
    module = MultiHeadAttention(WIDTH, 4, bias=False)
    assert sum(p.numel() for p in module.parameters()) == COSTS[0, 0]


def test_keys_that_are_reached_are_those_that_a_query_can_favor():
    angles = torch.linspace(0, 2 * math.pi, 3601)
    queries = torch.stack([angles.cos(), angles.sin()], dim=1)
    won = (queries @ torch.tensor([*PLANE.values()]).T).argmax(-1).unique().tolist()
    reached = [name for name, said in REACHED.items() if said == "yes"]
    assert reached == [list(PLANE)[i] for i in won]


def test_two_models_alone_tell_the_number_from_the_width():
    every = product(SIZES, SIZES, SCORES, UNEQUAL)
    right = [answer for answer in every if l09.number_or_width(dict(zip(RUN, answer, strict=True)))]
    assert right == [(16, 16, 25.4, "parameters"), (32, 32, 25.8, "parameters")]
