"""Query heads that share heads of keys and values."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, from_museum, read_mistakes
from attndoctor.museum.heads import TILED_GROUPS


def _attend(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    scale = math.sqrt(q.shape[-1]) if scale is None else scale
    return (q @ k.transpose(-2, -1) / scale).softmax(-1) @ v


def _shared(share: Callable[[Tensor, int], Tensor], **options: float) -> Callable:
    """Make an attention whose g heads of keys and values are spread over h by `share`."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        times = q.shape[1] // k.shape[1]
        return _attend(q, share(k, times), share(v, times), **options)

    return attend


def _interleaved(x: Tensor, times: int) -> Tensor:
    return x.repeat_interleave(times, dim=1)  # [B, g, T, d_k] -> [B, h, T, d_k]


def _tiled(x: Tensor, times: int) -> Tensor:
    return x.repeat(1, times, 1, 1)


grouped_attention = _shared(_interleaved)


def _cases() -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return heads for g = h, for g = 1, and for numbers in between."""
    cases = []
    for h, g in ((6, 2), (6, 3), (4, 4), (4, 1), (12, 4)):
        q = torch.randn(2, h, 5, 8)
        k, v = torch.randn(2, 2, g, 7, 8)
        cases.append((q, k, v))
    return cases


@exercise(
    mistakes=(from_museum(TILED_GROUPS, _shared(_tiled)), *read_mistakes("grouped", globals()))
)
def grouped(answer: object) -> CheckResult:
    """Check `grouped(q, k, v)`: q [B, h, T_q, d_k] with k, v [B, g, T_k, d_k] -> [B, h, T_q, d_k].

    Neighboring query heads share. With g = h it is multi-head, with g = 1 multi-query attention.
    """
    praise = (
        "g = h is multi-head attention, g = 1 multi-query attention, and all between is grouped."
    )
    return check_function(
        answer,
        grouped_attention,
        _cases(),
        grouped.mistakes,
        output_names=["the output"],
        praise=praise,
    )
