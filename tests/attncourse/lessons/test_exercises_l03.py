"""Checks of L03: right answers in other words, and what is nearly right."""

from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tools.verdicts import PASSES, hint, verdicts

from attncourse.lessons import l03


def fused(Q, K, V, mask=None):
    """PyTorch's own function, which also gives zeros where nothing may be seen."""
    eye = torch.eye(K.shape[-2]).expand(*K.shape[:-2], -1, -1)
    return [F.scaled_dot_product_attention(Q, K, v, attn_mask=mask).numpy() for v in (V, eye)]


def sum_of(weights):
    return weights.sum(-1, keepdim=True)


def masked_by(weigh):
    """Return attention whose weights are `weigh(scores, mask)` where there is a mask."""

    def attention(Q, K, V, mask=None):
        scores = Q @ K.mT / Q.shape[-1] ** 0.5
        weights = scores.softmax(-1) if mask is None else weigh(scores, mask)
        return weights @ V, weights

    return attention


def shared_out(share):
    """Return attention whose weights are masked, and shared out again."""
    return masked_by(lambda scores, mask: share(scores.softmax(-1) * mask))


def filled(number):
    """Return attention that fills forbidden scores with a number, and leaves blind rows empty."""
    return masked_by(
        lambda scores, mask: (
            scores.masked_fill(~mask, number).softmax(-1) * mask.any(-1, keepdim=True)
        )
    )


def unscaled_and_inverted(Q, K, V, mask=None):
    scores = Q @ K.mT
    weights = (scores if mask is None else scores.masked_fill(mask, -torch.inf)).softmax(-1)
    return weights @ V, weights


def in_place(Q, K, V, mask=None):
    Q /= Q.shape[-1] ** 0.5
    weights = (Q @ K.mT).softmax(-1)
    return weights @ V, weights


LOWEST = torch.finfo(torch.float32).min


def clamped(low, high):
    return lambda s: s.clamp(low, high).exp() / sum_of(s.clamp(low, high).exp())


