"""Tensors that are not attention, as matrices with their numbers."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from torch import Tensor

from attnlib._checks import checked_texts, require_positive_int, require_text
from attnlib.plotting._cells import LETTER, draw_matrix, label_axis, longest, stand_upright
from attnlib.plotting._checks import checked_mapping, checked_number, checked_tensor
from attnlib.plotting.style import TEXT_WIDTH, new_figure, signed_norm


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

    NaN is left blank. For attention weights use `plot_heads`, which checks that they are attention.

    Args:
        matrices: title -> tensor [rows, columns].
        row_labels: labels of the rows, for every matrix with that many rows.
        column_labels: labels of the columns, for every matrix with that many columns.
        numbers: how to write each number, or None for colors alone.
        columns: matrices a line; all on one line if left out.
        limit: the value at both ends of the scale; the largest magnitude if left out.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor of two dimensions, or holds infinity;
            labels that fit no matrix; numbers that isn't a pattern; a limit or columns below 1.
    """
    shown = [
        (title, checked_tensor(f"matrices[{title!r}]", m, "rows columns", integers=True, nan=True))
        for title, m in checked_mapping("matrices", matrices, "tensor").items()
    ]
    row_labels = _checked_labels("row_labels", row_labels, [m.shape[0] for _, m in shown])
    column_labels = _checked_labels("column_labels", column_labels, [m.shape[1] for _, m in shown])
    if numbers is not None:
        _require_pattern("numbers", numbers)
    if limit is None:
        limit = max(m.nan_to_num().abs().max().item() for _, m in shown)
    elif checked_number("limit", limit) <= 0:
        raise ValueError(f"limit must be above 0, got {limit}")
    norm = signed_norm(limit)
    columns = len(shown) if columns is None else columns
    require_positive_int("columns", columns)
    columns = min(columns, len(shown))
    lines = [shown[i : i + columns] for i in range(0, len(shown), columns)]
    widths = [max(line[i][1].shape[1] for line in lines if i < len(line)) for i in range(columns)]
    cell = min(TEXT_WIDTH / (sum(widths) + 1.2 * columns), 0.6)  # inches
    below = 0.75  # inches
    if column_labels and stand_upright(column_labels, cell):
        below += LETTER * longest(column_labels)
    figure, axes = new_figure(
        height=sum(max(m.shape[0] for _, m in line) * cell + below for line in lines),
        nrows=len(lines), ncols=columns, width_ratios=widths, squeeze=False,
    )  # fmt: skip
    for ax in axes.flat:
        ax.set_axis_off()
    for i, line in enumerate(lines):
        for ax, (title, matrix) in zip(axes[i], line, strict=False):
            ax.set_axis_on()
            draw_matrix(ax, matrix, norm, cell, numbers)
            ax.set_title(title)
            for axis, labels, count in (
                (ax.yaxis, row_labels, matrix.shape[0]),
                (ax.xaxis, column_labels, matrix.shape[1]),
            ):
                fitting = labels if labels and len(labels) == count else None
                label_axis(axis, fitting, count, cell)
    return figure


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
