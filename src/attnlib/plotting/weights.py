"""Drawing the attention weights of a head."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlib import palette
from attnlib.checks import require_count, shape_of
from attnlib.plotting.cells import color_cells, label_axis, write_numbers
from attnlib.plotting.checks import checked_items, checked_labels
from attnlib.plotting.style import WEIGHT_MAP

LEGEND_LINE = 0.28  # inches; the height of a legend's entry below the maps


def one_map_per_head(name: str, maps: Tensor, shape: str) -> Tensor:
    """Return one map, [h, ...] or [1, h, ...] as [h, rows, columns], or raise ValueError.

    `shape` is the caller's name for the dimensions of a map, such as "T_q, T_k".
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
    """Return the title of each map and its color, or raise unless there is one per map.

    `colors_of` has for each map the head (0-based) whose color its title takes, or None for the
    color of text. If left out, titles are "head 1", "head 2", ..., but a single map has none.
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
        tokens, key_tokens: labels of the rows and of the columns, made by `label_of`.
        cell: approximate width of a cell in inches.
        row: height of a cell; its width if left out.
        left: share of a cell's size that long labels leave.
        numbers: whether to write each weight into its cell, if there is room.
    """
    row = cell if row is None else row
    T_q, T_k = rows.shape
    fully_masked = rows.nansum(-1) == 0
    rows = rows.masked_fill(fully_masked[:, None], torch.nan)  # leaves these rows empty
    color_cells(ax, rows, WEIGHT_MAP, vmin=0, vmax=1, aspect=row / cell)
    for i in fully_masked.nonzero()[:, 0].tolist():
        ax.add_patch(Rectangle((-0.5, i - 0.5), T_k, 1, fill=False, hatch="////", linewidth=0))
    label_axis(ax.yaxis, tokens, T_q, row * left)
    label_axis(ax.xaxis, key_tokens, T_k, cell * left)
    ax.spines[:].set_visible(False)
    if numbers:
        write_numbers(ax, rows, WEIGHT_MAP, Normalize(0, 1), "{:.2f}", min(row, cell))