def sum_without_keepdim(s):
    exponentials = (s - s.amax(-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(-1)


def toward(target):
    return lambda V: (target(V), torch.ones(V.shape[1]))


def along_a_random_direction(V):
    """Return the farthest value plus a step along a direction."""
    direction = torch.randn(V.shape[1])
    return (V[(V @ direction).argmax()] + direction).tolist(), direction


def same(left, right):
    return torch.allclose(left, right, atol=1e-4)


def with_generators(layer, x):  # all shuffles are made of these two
    T = len(x)
    return all(same(layer(x[p]), layer(x)[p]) for p in ([1, 0, *range(2, T)], [*range(1, T), 0]))


def all_at_once(layer, x):
    shuffles = torch.stack([torch.randperm(len(x)) for _ in range(6)])
    return same(torch.vmap(layer)(x[shuffles]), layer(x)[shuffles])


def returns_too_soon(layer, x):
    return any(same(layer(x[p]), layer(x)[p]) for p in (torch.randperm(len(x)) for _ in range(10)))


def swaps_the_last(layer, x):
    swap = [*range(len(x) - 2), len(x) - 1, len(x) - 2]
    return same(layer(x[swap]), layer(x)[swap])


def knows_causal_layers(layer, x):
    last = x.clone()
    last[-1] += 1
    return not torch.allclose(layer(x)[:-1], layer(last)[:-1])


test_answers = verdicts(
    {
        l03.attention: {
            PASSES: [fused, filled(-1e9)],
            "Nearly right": [
                shared_out(lambda weights: weights / (sum_of(weights) + 1e-9)),
                shared_out(
                    lambda weights: torch.where(sum_of(weights) > 0, weights / sum_of(weights), 0)
                ),
            ],
            "low enough": [filled(-10.0), filled(-300.0)],
            "infinite or 0": [
                masked_by(lambda s, m: (s.exp() * m / sum_of(s.exp() * m)).nan_to_num(0))
            ],
            "scale": [unscaled_and_inverted],  # wrong twice: the formula comes first
            "RuntimeError": [lambda Q, K, V, mask=None: Q.view(-1, 1000003)],  # no transpose
            "argument number 1": [in_place],
            "wrong way round": [masked_by(lambda s, m: s.masked_fill(m, LOWEST).softmax(-1))],
        },
        l03.stable_softmax: {
            PASSES: [
                lambda s: (s - s.logsumexp(-1, keepdim=True)).exp(),
                lambda s: clamped(None, 0)(s - s.amax(-1, keepdim=True)),  # where it does no harm
            ],
            "keepdim=True": [sum_without_keepdim],
            "`.values`": [lambda s: (s - s.max(-1)).exp()],
            "torch's own": [lambda s: s.log_softmax(-1).exp(), lambda s: F.softmin(-s, -1)],
            "unsupported operand": [lambda s: s + {}],  # another TypeError keeps its own words
            "RuntimeError": [lambda s: s.view(-1, 1000003)],  # and another RuntimeError
            hint(l03.stable_softmax, "clamped"): [clamped(-80.0, 80.0), clamped(None, 50.0)],
        },
        l03.softmax_row: {
            PASSES: [[Fraction(1, 8), Fraction(2, 8), Fraction(5, 8), 20]],
            "raw dot products": [[1 / 30, 4 / 30, 25 / 30, 5]],  # whatever the output is
            "their sum": [[1, 2, 5, 20]],
            "Very close": [[0.13, 0.25, 0.63, 20]],
            "quotation marks": [["0,125", "0,25", "0,625", "20"], ["1/8", "2/8", "5/8", "20"]],
            "0.25 with a point": [[0, 125, 0, 25, 0, 625, 20]],
            "each ...": [[0.125, 0.25, ..., 20]],
            "nan": [[0.125, 0.25, 0.625, torch.nan]],
            "infinite": [[torch.inf, 0.25, 0.625, 20]],
            "complex": [[0.125 + 3j, 0.25, 0.625, 20]],
            "can't be read": [torch.tensor([0.125 + 3j, 0.25, 0.625, 20])],
            "[4], but yours is [0].": [[]],
        },
        l03.reach: {
            "lengths": [[0, 17**0.5, 10**0.5, 6, 5]],
            "length of the direction": [[0, 3.54, 2.83, 6, 5]],
        },
        l03.copying_query: {
            PASSES: [[0, 0, 0, 20], torch.tensor([[-10.0, 10, -10, 10]])],
            "overflow": [torch.tensor([0, 1e308, 0, 1e308], dtype=torch.float64)],
            "finite": [[torch.inf, 0, 0, 0]],
        },
        l03.head_in_order: {
            PASSES: [("project", "match", "mask", "scale", "softmax", "mix")],
            "wanted": [["project"], ["mix"] * 6, [[], "mix"], {"mix": 1}],
        },
        l03.odd_rows: {"row 5: ": [{"row 2": "twice", "row 5": []}]},
        l03.unreachable: {
            PASSES: [
                along_a_random_direction,
                lambda V: (V.numpy().min(0) - 1, -np.ones(V.shape[1])),
            ],
            "every V": [toward(lambda V: torch.full((V.shape[1],), 1e6))],
            "fixed distance": [toward(lambda V: V.mean(0) + 1e6)],
            "step of your own": [toward(lambda V: 2 * V.abs().max() * torch.ones(V.shape[1]))],
            "*all* of them": [
                toward(lambda V: V.amax(0)),
                toward(lambda V: V.mean(0) + 10 * (1 + V.std())),  # not with outliers
            ],
            "wrong way": [toward(lambda V: V.amin(0) - 1)],
            "RuntimeError": [lambda V: V[:2] if V.shape[1] == 2 else V.reshape(7, 7)],
            "is no tensor": [lambda V: ("text", V[0])],
            "is [3, 3]": [lambda V: (V[0], torch.ones(3, 3))],
        },
        l03.is_equivariant: {
            PASSES: [with_generators, all_at_once],
            "single shuffle": [returns_too_soon, swaps_the_last],
            "Rolling": [lambda layer, x: same(layer(x.roll(3, 0)), layer(x).roll(3, 0))],
            "attention that adds a place": [knows_causal_layers],
        },
    }
)


@pytest.mark.parametrize("seed", [1, 3])
def test_an_output_that_stays_in_its_place_is_told_from_one_shuffled_again(seed):
    def unchanged(layer, x):
        return same(layer(x[torch.randperm(len(x))]), layer(x))

    def again(layer, x):
        shuffle = torch.randperm(len(x))
        return same(layer(x[shuffle])[shuffle], layer(x))

    torch.manual_seed(seed)
    assert l03.is_equivariant(unchanged).message == hint(l03.is_equivariant, "unchanged")
    assert l03.is_equivariant(again).message == hint(l03.is_equivariant, "again")
