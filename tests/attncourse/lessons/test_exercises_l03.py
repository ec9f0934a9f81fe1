"""Checks of L03: right answers in other words, and what is nearly right."""

from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tools.verdicts import PASSES, hint, verdicts

from attncourse.lessons import l03

# --- attention -----------------------------------------------------------------------------------


def by_hand(Q, K, V, mask=None):
    """Attention for any axes in front, one row at a time."""
    front = Q.shape[:-1]
    weights = Q.new_zeros(*front, K.shape[-2])
    for place in np.ndindex(*front):
        *f, i = place
        scores = K[tuple(f)] @ Q[place] / Q.shape[-1] ** 0.5
        seen = torch.ones(len(scores), dtype=torch.bool) if mask is None else mask[i]
        if seen.any():
            weights[place][seen] = scores[seen].softmax(0)
    return torch.einsum("...qk,...kd->...qd", weights, V), weights


def fused(Q, K, V, mask=None):
    """PyTorch's own function, which also gives zeros where nothing may be seen."""
    eye = torch.eye(K.shape[-2]).expand(*K.shape[:-2], -1, -1)
    output = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    return output, F.scaled_dot_product_attention(Q, K, eye, attn_mask=mask)


def in_numpy(Q, K, V, mask=None):
    Q, K, V = (x.numpy() for x in (Q, K, V))
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    allowed = np.ones(scores.shape[-2:], bool) if mask is None else mask.numpy()
    largest = np.where(allowed, scores, -np.inf).max(-1, keepdims=True)
    powers = np.where(allowed, scores - np.where(np.isfinite(largest), largest, 0), -np.inf)
    total = np.exp(powers).sum(-1, keepdims=True)
    weights = np.exp(powers) / np.where(total > 0, total, 1)
    return weights @ V, weights


def scores_of(Q, K):
    return Q @ K.mT / Q.shape[-1] ** 0.5


def sum_of(weights):
    return weights.sum(-1, keepdim=True)


def masked_by(weigh):
    """Return attention whose weights are `weigh(scores, mask)` where there is a mask."""

    def attention(Q, K, V, mask=None):
        scores = scores_of(Q, K)
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


def added(number):
    return masked_by(
        lambda scores, mask: (scores + number * ~mask).softmax(-1) * mask.any(-1, keepdim=True)
    )


def by_exponentials(Q, K, V, mask=None):
    exponentials = scores_of(Q, K).exp() * (1 if mask is None else mask)
    weights = (exponentials / sum_of(exponentials)).nan_to_num(0)
    return weights @ V, weights


def unscaled_and_inverted(Q, K, V, mask=None):
    scores = Q @ K.mT
    weights = (scores if mask is None else scores.masked_fill(mask, -torch.inf)).softmax(-1)
    return weights @ V, weights


def in_place(Q, K, V, mask=None):
    Q /= Q.shape[-1] ** 0.5
    weights = (Q @ K.mT).softmax(-1)
    return weights @ V, weights


LOWEST = torch.finfo(torch.float32).min

test_attention = verdicts(
    {
        l03.attention: {
            PASSES: [by_hand, fused, in_numpy, filled(-1e9)],
            "Nearly right": [
                shared_out(lambda weights: weights / (sum_of(weights) + 1e-9)),
                shared_out(lambda weights: weights / sum_of(weights).clamp(min=1e-6)),
                shared_out(lambda weights: F.normalize(weights, p=1, dim=-1)),
                shared_out(lambda w: torch.where(sum_of(w) > 0, w / sum_of(w), 0)),
            ],
            "low enough": [*map(filled, (-10.0, -50.0, -300.0)), added(-50.0), added(-300.0)],
            "infinite or 0": [by_exponentials],
            "scale": [unscaled_and_inverted],  # wrong twice: the formula comes first
            "RuntimeError": [lambda Q, K, V, mask=None: Q.view(-1, 1000003)],  # no transpose
            "argument number 1": [in_place],
            "wrong way round": [masked_by(lambda s, mask: s.masked_fill(mask, LOWEST).softmax(-1))],
        }
    }
)


# --- softmax -------------------------------------------------------------------------------------


def clamped(low, high):
    def softmax(s):
        exponentials = s.clamp(low, high).exp()
        return exponentials / sum_of(exponentials)

    return softmax


