"""A right map beside a broken one, which may not be attention at all."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from attnlib.checks import checked_texts, require_boolean_mask, require_drawable, shape_of
from attnlib.plotting.checks import checked_tensor
from attnlib.plotting.heads import plot_heads
from attnlib.plotting.matrices import plot_matrices
from attnlib.weight_checks import require_attention


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
        broken: any numbers [rows, columns] but infinite ones.
        tokens: labels of the rows and columns of each map that has as many.
        mask: boolean [T_q, T_k], True = may look. `plot_heads` leaves forbidden looks blank, but
            shows those of the broken map that have weight.

    Raises:
        TypeError, ValueError: not floating point tensors of two dimensions, tokens that fit no
            side of a map, or a mask that isn't the right map's.
    """
    checked_tensor("right", right, "T_q T_k", nan=True)
    checked_tensor("broken", broken, "rows columns", nan=True)
    if tokens is not None:
        tokens = checked_texts("tokens", tokens)
        if len(tokens) not in (*right.shape, *broken.shape):
            raise ValueError(
                "tokens must hold a label per row or column of a map, "
                f"got {len(tokens)} for {shape_of(right)} and {shape_of(broken)}"
            )
    if mask is not None:
        mask = _checked_mask(mask, right)
    if right.shape == broken.shape:
        pair = torch.stack([right.cpu(), broken.cpu()])
        if _is_attention(pair):
            if mask is not None:
                mask = torch.stack([mask, mask | (pair[1] != 0)])[None]  # a mask per map
            T_q, T_k = right.shape
            rows, keys = _fitting(tokens, T_q), _fitting(tokens, T_k)
            if rows and not keys:
                keys = [""] * T_k  # else plot_heads would name them like the rows
            return plot_heads(
                pair,
                rows,
                key_tokens=keys,
                titles=["right", "broken"],
                colors_of=[None, None],
                mask=mask,
            )
    return plot_matrices(
        {f"right: {_say_sums(right)}": right, f"broken: {_say_sums(broken)}": broken},
        row_labels=_fitting(tokens, right.shape[0], broken.shape[0]),
        column_labels=_fitting(tokens, right.shape[1], broken.shape[1]),
    )


def _checked_mask(mask: Tensor, right: Tensor) -> Tensor:
    """Return a mask on the CPU, or raise unless it is boolean and has the right map's shape."""
    require_drawable("mask", mask)
    require_boolean_mask("mask", mask, mask.device)
    if mask.shape != right.shape:
        raise ValueError(
            f"mask must have the shape of right, got {shape_of(mask)} and {shape_of(right)}"
        )
    return mask.cpu()


def _is_attention(maps: Tensor) -> bool:
    """Return whether `plot_heads` would draw these maps."""
    try:
        require_attention(maps)
    except ValueError:
        return False
    return True


def _fitting(tokens: Sequence[str] | None, *counts: int) -> Sequence[str] | None:
    """Return the tokens if their number is one of `counts`."""
    return tokens if tokens and len(tokens) in counts else None


def _say_sums(rows: Tensor) -> str:
    sums = rows.sum(-1)
    if sums.isnan().any():
        return f"{int(sums.isnan().sum())} of {len(sums)} rows NaN"
    low, high = f"{sums.min().item():.2f}", f"{sums.max().item():.2f}"
    return f"rows sum to {low}" if low == high else f"rows sum to {low} ... {high}"
