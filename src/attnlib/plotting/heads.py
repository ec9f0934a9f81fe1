"""Attention weights as heatmaps: rows are queries, columns are keys, colors run from 0 to 1."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_floating, require_positive_int, shape_of
from attnlib.masks import combine_masks
from attnlib.plotting._cells import LETTER, label_axis, longest, stand_upright, write_numbers
from attnlib.plotting.style import TEXT_WIDTH, WEIGHT_MAP, new_figure

# How far a row's sum may be from 1: rounding in bfloat16 and float16 is that coarse.
ROW_SUM_TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-2}
LARGEST_CELL = 0.62  # inches; a small example shouldn't fill the page
SMALLEST_NUMBERED_CELL = 0.34  # inches; a number needs that much
LEGEND_LINE = 0.28  # inches; the height of a legend below the maps


def require_attention(weights: Tensor) -> Tensor:
    """Return `weights` in float64 on the CPU, or raise ValueError if they can't be attention.

    Every row must be non-negative and sum to 1 (within 1e-4; 2e-2 in half precision), or be wholly
    0: a query that may look nowhere.

    Args:
        weights: [..., T_q, T_k].
    """
    require_floating("weights", weights)
    tolerance = ROW_SUM_TOLERANCE.get(weights.dtype, 1e-4)
    rows = weights.detach().to("cpu", torch.float64)
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
    wrong = ((sums - 1).abs() > tolerance) & (sums != 0)
    if wrong.any():
        where = tuple(wrong.nonzero()[0].tolist())
        raise ValueError(
            f"each row of weights must sum to 1 (or be wholly 0), but row {where} sums to "
            f"{sums[where].item():.4f}: softmax over the wrong axis, dropout, "
            "or numbers that were never attention?"
        )
    return rows


def plot_heads(
    weights: Tensor,
    tokens: Sequence[str] | None = None,
    *,
    key_tokens: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    colors_of: Sequence[int | None] | None = None,
    numbers: bool | None = None,
    columns: int | None = None,
    mask: Tensor | None = None,
) -> Figure:
    """Draw the weights of one or several heads as heatmaps on one scale from 0 to 1.

    Rows are queries (who looks), columns are keys (what is looked at). A query that may look
    nowhere is hatched. With a `mask`, looks that it forbids are left blank, so that "may not look"
    can be told from a weight that happens to be small.

    Args:
        weights: [T_q, T_k], [h, T_q, T_k] or [1, h, T_q, T_k].
        tokens: T_q labels of the rows, and of the columns unless `key_tokens` are given.
        key_tokens: T_k labels of the columns.
        titles: one title a map; "head 1", "head 2", ... if left out.
        colors_of: for each map the head (0-based) whose color its title takes, or None for a map
            that is no particular head; 0, 1, 2, ... if left out.
        numbers: write each weight into its cell; by default where there is room.
        columns: heads a line.
        mask: boolean, True = may look: the mask with which the weights were computed. Shapes as in
            `attnlib.masks`, for the one sample that is drawn: [T_q, T_k], [1, T_q, T_k], or 4-D
            that broadcasts to [1, h, T_q, T_k].

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: weights that aren't attention, labels that don't fit, or a mask that
            forbids a look which has some weight.
    """
    maps = one_map_a_head(require_attention(weights))
    heads, T_q, T_k = maps.shape
    if mask is not None:
        maps = _without_forbidden_looks(maps, mask)
    any_blank = bool(maps.isnan().any())
    key_tokens = tokens if key_tokens is None else key_tokens
    for name, labels, count in (("tokens", tokens, T_q), ("key_tokens", key_tokens, T_k)):
        if labels is not None and len(labels) != count:
            raise ValueError(f"{name} must hold {count} labels, got {len(labels)}")
    if titles is None:
        titles = [f"head {i + 1}" for i in range(heads)] if heads > 1 else [""]
    if len(titles) != heads:
        raise ValueError(f"titles must hold {heads} titles, one a map, got {len(titles)}")
    if colors_of is None:
        colors_of = range(heads) if heads > 1 else [None]
    if len(colors_of) != heads:
        raise ValueError(f"colors_of must hold {heads} heads, one a map, got {len(colors_of)}")
    columns = min(heads, 4 if T_k <= 8 else 2) if columns is None else columns
    require_positive_int("columns", columns)
    lines = math.ceil(heads / columns)
    cell = min((TEXT_WIDTH - 1.4) / (columns * T_k), LARGEST_CELL)  # inches
    figure, axes = new_figure(
        height=lines * (T_q * cell + 0.35) + _label_height(key_tokens, lines, cell) + 0.4
        + any_blank * LEGEND_LINE,
        nrows=lines, ncols=columns, squeeze=False,
    )  # fmt: skip
    numbers = cell >= SMALLEST_NUMBERED_CELL if numbers is None else numbers
    for i, ax in enumerate(axes.flat):
        if i >= heads:
            ax.set_axis_off()
            continue
        row_labels = tokens if i % columns == 0 else None
        draw_map(ax, maps[i], row_labels, key_tokens, cell=cell, numbers=numbers)
        ax.set_title(titles[i], color=title_color(colors_of[i]))
    if heads == 1:
        axes[0, 0].set_ylabel("query (who looks)", color=palette.QUERY_COLOR)
        axes[0, 0].set_xlabel("key (what is looked at)", color=palette.KEY_COLOR)
    else:  # once for all maps
        figure.supylabel("query (who looks)", color=palette.QUERY_COLOR, fontsize=9.5)
        figure.supxlabel("key (what is looked at)", color=palette.KEY_COLOR, fontsize=9.5)
    add_weight_scale(figure, axes)
    if any_blank:
        _explain_blank_cells(figure, axes)
    return figure


def draw_map(
    ax: Axes,
    rows: Tensor,
    tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
    *,
    cell: float,
    numbers: bool,
) -> None:
    """Draw one head's weights [T_q, T_k] on `ax`, with cells about `cell` inches wide.

    tokens label the rows, key_tokens the columns. A weight of NaN leaves its cell blank.
    """
    T_q, T_k = rows.shape
    blind = rows.nansum(-1) == 0  # may look nowhere
    rows = rows.masked_fill(blind[:, None], torch.nan)  # leaves these rows empty
    ax.imshow(rows.numpy(), cmap=WEIGHT_MAP, vmin=0, vmax=1, interpolation="none", aspect="equal")
    for i in blind.nonzero()[:, 0].tolist():
        ax.add_patch(Rectangle((-0.5, i - 0.5), T_k, 1, fill=False, hatch="////", linewidth=0))
    label_axis(ax.yaxis, tokens, T_q, cell)
    label_axis(ax.xaxis, key_tokens, T_k, cell)
    ax.spines[:].set_visible(False)
    if numbers:
        write_numbers(ax, rows, WEIGHT_MAP, Normalize(0, 1), "{:.2f}", cell)


def add_weight_scale(figure: Figure, axes: np.ndarray) -> None:
    """Put the legend of the weights' colors, 0 to 1, beside `axes`."""
    bar = figure.colorbar(
        ScalarMappable(Normalize(0, 1), WEIGHT_MAP), ax=axes, aspect=20, pad=0.02,
        shrink=min(0.8, 2.0 / figure.get_figheight()), ticks=[0, 0.5, 1], label="weight",
    )  # fmt: skip
    bar.outline.set_visible(False)


