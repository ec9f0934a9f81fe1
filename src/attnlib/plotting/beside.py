"""A right map beside a broken one, which may not be attention at all."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from attnlib._checks import require_floating, shape_of
from attnlib.plotting.heads import ROW_SUM_TOLERANCE, plot_heads
from attnlib.plotting.matrices import plot_matrices


def plot_beside(
    right: Tensor,
    broken: Tensor,
    tokens: Sequence[str] | None = None,
    *,
    mask: Tensor | None = None,
) -> Figure:
    """Draw a right head's weights beside those of a broken one.

    If both are attention, `plot_heads` draws them. If the broken one isn't, both are drawn as
    plain numbers by `plot_matrices`, and each title says what its rows sum to. NaN is left blank.

    Args:
        right: weights [T_q, T_k].
        broken: numbers [rows, columns], whatever they are.
        tokens: T labels of rows and columns, where a map has as many.
        mask: boolean [T_q, T_k], True = may look. Where `plot_heads` draws, looks that it forbids
            are left blank; a broken map shows those that have weight all the same.

    Raises:
        TypeError, ValueError: not floating point tensors of two dimensions, or a mask that forbids
            a look of the right map.
    """
    maps = {"right": right, "broken": broken}
    for name, rows in maps.items():
        require_floating(name, rows)
        if rows.dim() != 2:
            raise ValueError(f"{name} must have shape [T_q, T_k], got {shape_of(rows)}")
    if right.shape == broken.shape and all(map(_is_attention, maps.values())):
        if mask is not None:
            mask = torch.stack([mask, mask | (broken != 0)])[None]  # a mask a map
        return plot_heads(
            torch.stack([right, broken]),
            tokens if right.shape[0] == right.shape[1] else None,
            key_tokens=tokens,
            titles=list(maps),
            colors_of=[None, None],
            mask=mask,
        )
    largest = max(rows.nan_to_num(0.0).abs().max().item() for rows in maps.values())
    return plot_matrices(
        {f"{name}: {_say_sums(rows)}": rows for name, rows in maps.items()},
        row_labels=tokens,
        column_labels=tokens,
        limit=largest,
    )


def _is_attention(rows: Tensor) -> bool:
    """Tell whether `plot_heads` would draw these rows."""
    sums = rows.sum(-1)
    tolerance = ROW_SUM_TOLERANCE.get(rows.dtype, 1e-4)
    return bool((rows >= 0).all() and (((sums - 1).abs() <= tolerance) | (sums == 0)).all())


def _say_sums(rows: Tensor) -> str:
    sums = rows.sum(-1)
    if sums.isnan().any():
        return f"{int(sums.isnan().sum())} of {len(sums)} rows NaN"
    low, high = f"{sums.min().item():.2f}", f"{sums.max().item():.2f}"
    return f"rows sum to {low}" if low == high else f"rows sum to {low} ... {high}"
