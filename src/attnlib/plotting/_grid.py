"""How the maps of several heads are laid out on a page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from attnlib.plotting._cells import stand_upright
from attnlib.plotting._room import (
    NARROWEST_PANEL,
    SMALLEST_CELL,
    best_columns,
    require_height,
    require_seen,
    row_height,
)
from attnlib.plotting._text import LETTER, longest, title_lines
from attnlib.plotting.style import TALLEST, TEXT_WIDTH

WIDTH = TEXT_WIDTH - 1.4  # inches for the maps; labels and the legend take the rest
LARGEST_CELL = 0.62  # inches; a small example shouldn't fill the page
USUAL_COLUMNS = 4  # more are crowded


@dataclass(frozen=True)
class Grid:
    """Maps of heads in lines of several, all sizes in inches.

    Attributes:
        heads, columns: how many maps there are, and how many stand in a line.
        cell: how wide a cell is.
        row: how tall it is.
        height: how tall the figure is, without a legend below.
        labels: how wide the labels of the rows are.
    """

    heads: int
    columns: int
    cell: float
    row: float
    height: float
    labels: float

    @property
    def lines(self) -> int:
        """How many lines of maps there are."""
        return math.ceil(self.heads / self.columns)

    @property
    def crowded(self) -> bool:
        """Whether there is no room for labels below every map, nor for titles of the usual size."""
        return self.columns > USUAL_COLUMNS

    @property
    def left(self) -> float:
        """How much of a cell is left where long labels of rows take room from the maps."""
        return min(1, (TEXT_WIDTH - 0.9 - self.labels) / WIDTH)

    @property
    def panel(self) -> float:
        """How wide a map and its share of the gaps are."""
        return self.left * WIDTH / self.columns

    def has_key_labels(self, head: int) -> bool:
        """Tell whether the keys of a map are labelled; in a crowd those of the lowest ones are."""
        return not self.crowded or head + self.columns >= self.heads


def grid_of(
    weights: Tensor,
    maps: Tensor,
    titles: Sequence[str],
    tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
    columns: int | None,
) -> Grid:
    """Return how to lay out `plot_heads`, or raise ValueError if a page can't hold it.

    Args:
        weights: as they came, for the error.
        maps: [h, T_q, T_k].
        titles: one a map.
        tokens, key_tokens: labels as `label_of` makes them, or None.
        columns: maps a line, or None for what suits their number and shape.
    """
    heads, T_q, T_k = maps.shape

    def laid_out(columns: int) -> Grid:
        lines, cell = math.ceil(heads / columns), min(WIDTH / (columns * T_k), LARGEST_CELL)
        row = row_height(T_q, cell)
        grid = Grid(heads, columns, cell, row, 0.0, LETTER * longest(tokens or [""]))
        title = 0.35 + 0.17 * (max(len(title_lines(t, grid.panel)) for t in titles) - 1)
        labelled = lines if columns <= USUAL_COLUMNS else 1
        below = 0.2 if key_tokens is None else labelled * _label_height(key_tokens, cell)
        height = lines * (T_q * row + title) + below + 0.4
        return replace(grid, height=height)

    if columns is None:
        widest = min(WIDTH / NARROWEST_PANEL, WIDTH / (T_k * SMALLEST_CELL))
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


def _label_height(labels: Sequence[str], cell: float) -> float:
    """Inches that the columns' labels need below a line of maps."""
    return 0.15 + (LETTER * longest(labels) if stand_upright(labels, cell) else 0.1)
