"""Attention maps of long sequences, or windows out of them, with tokens counted along the sides."""

import math
from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_floating, require_range
from attnlib.plotting.heads import ROW_SUM_TOLERANCE, one_map_a_head, title_color
from attnlib.plotting.style import TEXT_WIDTH, WEIGHT_MAP, new_figure

# Attention that is spread over hundreds of cells leaves little for each. The cube root of 1/256 is
# 0.16, so that such a map has shades; the legend shows how the colors are spaced.
SHADES = PowerNorm(1 / 3, 0, 1)
LEGEND_TICKS = [0, 0.001, 0.01, 0.1, 0.5, 1]


def plot_long_heads(
    maps: Tensor,
    rows: range,
    keys: range,
    *,
    titles: Sequence[str] | None = None,
    colors_of: Sequence[int | None] | None = None,
) -> Figure:
    """Draw maps of `attnlib.heatmap`: attention of many tokens in few cells, or a window of it.

    Small weights are spread over more colors than in `plot_heads`, as the legend shows. Queries
    that may look nowhere are left blank.

    Args:
        maps: "mass" maps of `attention_heatmap`, or weights of `attention_window`: [n, m],
            [h, n, m] or [1, h, n, m].
        rows: the tokens that look, from top to bottom: range(T_q) for a whole map.
        keys: the tokens that are looked at, likewise.
        titles: one title a map; "head 1", "head 2", ... if left out.
        colors_of: as for `plot_heads`.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError: maps that aren't floating point numbers, or ranges that aren't ranges.
        ValueError: numbers that can't be shares of attention, more cells than tokens, or a title
            too many or too few.
    """
    shown = one_map_a_head(_require_shares(maps))
    heads, n, m = shown.shape
    for name, tokens, cells in (("rows", rows, n), ("keys", keys, m)):
        require_range(name, tokens)
        if len(tokens) < cells:
            raise ValueError(f"{name} must hold a token for each of {cells} cells, got {tokens}")
    if titles is None:
        titles = [f"head {i + 1}" for i in range(heads)] if heads > 1 else [""]
    if colors_of is None:
        colors_of = range(heads) if heads > 1 else [None]
    for name, given in (("titles", titles), ("colors_of", colors_of)):
        if len(given) != heads:
            raise ValueError(f"{name} must hold {heads} entries, one a map, got {len(given)}")
    columns = min(heads, 2)
    lines = math.ceil(heads / columns)
    side = (TEXT_WIDTH - 1.6) / columns  # inches
    figure, axes = new_figure(
        height=lines * (side * len(rows) / len(keys) + 0.5) + 0.3,
        nrows=lines, ncols=columns, squeeze=False,
    )  # fmt: skip
    for i, ax in enumerate(axes.flat):
        if i >= heads:
            ax.set_axis_off()
            continue
        _draw(ax, shown[i], rows, keys)
        ax.set_title(titles[i], color=title_color(colors_of[i]))
    figure.supylabel("query (who looks)", color=palette.QUERY_COLOR, fontsize=9.5)
    figure.supxlabel("key (what is looked at)", color=palette.KEY_COLOR, fontsize=9.5)
    bar = figure.colorbar(
        ScalarMappable(SHADES, WEIGHT_MAP), ax=axes, aspect=20, pad=0.02,
        shrink=min(0.8, 2.4 / figure.get_figheight()), ticks=LEGEND_TICKS,
        label="share of a query's attention", format="{x:g}",
    )  # fmt: skip
    bar.outline.set_visible(False)
    return figure


def _draw(ax: Axes, cells: Tensor, rows: range, keys: range) -> None:
    blind = cells.sum(-1, keepdim=True) == 0
    height, width = (math.ceil(len(r) / n) for r, n in zip((rows, keys), cells.shape, strict=True))
    bottom, right = rows.start + height * len(cells), keys.start + width * cells.shape[1]
    ax.imshow(
        cells.masked_fill(blind, torch.nan).numpy(), cmap=WEIGHT_MAP, norm=SHADES,
        extent=(keys.start, right, bottom, rows.start), interpolation="none", aspect="equal",
    )  # fmt: skip
    ax.set(xlim=(keys.start, keys.stop), ylim=(rows.stop, rows.start))  # the last cells are smaller
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(palette.LINE)


def _require_shares(maps: Tensor) -> Tensor:
    """Return maps in float64 on the CPU, or raise if a row can't be shares of attention."""
    require_floating("maps", maps)
    tolerance = ROW_SUM_TOLERANCE.get(maps.dtype, 1e-4)
    shares = maps.detach().to("cpu", torch.float64)
    if not torch.isfinite(shares).all():
        raise ValueError("maps must be finite, got NaN or infinity")
    if shares.numel() == 0 or shares.min() < 0 or shares.sum(-1).max() > 1 + tolerance:
        raise ValueError(
            "each row of maps must hold shares of attention that sum to 1, or less in a window: "
            'was attention_heatmap asked for reduce="mass"?'
        )
    return shares
