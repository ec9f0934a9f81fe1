"""Checks of L03, The Attention Mechanism."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import (
    Exercise,
    Mistake,
    as_tensor,
    check_function,
    check_values,
    correct,
    from_museum,
    keeps_random_state,
    not_yet,
)
from attnlib.exercises._l03_attention import ATTENTION_MISTAKES, attention
from attnlib.exercises._l03_hull import HULL_MISTAKES, unreachable
from attnlib.exercises._l03_softmax import SOFTMAX_MISTAKES, stable_softmax
from attnlib.museum.scores import SCALE_TWICE

# --- one row by hand -----------------------------------------------------------------------------

_DOT_PRODUCTS = torch.tensor([0.0, 2 * math.log(2), 2 * math.log(5)], dtype=torch.float64)
_VALUES = torch.tensor([8.0, 16.0, 24.0], dtype=torch.float64)
_SCORES = _DOT_PRODUCTS / 2  # d_k = 4


def _row_and_output(weights: Tensor, output: float | None = None) -> Tensor:
    output = (weights @ _VALUES).item() if output is None else output
    return torch.cat([weights, weights.new_tensor([output])])


ROW_MISTAKES = (
    Mistake(
        "forgot the scale",
        _row_and_output(_DOT_PRODUCTS.softmax(0)),
        "These are the weights of the raw dot products. The queries are d_k = 4 numbers wide: "
        "divide by the square root of that first.",
    ),
    from_museum(SCALE_TWICE, _row_and_output((_DOT_PRODUCTS / 4).softmax(0))),
    Mistake(
        "shares of the scores",
        _row_and_output(_SCORES / _SCORES.sum()),
        "You divided the scores by their sum. Take e to the power of each score first.",
    ),
    Mistake(
        "forgot to divide by the sum",
        _row_and_output(_SCORES.exp()),
        "The exponentials are right, but weights are shares: divide by their sum.",
    ),
    Mistake(
        "winner takes all",
        _row_and_output(torch.tensor([0.0, 0.0, 1.0]).double()),
        "You gave everything to the best key. The softmax leaves the others a share.",
    ),
    Mistake(
        "plain mean of the values",
        _row_and_output(_SCORES.softmax(0), _VALUES.mean().item()),
        "The weights are right. The output is their *weighted* average of the values; yours "
        "counts all three alike.",
    ),
    Mistake(
        "values added up",
        _row_and_output(_SCORES.softmax(0), _VALUES.sum().item()),
        "The weights are right. In the output, each value counts only with its weight.",
    ),
)


def softmax_row(answer: Any) -> Verdict:
    """Check four numbers: the three weights of a row, then its output."""
    return check_values(
        answer,
        _row_and_output(_SCORES.softmax(0)),
        ROW_MISTAKES,
        tolerance=2e-3,
        praise="The weights sum to 1, and the output lies between the smallest and the largest "
        "value.",
        otherwise="Go step by step: dot product / sqrt(d_k), then e to that power (a whole number "
        "each time), then each one's share of the sum.",
    )


# --- a query that copies -------------------------------------------------------------------------

_KEYS = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]], dtype=torch.float64)

QUERY_MISTAKES = (
    Mistake(
        "the key itself",
        [1.0, 0, 1, 0],
        "Token 0 already gets the largest weight. What makes a softmax sharper without changing "
        "the order of the scores?",
    ),
    Mistake(
        "forgot the scale",
        [0.0, 0, 7, 0],
        "Enough without the division by sqrt(d_k) = 2, but the head does divide.",
    ),
    Mistake(
        "shared with token 2",
        [20.0, 0, 0, 0],
        "Token 0 has to share: its best rival's score is just as high. Reward something that only "
        "token 0's key has.",
    ),
    Mistake(
        "the wrong token",
        [0.0, 20, 0, 20],
        "Another key matches your query best. Write down your query's three dot products.",
    ),
    Mistake(
        "the wrong sign",
        [-10.0, 0, -10, 0],
        "Token 0 gets the smallest weight of all: your query points away from its key.",
    ),
    Mistake(
        "weights instead of a query",
        [1.0, 0, 0],
        "A query has as many numbers as a key: four. You can't set the weights themselves.",
    ),
)
_SHORT, _UNSCALED, _SHARED, _OTHER, _AWAY, _WEIGHTS = (m.hint for m in QUERY_MISTAKES)


def copying_query(answer: Any) -> Verdict:
    """Check a query [4] that gives token 0 more than 0.99 of token 2's attention."""
    if answer is None or answer is ...:
        return not_yet("Nothing is filled in so far: replace the ... with four numbers.")
    query = as_tensor(answer)
    if query is None or not query.isfinite().all():
        return not_yet("Four finite numbers are wanted. Is every ... replaced?")
    if query.shape == (1, 4):
        query = query[0]
    if query.shape == (3,):
        return not_yet(_WEIGHTS)
    if query.shape != (4,):
        return not_yet(f"One query is wanted, shape [4], but yours is {list(query.shape)}.")
    products = _KEYS @ query
    weights = (products / 2).softmax(0)
    if weights[0] > 0.99:
        return correct("Token 2's output is now token 0's value, almost exactly.")
    rivals = products[1:]
    if products[0] < rivals.min().clamp(max=0):
        return not_yet(_AWAY)
    if torch.isclose(products[0], rivals.max()):
        return not_yet(_SHARED)
    if products[0] < rivals.max():
        return not_yet(_OTHER)
    return not_yet(_UNSCALED if products.softmax(0)[0] > 0.99 else _SHORT)


