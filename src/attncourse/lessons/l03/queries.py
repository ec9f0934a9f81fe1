"""A query that makes token 2 copy token 0."""

import torch

from attncourse.checking import CheckResult, exercise
from attncourse.checking.functions import correct, not_yet
from attncourse.checking.numbers import all_numbers

_KEYS = torch.tensor([[0.0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]], dtype=torch.float64)


@exercise()
def copying_query(answer: object) -> CheckResult:
    """Check a query [4] that gives token 0 more than 0.99 of token 2's attention."""
    if answer is None or answer is ...:
        return not_yet("Nothing is filled in so far: replace the ... with four numbers.")
    query = all_numbers(answer)
    if query is None or not query.isfinite().all():
        return not_yet("Four finite numbers are wanted. Is every ... replaced?")
    if query.shape == (1, 4):
        query = query[0]
    if query.shape == (3,):
        return not_yet(copying_query.hints["weights"])
    if query.shape != (4,):
        return not_yet(f"Give one query, shape [4]; yours has shape {list(query.shape)}.")
    products = _KEYS @ query
    weights = (products / 2).softmax(0)
    if not weights.isfinite().all():
        return not_yet("Your query is so long that its scores overflow. A shorter one will do.")
    if weights[0] > 0.99:
        return correct("Token 2's output is now token 0's value, almost exactly.")
    rivals = products[1:]
    if products[0] < rivals.min().clamp(max=0):
        return not_yet(copying_query.hints["away"])
    if torch.isclose(products[0], rivals.max()):
        return not_yet(copying_query.hints["shared"])
    if products[0] < rivals.max():
        return not_yet(copying_query.hints["other"])
    if products.softmax(0)[0] > 0.99:
        return not_yet(copying_query.hints["unscaled"])
    return not_yet(copying_query.hints["short"])
