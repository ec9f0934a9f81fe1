"""Cutting a tensor into heads, merging them, and adding the heads up."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attncourse.checking import CheckResult, exercise, from_museum, read_mistakes
from attncourse.checking.calling import call, mentions
from attncourse.checking.functions import check_function, not_yet
from attndoctor.museum.heads import HEADS_OF_ONE_TOKEN, MERGE
from attnlib.functional import merge_heads, split_heads


def _split_cases() -> list[tuple[Any, ...]]:
    sizes = ((2, 5, 3, 4), (3, 4, 2, 5), (1, 7, 4, 2))
    return [(torch.randn(B, T, h * d_k), h) for B, T, h, d_k in sizes]


def _blocks(heads: Tensor, W_o: Tensor) -> list[Tensor]:
    """Each head's addition to the output: its own d_k rows of W_o."""
    d_k = heads.shape[-1]
    return [heads[:, i] @ W_o[i * d_k : (i + 1) * d_k] for i in range(heads.shape[1])]


def _column_blocks(heads: Tensor, W_o: Tensor) -> list[Tensor]:
    d_k = heads.shape[-1]
    return [heads[:, i] @ W_o[:, i * d_k : (i + 1) * d_k].mT for i in range(heads.shape[1])]


@exercise(
    mistakes=(
        from_museum(HEADS_OF_ONE_TOKEN, HEADS_OF_ONE_TOKEN.steps["split"]),
        *read_mistakes("split", globals()),
    )
)
def split(answer: Any) -> CheckResult:
    """Check `split(x, num_heads)`: [B, T, d] -> [B, h, T, d_k]."""
    praise = "Head i holds numbers i * d_k to (i + 1) * d_k of every token."
    result = check_function(
        answer,
        split_heads,
        _split_cases(),
        split.mistakes,
        output_names=["the split tensor"],
        praise=praise,
    )
    ready_made = result and mentions(answer, "split_heads")
    return not_yet(split.hints["split_heads"]) if ready_made else result


@exercise(mistakes=(from_museum(MERGE, MERGE.steps["merge"]), *read_mistakes("merge", globals())))
def merge(answer: Any) -> CheckResult:
    """Check `merge(x)`: [B, h, T, d_k] -> [B, T, d]."""
    result = check_function(
        answer,
        merge_heads,
        # as attention leaves heads: one after the other in memory
        [(split_heads(x, h).contiguous(),) for x, h in _split_cases()],
        merge.mistakes,
        output_names=["the merged tensor"],
        praise="Merging undoes splitting exactly.",
    )
    ready_made = result and mentions(answer, "merge_heads")
    return not_yet(merge.hints["merge_heads"]) if ready_made else result


class _SeesJoining(TorchFunctionMode):
    """Notes whether what is computed meanwhile is the heads, joined, or leaves torch."""

    def __init__(self, heads: Tensor) -> None:
        super().__init__()
        joined = merge_heads(heads)
        self.width, self.numbers = joined.shape[-1], joined.flatten().sort().values
        self.hint = ""

    def _is_joined(self, x: Any) -> bool:
        """Return whether these are all numbers of the heads, along an axis of the joined width."""
        if not isinstance(x, Tensor) or self.width not in x.shape:
            return False
        return torch.equal(x.flatten().sort().values.to(self.numbers), self.numbers)

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        leaves = getattr(func, "__name__", "") in ("numpy", "__array__", "tolist")
        if any(map(self._is_joined, (result, *args))):  # a buffer is seen when it is multiplied
            self.hint = "joined"
        elif not self.hint and leaves and args[0].is_floating_point():
            self.hint = "outside"
        return result


def _way_of(answer: Callable, case: Sequence[Tensor]) -> str:
    with _SeesJoining(case[0]) as watch:
        call(answer, case)
    return watch.hint


@exercise()
def sum_over_heads(answer: Any) -> CheckResult:
    """Check `output(heads, W_o, b_o)` for heads [B, h, T, d_k], W_o [d, d], b_o [d]."""
    cases = []
    for B, T, h, d_k in ((2, 5, 3, 4), (3, 4, 2, 5)):
        d = h * d_k
        cases.append((torch.randn(B, h, T, d_k), torch.randn(d, d), torch.randn(d)))
    praise = "No concatenation, the same output: heads add."
    result = check_function(
        answer,
        lambda heads, W_o, b_o: merge_heads(heads) @ W_o + b_o,
        cases,
        sum_over_heads.mistakes,
        output_names=["the output"],
        tolerance=1e-4,
        praise=praise,
    )
    way = _way_of(answer, cases[0]) if result else ""
    return not_yet(sum_over_heads.hints[way]) if way else result