# --- does a layer care about order? --------------------------------------------------------------

Layer = Callable[[Tensor], Tensor]


def _shuffles(T: int, count: int = 8) -> list[Tensor]:
    return [torch.randperm(T) for _ in range(count)]


def _same(left: Tensor, right: Tensor) -> bool:
    return torch.allclose(left, right, atol=1e-4)


def _is_equivariant(layer: Layer, x: Tensor) -> bool:
    return all(_same(layer(x[p]), layer(x)[p]) for p in _shuffles(len(x)))


EQUIVARIANT_MISTAKES = (
    Mistake(
        "unchanged instead of shuffled along",
        lambda layer, x: all(_same(layer(x[p]), layer(x)) for p in _shuffles(len(x))),
        "You ask whether the output stays the same. It should be shuffled in the same way.",
    ),
    Mistake(
        "shuffled twice the output",
        lambda layer, x: all(_same(layer(x)[p], layer(x)[p]) for p in _shuffles(len(x))),
        "Your function never says no. Does the layer get to see the shuffled tokens?",
    ),
    Mistake(
        "only turned around",
        lambda layer, x: _same(layer(x.flip(0)), layer(x).flip(0)),
        "Turning the sequence around is one shuffle among many. A layer that averages each token "
        "with its two neighbors passes that one; try random shuffles.",
    ),
    Mistake(
        "shuffled the features",
        lambda layer, x: all(_same(layer(x[:, p]), layer(x)[:, p]) for p in _shuffles(x.shape[1])),
        "You shuffled the columns of x, which are features. Tokens are its rows.",
    ),
    Mistake(
        "compared exactly",
        lambda layer, x: all(torch.equal(layer(x[p]), layer(x)[p]) for p in _shuffles(len(x))),
        "Adding the same numbers in another order rounds differently: compare with a tolerance.",
    ),
)  # fmt: skip


def _attention_layer(d: int, *, causal: bool = False) -> Layer:
    W_q, W_k, W_v = (torch.randn(d, d) for _ in range(3))

    def layer(x: Tensor) -> Tensor:
        scores = (x @ W_q) @ (x @ W_k).T / math.sqrt(d)
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
        return scores.softmax(-1) @ (x @ W_v)

    return layer


def _layers(T: int, d: int) -> list[Layer]:
    """Layers that follow a shuffle and layers that don't, in no telling order."""
    W, places, attend = torch.randn(d, d), torch.randn(T, d), _attention_layer(d)
    return [
        attend,
        lambda x: attend(x + places),
        lambda x: (x @ W).relu(),
        _attention_layer(d, causal=True),
        lambda x: x.mean(0, keepdim=True).expand_as(x),
        lambda x: (x.roll(1, 0) + x + x.roll(-1, 0)) / 3,
    ]


@keeps_random_state
def is_equivariant(answer: Any) -> Verdict:
    """Check `is_equivariant(layer, x)`: does a layer [T, d] -> [T, d] follow every shuffle?"""
    cases = [(layer, torch.randn(T, d)) for T, d in ((7, 4), (12, 9)) for layer in _layers(T, d)]
    return check_function(
        answer,
        _is_equivariant,
        cases,
        EQUIVARIANT_MISTAKES,
        output_names=["your verdict"],
        praise="Right about attention with and without positions, with a causal mask, and about "
        "three layers that aren't attention.",
    )


EXERCISES = {
    "softmax_row": Exercise(softmax_row, ROW_MISTAKES),
    "attention": Exercise(attention, ATTENTION_MISTAKES),
    "copying_query": Exercise(copying_query, QUERY_MISTAKES),
    "stable_softmax": Exercise(stable_softmax, SOFTMAX_MISTAKES),
    "unreachable": Exercise(unreachable, HULL_MISTAKES),
    "is_equivariant": Exercise(is_equivariant, EQUIVARIANT_MISTAKES),
}
