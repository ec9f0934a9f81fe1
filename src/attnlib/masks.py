"""Who may look at whom. A mask is boolean, and True means: may look.

The meaning of a mask hangs on its number of dimensions alone, never on sizes that happen to agree:

    2-D   [T_q, T_k]        one mask for the whole batch and every head
    3-D   [B, T_q, T_k]     one mask a sample, the same for its heads
    4-D   broadcasts to [B, h, T_q, T_k]

Padding has its own argument, `key_mask` [B, T_k]: True = a real token.
"""

import torch
from torch import Tensor

from attnlib._checks import require_boolean_mask, require_positive_int, require_tensor, shape_of


def causal_mask(T: int, *, device: torch.device | str | None = None) -> Tensor:
    """Return the mask [T, T] with which each token looks at itself and to its left.

    Row i is True for the columns 0 to i (Vaswani et al. 2017, section 3.2.3).

    Raises:
        TypeError, ValueError: T is no whole number of at least 1.
    """
    require_positive_int("T", T)
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def padding_mask(lengths: Tensor, T: int) -> Tensor:
    """Return the mask [B, T] of real tokens, to be passed as `key_mask`.

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
    """
    require_positive_int("T", T)
    require_tensor("lengths", lengths)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(
            f"lengths must be whole numbers of tokens, one a sequence, got {lengths.dtype}"
        )
    if lengths.dim() != 1:
        raise ValueError(f"lengths must have shape [B], got {shape_of(lengths)}")
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
) -> Tensor | None:
    """Combine all that limits who may look at whom into one mask, or None if nothing does.

    Args:
        scores_shape: [T_q, T_k], [B, T_q, T_k] or [B, h, T_q, T_k].
        device: where the scores are.
        mask: boolean; see the top of this file for its shapes.
        key_mask: boolean [B, T_k].
        causal: also forbid every look to the right.

    Returns:
        A boolean tensor that broadcasts to `scores_shape`.

    Raises:
        TypeError: a mask isn't boolean.
        ValueError: a shape doesn't fit, or `causal` with T_q != T_k.
    """
    parts = []
    if mask is not None:
        require_boolean_mask("mask", mask, device)
        parts.append(_fit_mask(mask, scores_shape))
    if key_mask is not None:
        require_boolean_mask("key_mask", key_mask, device)
        parts.append(_fit_key_mask(key_mask, scores_shape))
    if causal:
        T_q, T_k = scores_shape[-2:]
        if T_q != T_k:
            raise ValueError(
                f"causal needs as many queries as keys, got T_q={T_q} and T_k={T_k}: "
                "it isn't defined which query stands where; pass the mask that you mean"
            )
        parts.append(causal_mask(T_q, device=device))
    if not parts:
        return None
    combined = parts[0]
    for part in parts[1:]:
        combined = combined & part
    return combined


def _fit_mask(mask: Tensor, scores_shape: tuple[int, ...]) -> Tensor:
    """Bring a 2-D, 3-D or 4-D mask to a shape that broadcasts to the scores."""
    T_q, T_k = scores_shape[-2:]
    batch = scores_shape[:1] if len(scores_shape) > 2 else ()
    if mask.dim() == 2:
        wanted, fits = f"[T_q={T_q}, T_k={T_k}]", tuple(mask.shape) == (T_q, T_k)
    elif mask.dim() == 3 and batch:
        wanted = f"[B={batch[0]}, T_q={T_q}, T_k={T_k}]"
        fits = tuple(mask.shape) == (*batch, T_q, T_k)
    elif mask.dim() == 4 and len(scores_shape) == 4:
        wanted = f"a shape that broadcasts to [B, h, T_q, T_k] = {list(scores_shape)}"
        fits = all(m in (1, s) for m, s in zip(mask.shape, scores_shape, strict=True))
    else:
        raise ValueError(
            f"mask must have 2 dimensions [T_q, T_k], 3 [B, T_q, T_k] or 4 [B, h, T_q, T_k], "
            f"and no more than the scores {list(scores_shape)}, got shape {shape_of(mask)}"
        )
    if not fits:
        raise ValueError(
            f"mask must have shape {wanted}, got {shape_of(mask)}: "
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
