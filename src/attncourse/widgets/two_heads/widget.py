"""TwoHeads: two small heads and the same numbers as one big head, every number editable."""

from collections.abc import Sequence
from typing import Literal

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import (
    CourseWidget,
    Numbers,
    browser_files,
    summary_trait,
    tensor_trait,
)
from attncourse.widgets._inputs import LARGEST_NUMBER, moderate_numbers
from attnlib.checks import checked_list, shape_of

MOST_TOKENS, WIDEST, WIDEST_HEAD = 4, 6, 3  # what can be read on one screen
MATRICES = ("W_q", "W_k", "W_v")
Try = tuple[int, Literal["W_q", "W_k", "W_v"], int, Sequence[float]]  # head, matrix, row, numbers

# The example of lesson L04: two tokens of width 4, two heads of width 2.
EXAMPLE_X = [[1.0, 0, 1, 0], [0, 1, 0, 1]]
EXAMPLE_HEADS = [
    [
        [[1.0, 0], [0, 1], [0, 0], [1, 0]],
        [[1.0, 1], [0, 1], [1, 0], [0, 1]],
        [[1.0, 0], [0, 2], [1, 1], [0, 1]],
    ],
    [
        [[0.0, 1], [1, 0], [1, 0], [0, 1]],
        [[0.0, 1], [1, 1], [0, 0], [1, 0]],
        [[0.0, 1], [1, 1], [0, 2], [1, 0]],
    ],
]


class TwoHeads(CourseWidget):
    """Two heads by hand: the tokens and six matrices as numbers to change, all results beside.

    Shown are Q, K, V, scores, weights and outputs of both heads, and of the one head that their
    matrices make when they stand side by side: several softmaxes against the softmax of a sum. The
    browser computes all of it. In a notebook::

        widget = TwoHeads()                        # lesson L04's example
        widget                                     # show it
        widget.x                                   # the tokens as they are now, [T, d]
        widget.observe(lambda change: print(change["new"]), "heads")
        TwoHeads(torch.randn(3, 4), [(W_q1, W_k1, W_v1), (W_q2, W_k2, W_v2)])

    Traits that a reader changes:
        x (Tensor): the tokens, float32 [T, d].
        heads (Tensor): float32 [2, 3, d, d_k]; `heads[i]` holds W_q, W_k and W_v of head i.

    Assign a new tensor to change them from Python.

    Traits that are fixed: T, d, d_k; largest, the size that no number may exceed; start_x and
    start_heads, which the reset button brings back; tries (list of [head, matrix, row, numbers]).

    Args:
        x: tokens [T, d], at most 4 of width at most 6; L04's if left out.
        heads: two triples (W_q, W_k, W_v) of matrices [d, d_k], d_k at most 3; L04's if left out.
        tries: rows that stand beside the numbers as buttons, each (head, matrix, row, d_k numbers)
            with heads and rows counted from 1: `(2, "W_q", 1, [0.0, 2.0])`.

    Raises:
        TypeError, ValueError: an argument isn't as above; the message names it.
    """

    _esm, _css = browser_files("two_heads")
    summary = summary_trait(
        "Two heads by hand: tokens and matrices as numbers to change, all results beside them."
    )

    T = traitlets.Int(read_only=True).tag(sync=True)
    d = traitlets.Int(read_only=True).tag(sync=True)
    d_k = traitlets.Int(read_only=True).tag(sync=True)
    largest = traitlets.Float(LARGEST_NUMBER, read_only=True).tag(sync=True)
    start_x, start_heads = Numbers(), Numbers()
    tries = traitlets.List(traitlets.List(), read_only=True).tag(sync=True)
    x = tensor_trait(lambda widget: (widget.T, widget.d))
    heads = tensor_trait(lambda widget: (2, 3, widget.d, widget.d_k))

    def __init__(
        self,
        x: Tensor | None = None,
        heads: Sequence[Sequence[Tensor]] | Tensor | None = None,
        *,
        tries: Sequence[Try] = (),
    ) -> None:
        x = moderate_numbers("x", torch.tensor(EXAMPLE_X) if x is None else x)
        heads = _stacked(torch.tensor(EXAMPLE_HEADS) if heads is None else heads)
        _require_small(x, heads)
        (T, d), d_k = x.shape, heads.shape[-1]
        rows = [_checked_try(i, value, d, d_k) for i, value in enumerate(tries)]
        start = {"x": x, "heads": heads, "start_x": x, "start_heads": heads}
        super().__init__(T=T, d=d, d_k=d_k, tries=rows, **start)

    def __repr__(self) -> str:
        return f"TwoHeads({self.T} tokens, d={self.d}, d_k={self.d_k})"


