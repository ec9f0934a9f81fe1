"""Attention weights: what they must be, and how one head's are drawn."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_count, require_floating, shape_of
from attnlib.plotting._cells import label_axis, write_numbers
from attnlib.plotting._checks import checked_items, checked_labels, dense_numbers
from attnlib.plotting.style import WEIGHT_MAP

LEGEND_LINE = 0.28  # inches; the height of a legend below the maps


def tolerance_of(weights: Tensor) -> float:
    """Return how far a row's sum may be from 1: rounding in half precision is coarse."""
    return 2e-2 if weights.dtype in (torch.bfloat16, torch.float16) else 1e-4


def require_attention(weights: Tensor) -> Tensor:
    """Return `weights` in float64 on the CPU, or raise ValueError if they can't be attention.

    Every row must be non-negative and sum to 1 (within 1e-4; 2e-2 in half precision), or be wholly
    0: a query that may look nowhere.

    Args:
        weights: [..., T_q, T_k].
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
            f"{sums[where].item():.4f}: softmax over the wrong axis, dropout, "
            "or numbers that were never attention?"
        )
    return rows


def one_map_per_head(name: str, maps: Tensor, shape: str) -> Tensor:
    """Return maps of one head or several as [h, rows, columns], or raise ValueError.

    Args:
        name: what the caller's argument is called.
        maps: one map, one per head [h, ...], or those of one sample [1, h, ...].
        shape: what the caller calls the dimensions of a map: "T_q, T_k".
    """
    if maps.dim() not in (2, 3, 4) or (maps.dim() == 4 and len(maps) != 1) or not maps.numel():
        raise ValueError(
            f"{name} must have shape [{shape}], [h, {shape}] or [1, h, {shape}], "
            f"got {shape_of(maps)}: pick one sample of a batch with {name}[0]"
        )
    return maps.reshape(-1, *maps.shape[-2:])


def titles_of_heads(
    heads: int, titles: Sequence[str] | None, colors_of: Sequence[int | None] | None
) -> list[tuple[str, str]]:
    """Return the title of each map and its color, or raise if there aren't as many as maps.

    Args:
        heads: the number of maps.
        titles: "head 1", "head 2", ... if left out, or nothing over a single map.
        colors_of: for each map the head (0-based) whose color its title takes, or None for the
            color of text; 0, 1, 2, ... if left out, or None for a single map.
    """
    if titles is None:
        titles = [f"head {i + 1}" for i in range(heads)] if heads > 1 else [""]
    if colors_of is None:
        colors_of = range(heads) if heads > 1 else [None]
    titles = checked_labels("titles", titles, heads, "map")
    colors_of = checked_items("colors_of", colors_of, heads, "map")
    for head in colors_of:
        if head is not None:
            require_count("each of colors_of", head)
    colors = [palette.INK if head is None else palette.head_color(head) for head in colors_of]
    return list(zip(titles, colors, strict=True))


def draw_weights(
    ax: Axes,
    rows: Tensor,
    tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
    *,
    cell: float,
    row: float | None = None,
    left: float = 1.0,
    numbers: bool,
) -> None:
    """Draw one head's weights [T_q, T_k] on `ax`. A weight of NaN leaves its cell blank.

    Args:
        tokens, key_tokens: labels of the rows and of the columns, as `label_of` makes them.
        cell: about how wide a cell is, in inches.
        row: how tall it is; as wide if left out.
        left: how much of that long labels leave, which decides how many labels have room.
        numbers: whether each weight is written into its cell, if there is room.
    """
    row = cell if row is None else row
    T_q, T_k = rows.shape
    fully_masked = rows.nansum(-1) == 0
    rows = rows.masked_fill(fully_masked[:, None], torch.nan)  # leaves these rows empty
    shape = row / cell
    ax.imshow(
        rows.numpy(), cmap=WEIGHT_MAP, vmin=0, vmax=1, interpolation="none", aspect=shape,
        origin="upper",
    )  # fmt: skip
    for i in fully_masked.nonzero()[:, 0].tolist():
        ax.add_patch(Rectangle((-0.5, i - 0.5), T_k, 1, fill=False, hatch="////", linewidth=0))
    label_axis(ax.yaxis, tokens, T_q, row * left)
    label_axis(ax.xaxis, key_tokens, T_k, cell * left)
    ax.spines[:].set_visible(False)
    if numbers:
        write_numbers(ax, rows, WEIGHT_MAP, Normalize(0, 1), "{:.2f}", min(row, cell))
