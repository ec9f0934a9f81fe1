"""Checks of the arguments of heatmaps."""

from torch import Tensor

from attnlib.checks import (
    require_flag,
    require_floating,
    require_like,
    require_positive_int,
    require_tokens,
    shape_of,
)
from attnlib.masks import combine_masks


def require_inputs(q: Tensor, k: Tensor, causal: bool, key_mask: Tensor | None) -> None:
    """Raise unless queries, keys and masks fit each other."""
    for name, x in (("q", q), ("k", k)):
        require_floating(name, x)
        if x.dim() != 4:
            raise ValueError(f"{name} must have shape [B, h, T, d_k], got {shape_of(x)}")
        require_tokens(name, x)
    require_like("k", k, "q", q)
    B, h, T_q, d_k = q.shape
    if not d_k:
        raise ValueError(f"q must have heads of at least one number, got {shape_of(q)}")
    if k.shape[0] != B or k.shape[3] != d_k or not k.shape[1] or h % k.shape[1]:
        raise ValueError(
            f"k must have the batch and the width of q, and as many heads or a divisor of them, "
            f"got {shape_of(k)} and q {shape_of(q)}"
        )
    combine_masks((B, h, T_q, k.shape[2]), q.device, key_mask=key_mask)
    require_flag("causal", causal)
    if causal and T_q != k.shape[2]:
        raise ValueError(
            f"causal needs as many queries as keys, got T_q={T_q} and T_k={k.shape[2]}"
        )


def require_grid(grid: int | tuple[int, int]) -> tuple[int, int]:
    """Return (rows, columns), or raise unless `grid` is one or two numbers of cells."""
    if not isinstance(grid, tuple):
        require_positive_int("grid", grid)
        return grid, grid
    if len(grid) != 2:
        raise ValueError(f"grid must be a number of cells or (rows, columns), got {grid}")
    for name, cells in zip(("grid's rows", "grid's columns"), grid, strict=True):
        require_positive_int(name, cells)
    return grid


def require_finite(result: Tensor) -> None:
    if not result.isfinite().all():
        raise ValueError(
            "q and k must hold finite numbers and give finite scores, but some weight is NaN: "
            "is there a NaN or an infinity among them?"
        )
