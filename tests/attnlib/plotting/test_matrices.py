"""Matrices that are not attention show their numbers on the signed scale."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.figure_reading import drawn, panels, ticks, titles, written_in

from attnlib import plotting
from attnlib.plotting.page import phone_copy

SHAPES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4)


@settings(max_examples=25)
@given(SHAPES, st.sampled_from([None, 1, 2, 8]), st.sampled_from([None, 0.5, 7.0]), st.booleans())
def test_a_matrix_reads_as_it_was_given(shapes, columns, limit, whole):
    given = {f"m{i}": 3 * torch.randn(shape) for i, shape in enumerate(shapes)}
    given["m0"][0, 0] = torch.nan
    if whole:
        given = {title: matrix.nan_to_num().int() for title, matrix in given.items()}
    rows, keys = list("abcd")[: shapes[0][0]], list("wxyz")[: shapes[-1][1]]
    figure = plotting.plot_matrices(
        given, row_labels=rows, column_labels=keys, numbers="{:.1f}", columns=columns, limit=limit
    )
    assert titles(figure) == list(given)
    largest = max(matrix.nan_to_num().abs().max().item() for matrix in given.values())
    end = limit or largest or 1.0
    for ax, matrix in zip(panels(figure), given.values(), strict=True):
        (image,) = ax.images
        found = matrix.double()  # in which only NaN is blank, which reads as -1
        torch.testing.assert_close(drawn(image).double(), found.nan_to_num(-1))
        assert image.get_array().mask.sum() == found.isnan().sum()
        assert image.get_clim() == pytest.approx((-end, end)) and image.norm(0) == 0.5
        cells = (~found.isnan()).nonzero().tolist()
        assert written_in(ax) == {(i, j): f"{matrix[i, j]:.1f}" for i, j in cells}
        assert ticks(ax.yaxis) == (rows if len(rows) == len(matrix) else [])
        assert ticks(ax.xaxis) == (keys if len(keys) == matrix.shape[1] else [])
        assert columns is None or ax.get_gridspec().ncols == min(columns, len(given))


def test_a_view_of_negated_numbers_is_drawn():
    negated = torch.full((2, 2), 1j, dtype=torch.complex128).conj().imag
    (ax,) = panels(plotting.plot_matrices({"Q": negated}, numbers=""))
    assert torch.equal(drawn(ax.images[0]), -torch.ones(2, 2, dtype=torch.float64))
    assert not any(written_in(ax).values())


def scale_of(figure):
    """Return the texts beside the legend of colors, or None without one."""
    figure.canvas.draw()
    bars = [ax for ax in figure.axes if not ax.images and ax.collections]
    texts = [text for ax in bars for axis in (ax.xaxis, ax.yaxis) for text in ticks(axis)]
    return [text.replace("\N{MINUS SIGN}", "-") for text in texts if text] if bars else None


signed = torch.tensor([[0.5, -2.0]])


@pytest.mark.parametrize(
    ("matrix", "options", "wanted"),
    [
        (signed, {"numbers": None}, ["-2", "0", "2"]),
        (signed.abs(), {"numbers": None}, ["0", "2"]),  # without the half that nothing has
        (signed, {}, None),  # each number says itself
        (signed.expand(60, 2).repeat(1, 30), {"limit": 1.0}, ["-1", "0", "1"]),  # no room for any
    ],
)
def test_where_no_number_is_written_a_legend_says_what_the_colors_mean(matrix, options, wanted):
    figure = plotting.plot_matrices({"Q": matrix}, **options)
    phone = phone_copy(figure)
    assert scale_of(figure) == scale_of(phone) == wanted
    for drawing in (figure, phone):
        *maps, last = (ax.get_window_extent() for ax in drawing.axes)
        assert not last.count_overlaps(maps)
