"""Query heads that share heads of keys and values."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise, from_museum
from attnlib.museum.heads import TILED_GROUPS


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


def _mean_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _attend(q.unflatten(1, (k.shape[1], -1)).mean(2), k, v)


def _tiled_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    times = q.shape[1] // k.shape[1]
    return _attend(q, _interleaved(k, times), _tiled(v, times))


GROUP_MISTAKES = (
    from_museum(TILED_GROUPS, _shared(_tiled)),
    Mistake(
        _tiled_values,
        "The keys are spread rightly, the values are tiled (0, 1, 0, 1): a query head needs the "
        "values of the tokens whose keys it met.",
    ),
    Mistake(
        _shared(lambda x, times: x[:, :1]),
        "All query heads have the first head of keys and values. That is right for g = 1 alone.",
    ),
    Mistake(
        _mean_queries,
        "You averaged the query heads of a group, so that g heads are left. All h query heads stay "
        "as they are, with a map each: what they share are keys and values.",
    ),
    Mistake(
        _shared(_interleaved, scale=1.0),
        "The heads are shared rightly. The scale is missing: divide the scores by the root of d_k.",
    ),
)


def _cases() -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return heads for g = h, for g = 1, and for numbers in between."""
    cases = []
    for h, g in ((6, 2), (6, 3), (4, 4), (4, 1), (12, 4)):
        q = torch.randn(2, h, 5, 8)
        k, v = torch.randn(2, 2, g, 7, 8)
        cases.append((q, k, v))
    return cases


@exercise(mistakes=GROUP_MISTAKES)
def grouped(answer: Callable) -> Verdict:
    """Check `grouped(q, k, v)`: q [B, h, T_q, d_k] with k, v [B, g, T_k, d_k] -> [B, h, T_q, d_k].

    Neighboring query heads share. With g = h it is multi-head, with g = 1 multi-query attention.
    """
    return check_function(
        answer,
        grouped_attention,
        _cases(),
        GROUP_MISTAKES,
        output_names=["the output"],
        praise="g = h is multi-head attention, g = 1 multi-query attention, and all between is "
        "grouped.",
    )
