"""The layout of the maps of several heads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from attnlib.plotting.cells import LABEL_LINE, number_size, stand_upright
from attnlib.plotting.layout_limits import (
    NARROWEST_PANEL,
    PHONE_PANEL,
    PHONE_ROW,
    SMALLEST_CELL,
    best_columns,
    line_gap,
    phone_columns,
    require_height,
    require_seen,
    row_height,
    titles_fit,
)
from attnlib.plotting.page import layout_for, on_phone, text_width
from attnlib.plotting.style import TALLEST
from attnlib.plotting.text import LETTER, longest, title_lines

LARGEST_CELL = 0.62  # inches; a small example shouldn't fill the page
USUAL_COLUMNS = 4  # more are crowded
SMALLEST_NUMBERED_CELL = 0.34  # inches; on a page smaller cells get no numbers
WEIGHT_LETTERS = 4  # as in 0.25


@dataclass(frozen=True)
class Grid:
    """Maps of heads in lines of several; sizes are in inches."""

    heads: int
    columns: int  # maps in a line
    width: float  # of all maps of a line
    cell: float  # width of a cell
    row: float  # height of a cell
    height: float  # of the figure, without a legend below
    labels: float  # width of the labels of rows
    numbers: bool  # whether numbers are written into the cells

    @property
    def lines(self) -> int:
        """The number of lines of maps."""
        return math.ceil(self.heads / self.columns)

    @property
    def crowded(self) -> bool:
        """Whether maps are too narrow for labels below each one and for titles of usual size."""
        return self.columns > USUAL_COLUMNS

    @property
    def left(self) -> float:
        """The share of a cell's size that long labels of rows leave."""
        return 1 if on_phone() else min(1, (text_width() - 0.9 - self.labels) / self.width)

    @property
    def panel(self) -> float:
        """The width of a map and its share of the gaps."""
        return self.left * self.width / self.columns

    def has_key_labels(self, head: int) -> bool:
        """Return whether a map's keys are labeled; in a crowded grid only the lowest maps' are."""
        return not self.crowded or head + self.columns >= self.heads


def grid_of(
    weights: Tensor,
    maps: Tensor,
    titles: Sequence[str],
    tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
    columns: int | None,
    numbers: bool | None,
) -> Grid:
    """Lay out maps [h, T_q, T_k] for `plot_heads`, or raise ValueError if they don't fit.

    Tokens are labels made by `label_of`. The weights as they came are for the error.
    """
    heads, T_q, T_k = maps.shape
    labels = LETTER * longest(tokens or [""])

    def laid_out(columns: int) -> Grid:
        lines, width = math.ceil(heads / columns), _width(columns, labels)
        cell = min(width / (columns * T_k), LARGEST_CELL)
        row = row_height(T_q, min(cell, PHONE_ROW) if on_phone() and lines > 1 else cell)
        roomy = min(cell, row) >= SMALLEST_NUMBERED_CELL if numbers is None else numbers
        grid = Grid(heads, columns, width, cell, row, 0.0, labels, roomy)
        title = 0.35 + 0.17 * (max(len(title_lines(t, grid.panel)) for t in titles) - 1)
        labelled = lines if columns <= USUAL_COLUMNS else 1
        below = 0.2 if key_tokens is None else labelled * _label_height(key_tokens, cell)
        height = lines * (T_q * row + title + line_gap()) + below + (0.9 if on_phone() else 0.4)
        return replace(grid, height=height)

    def fits(columns: int) -> bool:
        grid = laid_out(columns)
        if numbers and number_size(min(grid.cell, grid.row), WEIGHT_LETTERS) is None:
            return False
        if (tokens or key_tokens) and grid.cell < LABEL_LINE:  # labels need a line of their own
            return False
        return grid.panel >= PHONE_PANEL and titles_fit(titles, grid.panel)

    if on_phone():
        with layout_for(phone=False):
            page = grid_of(weights, maps, titles, tokens, key_tokens, columns, numbers)
        numbers = page.numbers
        columns = phone_columns(page.columns, fits)
    if columns is None:
        width = _width(1, labels)
        widest = min(width / NARROWEST_PANEL, width / (T_k * SMALLEST_CELL))
        most = max(1, min(heads, int(widest)))
        usual = USUAL_COLUMNS if T_k <= 8 else 2
        columns = best_columns(usual, most, lambda count: laid_out(count).height)
    grid = laid_out(columns)
    require_seen(
        "weights", min(grid.cell, grid.row), f"{T_q} x {T_k} cells, {columns} maps a line",
        "attnlib.heatmap.attention_heatmap pools so many tokens for plot_long_heads",
    )  # fmt: skip
    fitting = columns * int(grid.lines * TALLEST / (grid.height + TALLEST / 4))
    heads_of = "weights[:, :{}]" if weights.dim() == 4 else "weights[:{}]"
    require_height(
        "weights", grid.height,
        f"draw fewer heads at a time, such as {heads_of.format(max(fitting, 1))}",
    )  # fmt: skip
    return grid


def _width(columns: int, labels: float) -> float:
    """Return the width of a line's maps; labels and, on a page, the legend take the rest."""
    if on_phone():
        return text_width() - 0.35 - labels - 0.1 * (columns - 1)
    return text_width() - 1.4


def _label_height(labels: Sequence[str], cell: float) -> float:
    """Return the height of the keys' labels below a line of maps."""
    return 0.15 + (LETTER * longest(labels) if stand_upright(labels, cell) else 0.1)
