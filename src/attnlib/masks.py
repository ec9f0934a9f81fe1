"""Who may look at whom. A mask is boolean, and True means: may look.

The number of dimensions decides what a mask means, never sizes that happen to agree::

    2-D   [T_q, T_k]        one mask for the whole batch and every head
    3-D   [B, T_q, T_k]     one mask a sample, the same for its heads
    4-D   broadcasts to [B, h, T_q, T_k]

Padding has its own argument, `key_mask` [B, T_k]: True = a real token. Numbers added to the scores
have theirs, `score_bias`.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from attnlib.checks import (
    require_boolean_mask,
    require_count,
    require_flag,
    require_floating,
    require_positive_int,
    require_same_device,
    require_tensor,
    shape_of,
)


def causal_mask(T: int, *, past: int = 0, device: torch.device | str | None = None) -> Tensor:
    """Return the mask [T, past + T] with which each token looks at itself and to its left.

    Row i is True for the columns 0 to past + i (Vaswani et al. 2017, section 3.2.3).

    Args:
        T: how many tokens look.
        past: how many tokens came before them; all of them may look at these.
        device: where the mask is made.

    Raises:
        TypeError, ValueError: T is no whole number of at least 1, or past none of at least 0.
    """
    require_positive_int("T", T)
    require_count("past", past)
    return triangle(T, past, device)


def padding_mask(lengths: Tensor, T: int) -> Tensor:
    """Return the mask [B, T] of real tokens, to be passed as `key_mask`.

    The padding must hold finite numbers, such as 0: its weight is 0, but 0 x NaN is NaN, which
    would reach the real tokens.

    Args:
        lengths: whole numbers [B], how many tokens of each sequence are real (0 to T).
        T: the padded length.

    Example:
        >>> padding_mask(torch.tensor([1, 3]), 3)
        tensor([[ True, False, False],
                [ True,  True,  True]])

    Raises:
        TypeError: `lengths` is no tensor of whole numbers.
        ValueError: it isn't 1-D, or a length is below 0 or above T.
        TypeError, ValueError: T is no whole number of at least 1.
    """
    require_positive_int("T", T)
    require_tensor("lengths", lengths)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(
            f"lengths must be whole numbers of tokens, one a sequence, got {lengths.dtype}"
        )
    if lengths.dim() != 1:
        raise ValueError(f"lengths must have shape [B], got {shape_of(lengths)}")
    lengths = lengths.long()  # torch can't compare all whole numbers
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > T):
        raise ValueError(f"lengths must lie between 0 and T={T}, got {lengths.tolist()}")
    return torch.arange(T, device=lengths.device) < lengths[:, None]  # [T] < [B, 1] -> [B, T]


def combine_masks(
    scores_shape: tuple[int, ...],
    device: torch.device,
    *,
    mask: Tensor | None = None,
    key_mask: Tensor | None = None,
    causal: bool = False,
    past: int = 0,
) -> Tensor | None:
    """Combine everything that forbids looks into one mask, or return None if nothing does.

    Args:
        scores_shape: [T_q, T_k], [B, T_q, T_k] or [B, h, T_q, T_k].
        device: where the scores are.
        mask: boolean; see the top of this file for its shapes.
        key_mask: boolean [B, T_k].
        causal: also forbid every look to the right.
        past: how many of the keys stand before the first query, in a cache.

    Returns:
        A boolean tensor that broadcasts to `scores_shape`.

    Raises:
        TypeError: a mask isn't boolean.
        ValueError: a shape doesn't fit, or `causal` with T_k other than past + T_q.
    """
    parts = []
    if mask is not None:
        require_boolean_mask("mask", mask, device)
        parts.append(_fit("mask", mask, scores_shape))
    if key_mask is not None:
        require_boolean_mask("key_mask", key_mask, device)
        parts.append(_fit_key_mask(key_mask, scores_shape))
    if causal:
        T_q, T_k = scores_shape[-2:]
        _require_causal_sizes(T_q, T_k, past)
        if T_q > 1 or not past:  # the last token alone may look at all of its past
            parts.append(triangle(T_q, past, device))
    if not parts:
        return None
    combined = parts[0]
    for part in parts[1:]:
        combined = combined & part
    return combined


class AttentionMask(NamedTuple):
    """Mask and bias of the scores, as PyTorch's fused kernel takes them.

    attn_mask: boolean (True = may look) or numbers to add to the scores, with -inf for "may not".
    fully_masked: boolean [..., T_q, 1], rows that may look nowhere. `attn_mask` lets them look
        everywhere, because softmax of a row of -inf and its gradient are NaN; their weights are set
        to 0 afterward.
    is_causal: only causality forbids looks; kernels do that without a mask.
    """

    attn_mask: Tensor | None = None
    fully_masked: Tensor | None = None
    is_causal: bool = False

    @classmethod
    def of(
        cls, q: Tensor, k: Tensor, *, mask: Tensor | None = None, key_mask: Tensor | None = None,
        score_bias: Tensor | None = None, causal: bool = False, past: int = 0,
    ) -> "AttentionMask":  # fmt: skip
        """Check and combine the masks and the bias for queries and keys [..., T, d_k].

        Raises as `combine_masks` does, and for a score_bias that doesn't fit.
        """
        require_flag("causal", causal)
        T_q, T_k = q.shape[-2], k.shape[-2]
        scores_shape = (*q.shape[:-1], T_k)
        nothing_else = mask is None and key_mask is None and score_bias is None and not past
        if causal and nothing_else:
            _require_causal_sizes(T_q, T_k, past)
            return cls(is_causal=True)
        allowed = combine_masks(
            scores_shape, q.device, mask=mask, key_mask=key_mask, causal=causal, past=past
        )
        if score_bias is not None:
            score_bias = _fit_score_bias(score_bias, scores_shape, q)
            possible = ~score_bias.isneginf()
            allowed = possible if allowed is None else allowed & possible
        if allowed is None:
            return cls()
        fully_masked = ~allowed.any(-1, keepdim=True)  # [..., T_q, T_k] -> [..., T_q, 1]
        if score_bias is None:
            return cls(allowed | fully_masked, fully_masked)
        numbers = score_bias.masked_fill(~allowed, -math.inf).masked_fill(fully_masked, 0.0)
        return cls(numbers, fully_masked)


def _fit_score_bias(score_bias: Tensor, scores_shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Check a score_bias; return it in the dtype of the queries and a shape that broadcasts."""
    if isinstance(score_bias, Tensor) and score_bias.dtype == torch.bool:
        raise TypeError("score_bias must hold numbers, got booleans: pass a mask as mask=")
    require_floating("score_bias", score_bias)
    require_same_device("score_bias", score_bias, "the query", like)
    if score_bias.dim() == 3:
        raise ValueError(
            f"score_bias must have 2 dimensions [T_q, T_k] or 4 that broadcast to [B, h, T_q, T_k],"
            f" got {shape_of(score_bias)}: with 3 it isn't clear whether the first counts samples "
            "or heads; one bias a head is [1, h, T_q, T_k], so add a dimension with .unsqueeze(0)"
        )
    return _fit("score_bias", score_bias, scores_shape).to(like.dtype)