def one_map_a_head(rows: Tensor) -> Tensor:
    """[T_q, T_k], [h, T_q, T_k] or [1, h, T_q, T_k] -> [h, T_q, T_k]."""
    if rows.dim() == 4 and rows.shape[0] == 1:
        rows = rows[0]
    if rows.dim() == 2:
        rows = rows[None]
    if rows.dim() != 3:
        raise ValueError(
            f"weights must have shape [T_q, T_k], [h, T_q, T_k] or [1, h, T_q, T_k], "
            f"got {shape_of(rows)}: pick one sample of a batch with weights[0]"
        )
    return rows


def _without_forbidden_looks(maps: Tensor, mask: Tensor) -> Tensor:
    """Return maps [h, T_q, T_k] with NaN where `mask` forbids a look, or raise if it can't be."""
    if isinstance(mask, Tensor):
        mask = mask.cpu()
    allowed = combine_masks((1, *maps.shape), maps.device, mask=mask)
    assert allowed is not None  # since there is a mask
    allowed = allowed.broadcast_to((1, *maps.shape))[0]
    wrong = (~allowed & (maps != 0)).nonzero().tolist()
    if wrong:
        head, query, key = wrong[0]
        raise ValueError(
            f"mask forbids a look that has weight: in map {head} query {query} gives "
            f"{maps[head, query, key].item():.4f} to key {key}. True = may look; were the weights "
            "computed with another mask, or without one?"
        )
    return maps.masked_fill(~allowed, torch.nan)


def _explain_blank_cells(figure: Figure, axes: np.ndarray) -> None:
    """Frame the maps, so that blank cells are seen to belong to them, and say what blank means."""
    for ax in axes.flat:
        ax.spines[:].set_visible(True)
        ax.spines[:].set_color(palette.LINE)
    blank = Patch(facecolor="none", edgecolor=palette.MUTED, label="blank: may not look")
    figure.legend(
        handles=[blank], loc="outside lower right", fontsize=9, frameon=False,
        handlelength=1, handleheight=1,
    )  # fmt: skip


def title_color(head: int | None) -> str:
    """Return the color of a head's title; that of text for a map that is no particular head."""
    return palette.INK if head is None else palette.head_color(head)


def _label_height(labels: Sequence[str] | None, lines: int, cell: float) -> float:
    """Inches that the columns' labels need below all lines of maps."""
    if labels is None:
        return 0.2
    return lines * (0.15 + (LETTER * longest(labels) if stand_upright(labels, cell) else 0.1))
