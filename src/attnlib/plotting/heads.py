"""Attention weights as heatmaps: rows are queries, columns are keys, colors run from 0 to 1."""

from collections.abc import Sequence

import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.checks import require_drawable, require_flag
from attnlib.masks import combine_masks
from attnlib.plotting._grid import grid_of
from attnlib.plotting.cells import add_color_bar, add_meanings, frame, meanings_of
from attnlib.plotting.checks import checked_labels, require_columns
from attnlib.plotting.layout_limits import line_gap
from attnlib.plotting.page import drawn_for_phones
from attnlib.plotting.style import WEIGHT_MAP, new_figure
from attnlib.plotting.text import label_of, set_title
from attnlib.plotting.weights import LEGEND_LINE, draw_weights, one_map_per_head, titles_of_heads
from attnlib.weight_checks import require_attention

MOST_COLUMNS = 24  # maps a line; more would be too small to be seen


@drawn_for_phones
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
    nowhere is hatched. With a `mask`, forbidden looks are left blank, unlike small weights. If
    there is no room for all labels, every second, third, ... is written; keys of many heads are
    labeled only below the lowest line.

    Args:
        weights: [T_q, T_k], [h, T_q, T_k] or [1, h, T_q, T_k].
        tokens: T_q labels of the rows, and of the columns unless `key_tokens` are given.
        key_tokens: T_k labels of the columns.
        titles: one title a map; "head 1", "head 2", ... if left out.
        colors_of: for each map the head (0-based) whose color its title takes, or None for a map
            that is no particular head; 0, 1, 2, ... if left out.
        numbers: whether to write each weight into its cell. If left out, where there is room for
            the usual size; if True, in any size that can be read.
        columns: heads a line, at most 24; what suits their number and shape if left out.
        mask: boolean, True = may look: the mask with which the weights were computed. Shapes as in
            `attnlib.masks`, for the one sample that is drawn: [T_q, T_k], [1, T_q, T_k], or 4-D
            that broadcasts to [1, h, T_q, T_k].

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: weights that aren't attention, labels that don't fit, a mask that
            forbids a look with weight, or heads that don't fit into 24 inches with cells of at
            least 1/200 inch.
    """
    maps = one_map_per_head("weights", require_attention(weights), "T_q, T_k")
    heads, T_q, T_k = maps.shape
    if mask is not None:
        maps = _blank_where_masked(maps, mask)
    any_blank = bool(maps.isnan().any())
    meanings = meanings_of(hatched=bool((maps.nansum(-1) == 0).any()), blank=any_blank)
    if tokens is not None:
        tokens = checked_labels("tokens", tokens, T_q, "query")
    if key_tokens is not None:
        key_tokens = checked_labels("key_tokens", key_tokens, T_k, "key")
    elif tokens is not None:
        key_tokens = checked_labels("tokens (without key_tokens)", tokens, T_k, "key")
    row_labels, key_labels = (
        names and [label_of(name) for name in names] for names in (tokens, key_tokens)
    )
    headings = titles_of_heads(heads, titles, colors_of)
    if columns is not None:
        require_columns(columns, MOST_COLUMNS)
    if numbers is not None:
        require_flag("numbers", numbers)
    texts = [text for text, _ in headings]
    grid = grid_of(weights, maps, texts, row_labels, key_labels, columns, numbers)
    figure, axes = new_figure(
        height=grid.height + LEGEND_LINE * len(meanings),
        gap=line_gap(), nrows=grid.lines, ncols=grid.columns, squeeze=False,
    )  # fmt: skip
    for i, ax in enumerate(axes.flat):
        if i >= heads:
            ax.set_axis_off()
            continue
        draw_weights(
            ax,
            maps[i],
            row_labels if i % grid.columns == 0 else None,
            key_labels if grid.has_key_labels(i) else None,
            cell=grid.cell,
            row=grid.row,
            left=grid.left,
            numbers=grid.numbers,
        )
        title, color = headings[i]
        style = {"fontsize": 8} if grid.crowded else {}
        set_title(ax, title, grid.panel, color=color, **style)
    if heads == 1:
        axes[0, 0].set_ylabel("query (who looks)", color=palette.QUERY_COLOR)
        axes[0, 0].set_xlabel("key (what is looked at)", color=palette.KEY_COLOR)
    else:  # once for all maps
        figure.supylabel("query (who looks)", color=palette.QUERY_COLOR, fontsize=9.5)
        figure.supxlabel("key (what is looked at)", color=palette.KEY_COLOR, fontsize=9.5)
    add_color_bar(
        figure, axes, ScalarMappable(Normalize(0, 1), WEIGHT_MAP),
        shrink=min(0.8, 2.0 / figure.get_figheight()), ticks=[0, 0.5, 1], label="weight",
    )  # fmt: skip
    if any_blank:  # a frame shows that blank cells belong to their map
        for ax in axes.flat:
            frame(ax)
    if meanings:
        add_meanings(figure, meanings)
    return figure


def _blank_where_masked(maps: Tensor, mask: Tensor) -> Tensor:
    """Return maps [h, T_q, T_k] with NaN where `mask` forbids a look, or raise if it had weight."""
    require_drawable("mask", mask)
    allowed = combine_masks((1, *maps.shape), maps.device, mask=mask.cpu())
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
