"""Attention maps of long sequences, with token numbers along the sides."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from attnlib import palette
from attnlib.plotting._long_maps import LongMaps, checked_long_maps
from attnlib.plotting.cells import (
    HATCHED,
    add_color_bar,
    add_meanings,
    color_cells,
    frame,
    meanings_of,
)
from attnlib.plotting.layout_limits import best_columns, require_height
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import WEIGHT_MAP, new_figure
from attnlib.plotting.text import set_title
from attnlib.plotting.weights import LEGEND_LINE, titles_of_heads

# Attention spread over hundreds of cells leaves little for each. The cube root of 1/256 is 0.16, so
# that such a map has shades; the legend shows how the colors are spaced.
SHADES = PowerNorm(1 / 3, 0, 1)
LEGEND_TICKS = [0, 0.001, 0.01, 0.1, 0.5, 1]
PHONE_TICKS = [0, 0.01, 0.1, 0.5, 1]  # the legend is shorter
FLATTEST, TALLEST = 0.6, 1.5  # height / width of a map; few queries on many keys would be a line
MOST_COLUMNS = 4  # maps a line; the numbers below them need room
MOST_CELLS = 4_000_000  # of all maps; more would make a file of many megabytes


@drawn_for_phones
def plot_long_heads(
    maps: Tensor,
    rows: range,
    keys: range,
    *,
    titles: Sequence[str] | None = None,
    colors_of: Sequence[int | None] | None = None,
    causal: bool = False,
) -> Figure:
    """Draw maps of `attention_heatmap`: attention of many tokens in few cells.

    Small weights have more colors than in `plot_heads`, as the legend shows. Queries that may look
    nowhere are hatched.

    Args:
        maps: [n, m], [h, n, m] or [1, h, n, m].
        rows, keys: the queries and the keys of the maps, such as range(T_q) and range(T_k).
        titles: one title a map; "head 1", "head 2", ... if left out.
        colors_of: as for `plot_heads`.
        causal: leave cells blank whose keys all come after their queries.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError: maps that aren't floating point numbers, or rows or keys that aren't ranges.
        ValueError: numbers that can't be shares of attention, ranges that don't fit the cells,
            weight that `causal` forbids, a wrong number of titles, more than 4 million cells, or
            maps that don't fit into 24 inches.

    Example:
        >>> from attnlib.heatmap import attention_heatmap
        >>> q = torch.randn(1, 2, 3000, 16)
        >>> maps = attention_heatmap(q, q, causal=True)  # [1, 2, 250, 250]
        >>> figure = plot_long_heads(maps, range(3000), range(3000), causal=True)
    """
    found = checked_long_maps(maps, rows, keys, causal)
    heads = len(found.shares)
    headings = titles_of_heads(heads, titles, colors_of)
    if found.shares.numel() > MOST_CELLS:
        raise ValueError(
            f"maps must have at most {MOST_CELLS:,} cells together, got {found.shares.numel():,}: "
            "draw fewer heads at a time, or ask attention_heatmap for a coarser grid"
        )

    def height(columns: int) -> float:
        return _height_of_maps(math.ceil(heads / columns), columns, found)

    usual, most = (1, 2) if on_phone() else (2, MOST_COLUMNS)
    columns = best_columns(usual, min(heads, most), height)
    require_height("maps", height(columns), "draw fewer heads at a time")
    figure, axes = _figure_of_maps(math.ceil(heads / columns), columns, found)
    for i, ax in enumerate(axes.flat):
        if i >= heads:
            ax.set_axis_off()
            continue
        _draw_map(ax, found, i)
        title, color = headings[i]
        set_title(ax, title, _side(columns), color=color)
    _add_legends(figure, axes, found)
    return figure


def _figure_of_maps(lines: int, columns: int, maps: LongMaps) -> tuple[Figure, np.ndarray]:
    """Return a figure with room for the maps, and its axes."""
    figure, axes = new_figure(
        height=_height_of_maps(lines, columns, maps),
        nrows=lines, ncols=columns, squeeze=False, gridspec_kw={"wspace": 0.06},
    )  # fmt: skip
    figure.supylabel("query (who looks)", color=palette.QUERY_COLOR, fontsize=9.5)
    figure.supxlabel("key (what is looked at)", color=palette.KEY_COLOR, fontsize=9.5)
    return figure, axes


def _height_of_maps(lines: int, columns: int, maps: LongMaps) -> float:
    """Return the height of such a figure in inches."""
    height = _side(columns) * _proportion(maps) + 0.55
    above = 0.6 if on_phone() else 0.0  # for the legend of colors
    return lines * height + 0.4 + above + LEGEND_LINE * len(_meanings(maps))


def _side(columns: int) -> float:
    """Return the width of each map of a line in inches; ticks and the legend take the rest."""
    return (text_width() - (0.2 if on_phone() else 1.1)) / columns - 0.55


def _proportion(maps: LongMaps) -> float:
    """Return height / width of a map: that of its tokens, within limits."""
    return min(max(len(maps.rows) / len(maps.keys), FLATTEST), TALLEST)


def _draw_map(ax: Axes, maps: LongMaps, head: int) -> None:
    """Draw one head's map, hatched where queries may look nowhere, blank where keys come later."""
    fully_masked, (height, width) = maps.fully_masked[head], maps.cell
    hidden = fully_masked[:, None] | maps.causally_masked
    cells = maps.shares[head].masked_fill(hidden, torch.nan)
    top, left = maps.rows.start - 0.5, maps.keys.start - 0.5  # a tick is at the middle of its token
    bottom, right = top + height * cells.shape[0], left + width * cells.shape[1]
    extent = (left, right, bottom, top)
    color_cells(ax, cells, WEIGHT_MAP, norm=SHADES, extent=extent, aspect="auto")
    for first, stop in _runs(fully_masked):
        place = (left, top + height * first)
        ax.add_patch(Rectangle(place, right - left, height * (stop - first), lw=0, **HATCHED))
    # The last cells may be smaller than the others, so the axes end before the image.
    ax.set(xlim=(left, maps.keys.stop - 0.5), ylim=(maps.rows.stop - 0.5, top))
    ax.set_box_aspect(_proportion(maps))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 5, 10], integer=True))
        axis.set_major_formatter("{x:,.0f}")
    frame(ax)


def _add_legends(figure: Figure, axes: np.ndarray, maps: LongMaps) -> None:
    """Show the scale of colors, and what hatched and blank cells mean if there are some."""
    ticks = PHONE_TICKS if on_phone() else LEGEND_TICKS
    add_color_bar(
        figure, axes, ScalarMappable(SHADES, WEIGHT_MAP),
        shrink=min(1, 2.4 / figure.get_figheight()), ticks=ticks,
        label="share of a query's attention", format="{x:g}",
    )  # fmt: skip
    if meanings := _meanings(maps):
        add_meanings(figure, meanings)


def _meanings(maps: LongMaps) -> list[Patch]:
    return meanings_of(
        hatched=bool(maps.fully_masked.any()), blank=bool(maps.causally_masked.any())
    )


def _runs(flags: Tensor) -> list[tuple[int, int]]:
    """Return where runs of True begin and end, so that one patch hatches a run without seams."""
    changes = torch.nn.functional.pad(flags.int(), (1, 1)).diff().nonzero()[:, 0].tolist()
    return list(zip(changes[::2], changes[1::2], strict=True))
