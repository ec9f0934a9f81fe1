"""A token's row, as a product of a one-hot row and the table."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise

LOOKUPS = {  # names of functions
    "__getitem__", "embedding", "index_select", "gather", "take_along_dim", "select", "split",
    "chunk",
}  # fmt: skip
TABLES = {"clone", "detach", "t", "transpose", "__get__"}  # which return a table; __get__: x.T


class LookedUpError(TypeError):
    """Says that a row was taken without a product."""


class IntegersError(TypeError):
    """Says that the table was multiplied by integers."""


class Table(Tensor):
    """A matrix that can be multiplied, but gives no row away."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in LOOKUPS:
            raise LookedUpError("the rows should come from a product with the one-hot matrix")
        try:
            with torch._C.DisableTorchFunctionSubclass():
                result = func(*args, **kwargs or {})
        except RuntimeError as error:
            if any(isinstance(x, Tensor) and not x.is_floating_point() for x in args):
                raise IntegersError("integers times the table") from error
            raise
        is_table = name in TABLES and isinstance(result, Tensor)
        return result.as_subclass(cls) if is_table else result


def _table(V: int, d: int) -> Tensor:
    return torch.randn(V, d).as_subclass(Table)


def _one_hot(ids: Tensor, V: int) -> Tensor:
    return F.one_hot(ids, V).float()


def _lookup(ids: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    one_hot = _one_hot(ids, len(table))
    return one_hot, one_hot @ table


@exercise()
def lookup(answer: object) -> CheckResult:
    """Check `lookup(ids, table)`: one-hot rows [T, V], and their product with the table [T, d]."""
    cases = [
        (torch.randint(V - 1, (T,)), _table(V, d))  # the last token never comes
        for T, V, d in ((5, 7, 3), (9, 4, 6), (2, 12, 5))
    ]
    ids, table = torch.randint(6, (4,)), _table(6, 8)
    ids[1] = 5
    cases.insert(0, (ids, table))  # here it does
    praise = "A lookup is a product with a matrix. So it can be trained as one."
    output_names = ["the one-hot matrix", "the rows"]
    return check_function(
        answer, _lookup, cases, lookup.mistakes, output_names=output_names, praise=praise
    )
