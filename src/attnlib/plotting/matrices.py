"""Tensors that are not attention, as matrices with their numbers."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_tensor, shape_of
from attnlib.plotting._cells import LETTER, label_axis, longest, stand_upright, write_numbers
from attnlib.plotting.style import SIGNED_MAP, TEXT_WIDTH, new_figure, signed_norm


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

    For attention weights use `plot_heads`, which checks that they are attention.

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
        TypeError, ValueError: something that isn't a tensor of two dimensions.
    """
    if not matrices:
        raise ValueError("matrices must hold at least one tensor, got none")
    values = {}
    for name, matrix in matrices.items():
        require_tensor(f"matrices[{name!r}]", matrix)
        if matrix.dim() != 2:
            raise ValueError(
                f"matrices[{name!r}] must have shape [rows, columns], got {shape_of(matrix)}"
            )
        values[name] = matrix.detach().to("cpu", torch.float64)
    norm = signed_norm(limit or max(m.abs().max().item() for m in values.values()))
    columns = columns or len(values)
    shown = list(values.items())
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
        for ax, (name, matrix) in zip(axes[i], line, strict=False):
            ax.set_axis_on()
            ax.imshow(
                matrix.numpy(), cmap=SIGNED_MAP, norm=norm, interpolation="none", aspect="equal"
            )
            ax.set_title(name)
            for axis, labels, count in (
                (ax.yaxis, row_labels, matrix.shape[0]),
                (ax.xaxis, column_labels, matrix.shape[1]),
            ):
                fitting = labels if labels and len(labels) == count else None
                label_axis(axis, fitting, count, cell)
            ax.spines[:].set_visible(True)
            ax.spines[:].set_color(palette.LINE)
            if numbers is not None:
                write_numbers(ax, matrix, SIGNED_MAP, norm, numbers, cell)
    return figure
