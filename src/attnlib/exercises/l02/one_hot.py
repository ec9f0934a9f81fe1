"""A token's row, as a product of a one-hot row and the table."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise


def _one_hot(ids: Tensor, V: int) -> Tensor:
    return F.one_hot(ids, V).float()


def _lookup(ids: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    one_hot = _one_hot(ids, len(table))
    return one_hot, one_hot @ table


def _from_one(ids: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    return _lookup((ids - 1) % len(table), table)


LOOKUP_MISTAKES = (
    Mistake(
        lambda ids, table: (_one_hot(ids, len(table)).T, table[ids]),
        "Your one-hot matrix lies on its side. It has one row per token of the text, and one "
        "column per row of the table: [T, V].",
    ),
    Mistake(
        lambda ids, table: (_one_hot(ids, int(ids.max()) + 1), table[ids]),
        "Your one-hot rows are as long as this text needs. They need a place for every token of "
        "the vocabulary, also for those that the text doesn't have: len(table).",
    ),
    Mistake(
        lambda ids, table: (F.one_hot(ids).float(), F.one_hot(ids).float() @ table),
        "`F.one_hot(ids)` makes rows that just hold the largest id of this text. Where the last "
        "token of the vocabulary doesn't come, the product with the table fails. Say how long: "
        "F.one_hot(ids, len(table)).",
    ),
    Mistake(
        lambda ids, table: _lookup(ids, table)[::-1],
        "Both are there, in the other order: first the one-hot rows, then the embeddings.",
    ),
    Mistake(
        _from_one,
        "You take the row above the right one. Ids count from 0: id 2 has its 1 in the third "
        "place.",
    ),
    Mistake(
        lambda ids, table: (
            _one_hot(ids, len(table)).sum(0, keepdim=True),
            table[ids].sum(0, keepdim=True),
        ),
        "You added all tokens up. Each token of the text keeps a row of its own.",
    ),
    Mistake(
        lambda ids, table: (_one_hot(ids, len(table)), _one_hot(ids, len(table))),
        "The one-hot matrix is right. What is still missing is its product with the table.",
    ),
)


@exercise(mistakes=LOOKUP_MISTAKES)
def lookup(answer: Any) -> Verdict:
    """Check `lookup(ids, table)`: one-hot rows [T, V], and their product with the table [T, d]."""
    cases = [
        (torch.randint(V - 1, (T,)), torch.randn(V, d))  # the last token never comes
        for T, V, d in ((5, 7, 3), (9, 4, 6), (2, 12, 5))
    ]
    ids, table = torch.randint(6, (4,)), torch.randn(6, 8)
    ids[1] = 5
    cases.insert(0, (ids, table))  # here it does
    return check_function(
        answer,
        _lookup,
        cases,
        LOOKUP_MISTAKES,
        output_names=["the one-hot matrix", "the rows"],
        praise="A lookup is a product with a matrix. So it can be trained as one.",
    )
