"""Scores of every head: of several models on every relation, or of one model layer by layer."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.checks import require_text
from attnlib.plotting.cells import add_color_bar, color_cells, label_axis, write_numbers
from attnlib.plotting.checks import (
    checked_labels,
    checked_mapping,
    checked_tensor,
    require_columns,
)
from attnlib.plotting.layout_limits import require_height
from attnlib.plotting.page import PHONE_WIDTH, drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import WEIGHT_MAP, new_figure
from attnlib.plotting.text import (
    LETTER,
    font_of,
    label_of,
    longest,
    plain_text,
    set_title,
    title_lines,
)

ROW, LOWEST_ROW = 0.29, 0.07  # inches
ALL_ROWS = 18.0  # inches; more rows than fit in are drawn lower
MOST_COLUMNS, PHONE_COLUMNS = 6, 2  # panels a line
SHARES = Normalize(0, 1)
TITLE_LINE, BELOW = 0.17, 0.42  # inches; the heads' numbers are below


@drawn_for_phones
def plot_head_atlas(
    panels: Mapping[str, Tensor],
    rows: Sequence[str],
    *,
    meaning: str = "share",
    columns: int = 5,
) -> Figure:
    """Draw tables with a column per head, on one scale from 0 to 1.

    A table of a model has a row per relation, one of a pattern a row per layer.

    Args:
        panels: title -> shares from 0 to 1, [rows, heads].
        rows: names of the rows.
        meaning: what the shares are, for the legend of colors.
        columns: panels a line, at most 6.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor [rows, heads], numbers below 0 or above
            1, labels that don't fit, or more panels or rows than a figure of 24 inches holds.
    """
    shown = {
        title: _checked_shares(f"panels[{title!r}]", shares)
        for title, shares in checked_mapping("panels", panels, "tensor").items()
    }
    for title, shares in shown.items():
        rows = checked_labels("rows", rows, len(shares), f"row of panels[{title!r}]")
    require_text("meaning", meaning)
    require_columns(columns, MOST_COLUMNS)
    labels = [label_of(row, PHONE_WIDTH / 2) for row in rows]
    columns = min(columns, len(shown), PHONE_COLUMNS if on_phone() else columns)
    room = text_width() - LETTER * longest(labels) - (0.2 if on_phone() else 0.8)
    panel = room / columns  # inches
    lines = math.ceil(len(shown) / columns)
    above = TITLE_LINE * max(len(title_lines(title, panel)) for title in shown)
    row = max(LOWEST_ROW, min(ROW, ALL_ROWS / (lines * len(labels))))
    height = lines * (row * len(labels) + above + BELOW) + (0.6 if on_phone() else 0)
    require_height("panels", height, "draw fewer of them at a time")
    figure, axes = new_figure(height=height, nrows=lines, ncols=columns, squeeze=False)
    for i, ax in enumerate(axes.flat):
        if i >= len(shown):
            ax.set_axis_off()
            continue
        name, shares = list(shown.items())[i]
        set_title(ax, name, panel)
        _draw_table(ax, shares, panel / shares.shape[1], row)
        label_axis(ax.yaxis, labels if i % columns == 0 else None, len(labels), row)
    colors = ScalarMappable(SHARES, WEIGHT_MAP)
    bar = add_color_bar(figure, axes, colors, shrink=min(1.0, 2.5 / height))
    bar.set_label(plain_text(meaning), **font_of(meaning))
    return figure


def _checked_shares(name: str, value: Tensor) -> Tensor:
    shares = checked_tensor(name, value, "rows heads")
    if shares.min() < 0 or shares.max() > 1:
        raise ValueError(
            f"{name} must hold shares from 0 to 1, got {shares.min():g} to {shares.max():g}"
        )
    return shares


def _draw_table(ax: Axes, shares: Tensor, cell: float, row: float) -> None:
    """Draw shares [rows, heads], and number the heads that have room in their colors."""
    color_cells(ax, shares, WEIGHT_MAP, norm=SHARES, aspect="auto")
    if not on_phone():  # where numbers wouldn't fit into their cells
        write_numbers(ax, shares, WEIGHT_MAP, SHARES, "{:.2f}", min(1.3 * cell, row))
    number = LETTER * (len(str(shares.shape[1])) + 0.6)  # inches
    heads = range(0, shares.shape[1], math.ceil(number / cell))
    ax.set_xticks(heads, [str(head + 1) for head in heads])
    for head, label in zip(heads, ax.get_xticklabels(), strict=True):
        label.set_color(palette.head_color(head))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
