"""A token's row, as a product of a one-hot row and the table."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, read_mistakes


def _one_hot(ids: Tensor, V: int) -> Tensor:
    return F.one_hot(ids, V).float()


def _lookup(ids: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    one_hot = _one_hot(ids, len(table))
    return one_hot, one_hot @ table


MISTAKES = read_mistakes("lookup", globals())


@exercise(mistakes=MISTAKES)
def lookup(answer: Any) -> CheckResult:
    """Check `lookup(ids, table)`: one-hot rows [T, V], and their product with the table [T, d]."""
    cases = [
        (torch.randint(V - 1, (T,)), torch.randn(V, d))  # the last token never comes
        for T, V, d in ((5, 7, 3), (9, 4, 6), (2, 12, 5))
    ]
    ids, table = torch.randint(6, (4,)), torch.randn(6, 8)
    ids[1] = 5
    cases.insert(0, (ids, table))  # here it does
    praise = "A lookup is a product with a matrix. So it can be trained as one."
    output_names = ["the one-hot matrix", "the rows"]
    return check_function(
        answer, _lookup, cases, MISTAKES, output_names=output_names, praise=praise
    )
