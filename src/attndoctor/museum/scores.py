"""Exhibits about who is compared with whom, and the axis of the softmax."""

import math

from torch import Tensor

from attndoctor.museum._exhibit import room

exhibit = room(__file__)


def score_reshaped(q: Tensor, k: Tensor) -> Tensor:
    """Read the keys' memory as [d_k, T_k]."""
    T_k, d_k = k.shape[-2:]
    # right: k.transpose(-2, -1)
    turned = k.reshape(*k.shape[:-2], d_k, T_k)
    return q @ turned / math.sqrt(d_k)


RESHAPED_KEYS = exhibit("keys reshaped instead of transposed", {"score": score_reshaped})


def score_swapped(q: Tensor, k: Tensor) -> Tensor:
    """Let every key ask the queries."""
    # right: q @ k.transpose(-2, -1)
    return k @ q.transpose(-2, -1) / math.sqrt(q.shape[-1])


SWAPPED = exhibit("queries and keys swapped", {"score": score_swapped}, only_loaded=True)


def softmax_queries(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Let the shares of each key sum to 1."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(-2)  # right: -1


SOFTMAX_OVER_QUERIES = exhibit(
    "softmax over the queries", {"softmax": softmax_queries, "weigh": softmax_queries}
)


def softmax_axis_1(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Take the axis that was right for a single matrix."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(1)  # right: -1


SOFTMAX_OVER_HEADS = exhibit(
    "softmax over the heads", {"softmax": softmax_axis_1, "weigh": softmax_axis_1}
)
