"""Checks of L03: right answers in other words, and what is nearly right."""

from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
from tools.verdicts import PASSES, verdicts

from attncourse.lessons import l03


def fused(Q, K, V, mask=None):
    """PyTorch's own function, which also gives zeros where nothing may be seen."""
    eye = torch.eye(K.shape[-2]).expand(*K.shape[:-2], -1, -1)
    return [F.scaled_dot_product_attention(Q, K, v, attn_mask=mask).numpy() for v in (V, eye)]


def filled(Q, K, V, mask=None):
    """A low number instead of minus infinity, and blind rows left empty."""
    mask = torch.ones(Q.shape[-2], K.shape[-2]).bool() if mask is None else mask
    scores = (Q @ K.mT / Q.shape[-1] ** 0.5).masked_fill(~mask, -1e9)
    weights = scores.softmax(-1) * mask.any(-1, keepdim=True)
    return weights @ V, weights


def clamped(s):
    exponentials = s.clamp(max=50.0).exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


def with_generators(layer, x):  # all shuffles are made of these two
    orders = [1, 0, *range(2, len(x))], [*range(1, len(x)), 0]
    return all(torch.allclose(layer(x[p]), layer(x)[p], atol=1e-4) for p in orders)


test_answers = verdicts(
    {
        l03.attention: {
            PASSES: [fused, filled],
            l03.attention.hints["exponentials"]: [
                lambda Q, K, *rest: fused(Q * ((Q @ K.mT).abs().max() < 900), K, *rest)
            ],
        },
        l03.stable_softmax: {
            PASSES: [
                lambda s: (s - s.logsumexp(-1, keepdim=True)).exp(),
                lambda s: clamped(s - s.amax(-1, keepdim=True)),  # where it does no harm
            ],
            l03.stable_softmax.hints["clamped"]: [clamped],
        },
        l03.softmax_row: {
            PASSES: [[Fraction(1, 8), Fraction(2, 8), Fraction(5, 8), 20]],
            "raw dot products": [[1 / 30, 4 / 30, 25 / 30, 5]],  # whatever the output is
            "Very close": [[0.13, 0.25, 0.63, 20]],
            "quotation marks": [["0,125", "0,25", "0,625", "20"]],
            "0.25 with a point": [[0, 125, 0, 25, 0, 625, 20]],
            "each ...": [[0.125, 0.25, ..., 20]],
            "nan": [[0.125, 0.25, 0.625, torch.nan]],
            "can't be read": [torch.tensor([0.125 + 3j, 0.25, 0.625, 20])],
            "[4], but yours is [0].": [[]],
        },
        l03.copying_query: {
            PASSES: [[0, 0, 0, 20], torch.tensor([[-10.0, 10, -10, 10]])],
            "overflow": [torch.tensor([0, 1e308, 0, 1e308], dtype=torch.float64)],
            "finite": [[torch.inf, 0, 0, 0]],
        },
        l03.head_in_order: {
            PASSES: [("project", "match", "mask", "scale", "softmax", "mix")],
            "wanted": [["project"], [[], "mix"]],
        },
        l03.odd_rows: {"row 5: ": [{"row 2": "twice", "row 5": []}]},
        l03.unreachable: {
            PASSES: [lambda V: (V.numpy().min(0) - 1, -np.ones(V.shape[1]))],
            "*all* of them": [
                lambda V: (V.mean(0) + 10 * (1 + V.std()), torch.ones(V.shape[1]))  # no outliers
            ],
            "is no tensor": [lambda V: ("text", V[0])],
            "is [3, 3]": [lambda V: (V[0], torch.ones(3, 3))],
        },
        l03.is_equivariant: {PASSES: [with_generators]},
    }
)
