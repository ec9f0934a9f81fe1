"""Tensors that aren't attention, as matrices with their numbers."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from attnlib.checks import checked_texts, require_text
from attnlib.plotting.cells import (
    add_color_bar,
    draw_matrix,
    label_axis,
    longest_number,
    number_size,
    stand_upright,
)
from attnlib.plotting.checks import (
    checked_mapping,
    checked_positive,
    checked_tensor,
    require_columns,
)
from attnlib.plotting.layout_limits import (
    PHONE_PANEL,
    PHONE_ROW,
    line_gap,
    phone_columns,
    require_height,
    require_seen,
    row_height,
    titles_fit,
)
from attnlib.plotting.page import TEXT_WIDTH, drawn_for_phones, layout_for, on_phone, text_width
from attnlib.plotting.style import SIGNED_MAP, new_figure, signed_norm
from attnlib.plotting.text import LETTER, label_of, longest, set_title, title_lines

MOST_COLUMNS = 8  # matrices a line; labels and titles need that much room
BAR = 0.6  # inches for a legend of colors
Matrices = Sequence[tuple[str, Tensor]]  # with their titles


@drawn_for_phones
def plot_matrices(
    matrices: Mapping[str, Tensor],
    *,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    numbers: str | None = "{:.2f}",
    columns: int | None = None,
    limit: float | None = None,
) -> Figure:
    """Draw named matrices side by side on one signed scale (0 is the pale middle).

    If no number is written, a legend shows what the colors mean. NaN is left blank. For attention
    weights use `plot_heads`, which checks them.

    Args:
        matrices: title -> tensor [rows, columns].
        row_labels: labels of the rows, for every matrix with that many rows.
        column_labels: labels of the columns, for every matrix with that many columns.
        numbers: pattern of the numbers, written where there is room, or None for colors alone.
        columns: matrices a line, at most 8; as many as there is room for if left out.
        limit: the value at both ends of the scale; the largest magnitude if left out.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor of two dimensions, or holds infinity;
            labels that fit no matrix; numbers that isn't a pattern; columns not from 1 to 8; a
            limit that isn't above 0; matrices that don't fit into 24 inches with cells of 1/200
            inch.
    """
    shown = [
        (title, checked_tensor(f"matrices[{title!r}]", m, "rows columns", integers=True, nan=True))
        for title, m in checked_mapping("matrices", matrices, "tensor").items()
    ]
    row_labels = _checked_labels("row_labels", row_labels, [m.shape[0] for _, m in shown])
    column_labels = _checked_labels("column_labels", column_labels, [m.shape[1] for _, m in shown])
    if numbers is not None:
        _require_pattern("numbers", numbers)
    if limit is not None:
        norm = signed_norm(checked_positive("limit", limit))
    else:
        norm = signed_norm(max(m.nan_to_num().abs().max().item() for _, m in shown))
    if columns is None:  # as many as leave half of the width to the matrices
        columns = max(1, int(TEXT_WIDTH / 2 / (0.1 + LETTER * longest(row_labels or [""]))))
        columns = min(columns, MOST_COLUMNS)
    require_columns(columns, MOST_COLUMNS)
    columns = min(columns, len(shown))
    if on_phone():
        columns = _phone_columns(columns, shown, row_labels, numbers)
    room = _label_room(columns)
    row_labels, column_labels = (
        labels and [label_of(label, room) for label in labels]
        for labels in (row_labels, column_labels)
    )
    lines = [shown[i : i + columns] for i in range(0, len(shown), columns)]
    widths = _widths(shown, columns)
    cell, panel = _sizes(widths, row_labels, beside=0.0 if numbers is not None else BAR)
    tallest = min(cell, PHONE_ROW) if on_phone() else cell
    rows = [row_height(len(m), tallest) for _, m in shown]
    advice = "draw a part, such as matrix[:64, :64], or fewer matrices"
    require_seen("matrices", min(cell, *rows), f"{sum(widths)} columns of cells", advice)
    below = 0.75 + 0.17 * (max(len(title_lines(title, panel)) for title, _ in shown) - 1)  # inches
    if column_labels and stand_upright(column_labels, cell):
        below += LETTER * longest(column_labels)
    heights = [max(len(m) * row_height(len(m), tallest) for _, m in line) for line in lines]
    height = len(lines) * (below + line_gap()) + sum(heights)
    if on_phone() and numbers is None:
        height += BAR  # the legend is above
    require_height("matrices", height, advice)
    figure, axes = new_figure(
        height=height, gap=line_gap(), nrows=len(lines), ncols=columns, squeeze=False,
        width_ratios=widths, height_ratios=heights if on_phone() else None,
    )  # fmt: skip
    for ax in axes.flat:
        ax.set_axis_off()
    for i, line in enumerate(lines):
        for ax, (title, matrix) in zip(axes[i], line, strict=False):
            ax.set_axis_on()
            row = row_height(matrix.shape[0], tallest)
            draw_matrix(ax, matrix, norm, cell, numbers, row)
            set_title(ax, title, panel)
            for axis, labels, count, size in (
                (ax.yaxis, row_labels, matrix.shape[0], row),
                (ax.xaxis, column_labels, matrix.shape[1], cell),
            ):
                fitting = labels if labels and len(labels) == count else None
                label_axis(axis, fitting, count, size)
    if not any(ax.texts for ax in axes.flat):
        _add_scale(figure, axes, norm, [m for _, m in shown])
    return figure


def _add_scale(figure: Figure, axes: np.ndarray, norm: Normalize, drawn: Sequence[Tensor]) -> None:
    """Add a legend of the colors, without the half below zero if no number is there."""
    assert norm.vmin is not None and norm.vmax is not None  # signed_norm has both
    lowest = norm.vmin if any((m < 0).any() for m in drawn) else 0.0
    ticks = [*({lowest, 0.0}), norm.vmax]
    bar = add_color_bar(
        figure, axes, ScalarMappable(norm, SIGNED_MAP), format="{x:.2g}", ticks=sorted(ticks),
        shrink=min(0.8, 2.0 / figure.get_figheight()),
    )  # fmt: skip
    (bar.ax.set_xlim if on_phone() else bar.ax.set_ylim)(lowest, norm.vmax)


def _label_room(columns: int) -> float:
    """Return the room for a label, in inches; on a phone a single matrix leaves more."""
    part = 2.5 if on_phone() and columns == 1 else 4
    return max(0.6, text_width() / columns / part)


def _widths(shown: Matrices, columns: int) -> list[int]:
    """Return the width of each column of matrices in cells."""
    return [max(m.shape[1] for _, m in shown[i::columns]) for i in range(columns)]


def _sizes(
    widths: Sequence[int], row_labels: Sequence[str] | None, *, beside: float = 0.0
) -> tuple[float, float]:
    """Return how wide a cell and a title may be, in inches.

    `widths` are those of matrices side by side, in cells; `beside` is the room for a legend there,
    which a phone shows above.
    """
    if not on_phone():
        width = text_width() - beside
        cell = min(width / (sum(widths) + 1.2 * len(widths)), 0.6)
        return cell, width / len(widths)
    labels = 0.2 + LETTER * longest(row_labels or [""])
    cell = min((text_width() - labels * len(widths)) / sum(widths), 0.45)
    return cell, text_width() - labels if len(widths) == 1 else min(widths) * cell


def _phone_columns(
    usual: int, shown: Matrices, row_labels: Sequence[str] | None, numbers: str | None
) -> int:
    """Return how many matrices to put in a line on a phone.

    Numbers that a page shows must have room there, too, and full lines of a page must stay whole.
    """
    letters = 1

    def sizes(columns: int) -> tuple[float, float]:
        labels = row_labels and [label_of(label, _label_room(columns)) for label in row_labels]
        return _sizes(_widths(shown, columns), labels)

    def fits(columns: int) -> bool:
        cell, panel = sizes(columns)
        whole = usual % columns == 0 or len(shown) <= usual
        readable = not numbered or number_size(cell, letters) is not None
        titles = [title for title, _ in shown]
        return whole and readable and panel >= PHONE_PANEL and titles_fit(titles, panel)

    with layout_for(phone=False):
        cell, _ = sizes(usual)
        numbered = numbers is not None and number_size(cell, letters) is not None
        if numbers is not None and numbered:  # never for millions of numbers
            letters = max(longest_number(m, numbers) for _, m in shown)
            numbered = number_size(cell, letters) is not None
    return phone_columns(usual, fits)


def _checked_labels(name: str, labels: Sequence[str] | None, counts: list[int]) -> list[str] | None:
    """Return labels as a list, or raise unless there are as many as one of `counts`."""
    if labels is None:
        return None
    texts = checked_texts(name, labels)
    if len(texts) not in counts:
        raise ValueError(
            f"{name} must hold as many labels as a matrix has {name.split('_')[0]}s, {counts}, "
            f"got {len(texts)}"
        )
    return texts


def _require_pattern(name: str, pattern: str) -> None:
    """Raise TypeError or ValueError unless `pattern` can write a number, as "{:.2f}" does."""
    require_text(name, pattern)
    try:
        pattern.format(0.5)
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f'{name} must be a pattern such as "{{:.2f}}", got {pattern!r}') from error
