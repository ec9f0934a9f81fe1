"""Checks of attention weights that are drawn or scored."""

import torch
from torch import Tensor

from attnlib.checks import dense_numbers, require_floating, shape_of


def tolerance_of(weights: Tensor) -> float:
    """Return how far a row's sum may be from 1, as half precision rounds coarsely."""
    return 2e-2 if weights.dtype in (torch.bfloat16, torch.float16) else 1e-4


def require_attention(weights: Tensor) -> Tensor:
    """Return weights [..., T_q, T_k] in float64 on the CPU, or raise if they can't be attention.

    No weight may be negative, and each row must sum to 1 (within 1e-4; 2e-2 in half precision) or
    be wholly 0, as that of a query that may look nowhere.
    """
    require_floating("weights", weights)
    rows = dense_numbers("weights", weights)
    if rows.dim() < 2 or rows.numel() == 0:
        raise ValueError(f"weights must have shape [..., T_q, T_k], got {shape_of(weights)}")
    if not torch.isfinite(rows).all():
        raise ValueError("weights must be finite, got NaN or infinity: was a row wholly masked?")
    if rows.min() < 0:
        raise ValueError(
            f"weights must not be negative, got {rows.min().item():.4g}: "
            "were scores passed instead of weights?"
        )
    sums = rows.sum(-1)
    wrong = ((sums - 1).abs() > tolerance_of(weights)) & (sums != 0)
    if wrong.any():
        where = tuple(wrong.nonzero()[0].tolist())
        raise ValueError(
            f"each row of weights must sum to 1 (or be wholly 0), but row {where} sums to "
            f"{sums[where].item():.4g}: softmax over the wrong axis, dropout, "
            "or numbers that were never attention?"
        )
    return rows
