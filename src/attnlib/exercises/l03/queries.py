"""A query that makes token 2 copy token 0."""

from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._numbers import as_tensor

_KEYS = torch.tensor([[0.0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]], dtype=torch.float64)

_SHORT = Mistake(
    [0.0, 1, 0, 1],
    "Token 0 already gets the largest weight. What makes a softmax sharper without changing "
    "the order of the scores?",
)
_UNSCALED = Mistake(
    [0.0, 0, 0, 7],
    "Enough without the division by sqrt(d_k) = 2, but the head does divide.",
)
_SHARED = Mistake(
    [0.0, 20, 0, 0],
    "Token 0 has to share: its best rival's score is just as high. Reward something that only "
    "token 0's key has.",
)
_OTHER = Mistake(
    [20.0, 0, 20, 0],
    "Another key matches your query best. Write down your query's three dot products.",
)
_AWAY = Mistake(
    [0.0, -10, 0, -10],
    "Token 0 gets the smallest weight of all: your query points away from its key.",
)
_WEIGHTS = Mistake(
    [1.0, 0, 0],
    "A query has as many numbers as a key: four. You can't set the weights themselves.",
)


@exercise(mistakes=(_SHORT, _UNSCALED, _SHARED, _OTHER, _AWAY, _WEIGHTS))
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
        return not_yet(_WEIGHTS.hint)
    if query.shape != (4,):
        return not_yet(f"One query is wanted, shape [4], but yours is {list(query.shape)}.")
    products = _KEYS @ query
    weights = (products / 2).softmax(0)
    if not weights.isfinite().all():
        return not_yet("Your query is so long that its scores overflow. A shorter one will do.")
    if weights[0] > 0.99:
        return correct("Token 2's output is now token 0's value, almost exactly.")
    rivals = products[1:]
    if products[0] < rivals.min().clamp(max=0):
        return not_yet(_AWAY.hint)
    if torch.isclose(products[0], rivals.max()):
        return not_yet(_SHARED.hint)
    if products[0] < rivals.max():
        return not_yet(_OTHER.hint)
    if products.softmax(0)[0] > 0.99:
        return not_yet(_UNSCALED.hint)
    return not_yet(_SHORT.hint)
