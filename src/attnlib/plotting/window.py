"""A long map and a window of it, side by side."""

from dataclasses import replace
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Rectangle
from matplotlib.patheffects import withStroke
from torch import Tensor

from attnlib import palette
from attnlib.plotting._long_maps import LongMaps, require_long_maps
from attnlib.plotting.long_heads import add_legends, draw_long_map, figure_of_maps
from attnlib.plotting.page import drawn_for_phones, on_phone
from attnlib.weight_checks import tolerance_of

# Dark with a light rim, to be visible on every color; a figure's dark copy swaps the two.
FRAME: dict[str, Any] = {
    "fill": False,
    "clip_on": False,  # else a window in a corner would lose half of it
    "edgecolor": palette.INK,
    "linewidth": 1.2,
    "snap": False,  # whole pixels would separate the rim from the line
    "path_effects": [withStroke(linewidth=3, foreground=palette.PAPER)],
}


@drawn_for_phones
def plot_window(
    whole: Tensor,
    all_rows: range,
    all_keys: range,
    window: Tensor,
    rows: range,
    keys: range,
    *,
    causal: bool = False,
) -> Figure:
    """Draw one head's map and, beside it, the weights in a window of it, token by token.

    A frame on the whole map shows the window. Colors, hatching and blank cells are those of
    `plot_long_heads`. The window's queries are hatched where their cells on the whole map are.

    Args:
        whole: a map of `attention_heatmap`, of one head: [n, m].
        all_rows, all_keys: its queries and keys: range(T_q), range(T_k).
        window: weights of `attention_window`, of the same head: [len(rows), len(keys)].
        rows, keys: the queries and keys in the window.
        causal: as for `plot_long_heads`.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: as `plot_long_heads`; more than one head, or a window that isn't
            within the whole map or has more weight than it.

    Example:
        >>> from attnlib.heatmap import attention_heatmap, attention_window
        >>> q = torch.randn(1, 2, 3000, 16)
        >>> rows, keys = range(1200, 1240), range(1180, 1240)
        >>> whole = attention_heatmap(q, q)[0, 1]  # [250, 250]
        >>> window = attention_window(q, q, rows, keys)[0, 1]  # [40, 60]
        >>> figure = plot_window(whole, range(3000), range(3000), window, rows, keys)
    """
    every = require_long_maps(
        "whole", whole, all_rows, all_keys, prefix="all_", window=False, causal=causal
    )
    piece = require_long_maps("window", window, rows, keys, window=True, causal=causal)
    for name, maps in (("whole", every), ("window", piece)):
        if len(maps.shares) != 1:
            raise ValueError(
                f"{name} must hold one map, got {len(maps.shares)}: pick one head of them"
            )
    row_of, column_of = _places(every, piece)
    _require_piece(every, piece, row_of, column_of, max(map(tolerance_of, (whole, window))))
    piece = replace(piece, fully_masked=every.fully_masked[:, row_of])
    lines, columns = (2, 1) if on_phone() else (1, 2)
    figure, axes = figure_of_maps(lines, columns, every, piece)
    first, second = axes.flat
    for ax, title, maps in ((first, "whole map", every), (second, "window", piece)):
        draw_long_map(ax, maps)
        ax.set_title(title)
    _frame(figure, first, second, rows, keys)
    add_legends(figure, axes, every, piece)
    return figure


def _places(every: LongMaps, piece: LongMaps) -> tuple[Tensor, Tensor]:
    """Return the rows and the columns of the whole map that the window's tokens are in."""
    places = []
    for name, tokens, limits, size in (
        ("rows", piece.rows, every.rows, every.cell[0]),
        ("keys", piece.keys, every.keys, every.cell[1]),
    ):
        if tokens.start < limits.start or tokens.stop > limits.stop:
            raise ValueError(f"{name} must lie within all_{name}={limits}, got {tokens}")
        places.append((torch.tensor(tokens) - limits.start) // size)
    return places[0], places[1]


def _require_piece(
    every: LongMaps, piece: LongMaps, row_of: Tensor, column_of: Tensor, tolerance: float
) -> None:
    """Raise if the window has more weight than its cells of the whole map."""
    held = torch.zeros_like(every.shares[0])
    held.index_put_((row_of[:, None], column_of), piece.shares[0], accumulate=True)
    height, _ = every.cell
    if (held > (every.shares[0] + tolerance) * height).any():
        raise ValueError(
            "window has more weight in some cell than whole has there: is it of another head, or "
            "of other rows and keys?"
        )


def _frame(figure: Figure, whole: Axes, window: Axes, rows: range, keys: range) -> None:
    """Frame the window's place on the whole map, and lead lines from there to the window."""
    corner = (keys.start - 0.5, rows.start - 0.5)
    whole.add_patch(Rectangle(corner, len(keys), len(rows), **FRAME))
    right, bottom = keys.stop - 0.5, rows.stop - 0.5
    if on_phone():  # from the frame's lower corners to the window below
        ends = (((keys.start - 0.5, bottom), (0, 1)), ((right, bottom), (1, 1)))
    else:
        ends = (((right, rows.start - 0.5), (0, 1)), ((right, bottom), (0, 0)))
        window.yaxis.tick_right()  # so that no line crosses the numbers
    for start, end in ends:
        line = ConnectionPatch(
            start, end, whole.transData, window.transAxes, color=palette.MUTED, linewidth=0.8
        )
        figure.add_artist(line)