def triangle(T: int, past: int, device: torch.device | str | None) -> Tensor:
    """Return a causal mask; unlike `causal_mask`, take a T that a compiler traces."""
    return torch.ones(T, past + T, dtype=torch.bool, device=device).tril_(past)


def _require_causal_sizes(T_q: int, T_k: int, past: int) -> None:
    if past + T_q != T_k:
        raise ValueError(
            f"causal needs as many queries as new keys, got T_q={T_q} and T_k={T_k - past}: "
            "it isn't defined which query stands where; pass the mask that you mean"
        )


def _fit(name: str, mask: Tensor, scores_shape: tuple[int, ...]) -> Tensor:
    """Bring a 2-D, 3-D or 4-D mask (or bias) to a shape that broadcasts to the scores."""
    T_q, T_k = scores_shape[-2:]
    batch = scores_shape[:1] if len(scores_shape) > 2 else ()
    if mask.dim() == 2:
        fits = tuple(mask.shape) == (T_q, T_k)
    elif mask.dim() == 3 and batch:
        fits = tuple(mask.shape) == (*batch, T_q, T_k)
    elif mask.dim() == 4 and len(scores_shape) == 4:
        fits = all(m in (1, s) for m, s in zip(mask.shape, scores_shape, strict=True))
    else:
        raise ValueError(
            f"{name} must have 2 dimensions [T_q, T_k], 3 [B, T_q, T_k] or 4 [B, h, T_q, T_k], and "
            f"no more dimensions than the scores {list(scores_shape)}, got shape {shape_of(mask)}"
        )
    if not fits:  # sizes become text only here: text makes them constants for a compiler
        wanted = {
            2: f"shape [T_q={T_q}, T_k={T_k}]",
            3: f"shape [B={scores_shape[0]}, T_q={T_q}, T_k={T_k}]",
            4: f"a shape that broadcasts to [B, h, T_q, T_k] = {list(scores_shape)}",
        }[mask.dim()]
        raise ValueError(
            f"{name} must have {wanted}, got {shape_of(mask)}: "
            "rows are queries, columns are keys; padding [B, T_k] is passed as key_mask"
        )
    if mask.dim() == 3 and len(scores_shape) == 4:
        return mask[:, None]  # [B, T_q, T_k] -> [B, 1, T_q, T_k], the same for every head
    return mask


def _fit_key_mask(key_mask: Tensor, scores_shape: tuple[int, ...]) -> Tensor:
    """Bring a key mask [B, T_k] to a shape that broadcasts to the scores."""
    if len(scores_shape) != 4:
        raise ValueError(f"key_mask needs scores [B, h, T_q, T_k], got {list(scores_shape)}")
    B, _, _, T_k = scores_shape
    if tuple(key_mask.shape) != (B, T_k):
        raise ValueError(
            f"key_mask must have shape [B={B}, T_k={T_k}], True = a real token, "
            f"got {shape_of(key_mask)}"
        )
    return key_mask[:, None, None, :]  # [B, T_k] -> [B, 1, 1, T_k]