def _stacked(heads: Sequence[Sequence[Tensor]] | Tensor) -> Tensor:
    """Return two triples of [d, d_k] matrices as [2, 3, d, d_k], or raise if they aren't that."""
    if not isinstance(heads, Sequence | Tensor):
        raise TypeError(f"heads must be two triples (W_q, W_k, W_v), got {type(heads).__name__}")
    heads = [checked_list("each of heads", head) for head in checked_list("heads", heads)]
    if [len(head) for head in heads] != [3, 3]:
        raise ValueError(
            "heads must be two triples (W_q, W_k, W_v), got groups of "
            f"{[len(head) for head in heads]}"
        )
    matrices = []
    for i, head in enumerate(heads):
        for name, matrix in zip(MATRICES, head, strict=True):
            matrices.append(moderate_numbers(f"{name} of head {i + 1}", matrix))
            if matrix.dim() != 2 or matrix.shape != matrices[0].shape:
                raise ValueError(
                    f"{name} of head {i + 1} must be a matrix [d, d_k] like all six, "
                    f"got {shape_of(matrix)} where W_q of head 1 is {shape_of(matrices[0])}"
                )
    return torch.stack(matrices).unflatten(0, (2, 3))  # 6 x [d, d_k] -> [2, 3, d, d_k]


def _checked_try(i: int, value: Try, d: int, d_k: int) -> list[object]:
    name = f"tries[{i}]"
    if not isinstance(value, tuple) or len(value) != 4:
        raise TypeError(f"{name} must be (head, matrix, row, numbers), got {value!r}")
    head, matrix, row, numbers = value
    for part, given, known in (
        ("head", head, (1, 2)),
        ("matrix", matrix, MATRICES),
        ("row", row, tuple(range(1, d + 1))),
    ):
        if given not in known:
            raise ValueError(f"{name}'s {part} must be one of {list(known)}, got {given!r}")
    values = moderate_numbers(f"{name}'s numbers", torch.tensor(numbers, dtype=torch.float32))
    if shape_of(values) != [d_k]:
        raise ValueError(f"{name} must hold {d_k} numbers, one a column, got {list(numbers)}")
    return [head, matrix, row, [float(number) for number in numbers]]  # 0.1, not float32's


def _require_small(x: Tensor, heads: Tensor) -> None:
    if x.dim() != 2:
        raise ValueError(f"x must have shape [T, d], got {shape_of(x)}: one sequence, no batch")
    d, d_k = heads.shape[-2:]
    if x.shape[1] != d:
        raise ValueError(
            f"x must be as wide as the matrices are high, got x {shape_of(x)} and matrices "
            f"{[d, d_k]}: Q = x @ W_q"
        )
    sizes = {"T": (len(x), MOST_TOKENS), "d": (d, WIDEST), "d_k": (d_k, WIDEST_HEAD)}
    for name, (size, limit) in sizes.items():
        if not 1 <= size <= limit:
            raise ValueError(
                f"{name} must be from 1 to {limit} here, got {size}: TwoHeads writes out every "
                "number; HeadExplorer shows larger heads"
            )