def sum_without_keepdim(s):
    exponentials = (s - s.amax(-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(-1)


def clamped_where_it_is_right_anyway(s):
    exponentials = (s - s.amax(-1, keepdim=True)).clamp(max=0).exp()
    return exponentials / sum_of(exponentials)


test_softmax = verdicts(
    {
        l03.stable_softmax: {
            PASSES: [
                lambda s: (s - s.logsumexp(-1, keepdim=True)).exp(),
                clamped_where_it_is_right_anyway,
            ],
            "keepdim=True": [sum_without_keepdim],
            "`.values`": [lambda s: (s - s.max(-1)).exp()],
            "torch's own": [
                lambda s: s.log_softmax(-1).exp(), torch.nn.Softmax(-1), lambda s: F.softmin(-s, -1)
            ],
            "unsupported operand": [lambda s: s + {}],  # another TypeError keeps its own words
            "RuntimeError": [lambda s: s.view(-1, 1000003)],  # and another RuntimeError
            hint(l03.stable_softmax, "clamped"): [
                clamped(-80.0, 80.0), clamped(-20.0, 20.0), clamped(None, 50.0)
            ],
        }
    }
)  # fmt: skip


# --- numbers and choices -------------------------------------------------------------------------

test_numbers = verdicts(
    {
        l03.softmax_row: {
            PASSES: [
                [Fraction(1, 8), Fraction(2, 8), Fraction(5, 8), 20],
                torch.tensor([0.125, 0.25, 0.625, 20]),
            ],
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
            PASSES: [torch.tensor([0, 5, 4, 6, 5])],
            "lengths": [[0, 17**0.5, 10**0.5, 6, 5]],
            "length of the direction": [[0, 3.54, 2.83, 6, 5]],
        },
        l03.copying_query: {
            PASSES: [[0, 0, 0, 20], torch.tensor([[-10.0, 10, -10, 10]])],
            "overflow": [torch.tensor([0, 1e308, 0, 1e308], dtype=torch.float64)],
        },
        l03.head_in_order: {
            PASSES: [("project", "match", "mask", "scale", "softmax", "mix")],
            "wanted": [["project"], ["mix"] * 6, [[], "mix"], {"mix": 1}],
        },
        l03.odd_rows: {
            PASSES: [{"row 2": "twice", "row 5": "missing"}],
            "these keys": [{"row 2": "twice"}],
            "row 5: ": [{"row 2": "twice", "row 5": []}],
        },
        l03.telling_run: {PASSES: ["louder"], "'longer', 'louder'": ["with the scale"]},
    }
)


def test_an_infinite_query_is_refused():
    assert not l03.copying_query([torch.inf, 0, 0, 0])


# --- what no mixture reaches ---------------------------------------------------------------------


def toward(target):
    return lambda V: (target(V), torch.ones(V.shape[1]))


def along(direction_for):
    """Return the farthest value plus a step along a direction."""

    def answer(V):
        direction = direction_for(V)
        return (V[(V @ direction).argmax()] + direction).tolist(), direction

    return answer


def only_in_the_plane(V):
    return (V[0], V[0]) if V.shape[1] == 2 else V.reshape(7, 7)


test_unreachable = verdicts(
    {
        l03.unreachable: {
            PASSES: [
                along(lambda V: torch.ones(V.shape[1])),
                along(lambda V: torch.randn(V.shape[1])),
                lambda V: (V.numpy().min(0) - 1, -np.ones(V.shape[1])),
            ],
            "every V": [
                toward(lambda V: torch.full((V.shape[1],), 1e6)),
                toward(lambda V: torch.full((V.shape[1],), 1e9)),
            ],
            "fixed way": [toward(lambda V: V.mean(0) + 1e6)],
            "step of your own": [toward(lambda V: 2 * V.abs().max() * torch.ones(V.shape[1]))],
            "*all* of them": [
                toward(lambda V: V.amax(0)),
                toward(lambda V: V.mean(0) + 10 * (1 + V.std())),  # not with outliers
            ],
            "wrong way": [toward(lambda V: V.amin(0) - 1)],
            "RuntimeError": [only_in_the_plane],
            "is no tensor": [lambda V: ("text", V[0])],
            "is [3, 3]": [lambda V: (V[0], torch.ones(3, 3))],
        }
    }
)


# --- order ---------------------------------------------------------------------------------------


def same(left, right):
    return torch.allclose(left, right, atol=1e-4)


def with_matrices(layer, x):
    shuffles = [torch.eye(len(x))[torch.randperm(len(x))] for _ in range(5)]
    return max((layer(P @ x) - P @ layer(x)).abs().max().item() for P in shuffles) < 1e-3


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


def rolls(places):
    return lambda layer, x: same(layer(x.roll(places, 0)), layer(x).roll(places, 0))


def knows_causal_layers(layer, x):
    last = x.clone()
    last[-1] += 1
    return not torch.allclose(layer(x)[:-1], layer(last)[:-1])


test_equivariance = verdicts(
    {
        l03.is_equivariant: {
            PASSES: [with_matrices, with_generators, all_at_once],
            "single shuffle": [returns_too_soon, swaps_the_last],
            "Rolling": [rolls(-1), rolls(3)],
            "attention that adds a place": [knows_causal_layers],
        }
    }
)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_an_output_that_stays_in_its_place_is_told_from_one_shuffled_again(seed):
    def unchanged(layer, x):
        return same(layer(x[torch.randperm(len(x))]), layer(x))

    def again(layer, x):
        shuffle = torch.randperm(len(x))
        return same(layer(x[shuffle])[shuffle], layer(x))

    torch.manual_seed(seed)
    assert l03.is_equivariant(unchanged).message == hint(l03.is_equivariant, "unchanged")
    assert l03.is_equivariant(again).message == hint(l03.is_equivariant, "again")
