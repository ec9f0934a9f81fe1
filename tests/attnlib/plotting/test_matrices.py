"""Matrices that are not attention show their numbers on the signed scale."""

import pytest
import torch
from tools.figure_reading import drawn_maps

from attnlib import plotting
from attnlib.plotting.page import phone_copy


class TestPlotMatrices:
    def test_shows_the_numbers_it_was_given(self):
        q, k = torch.randn(2, 3), torch.randn(4, 2)
        shown = drawn_maps(plotting.plot_matrices({"Q": q, "K": k}))
        assert torch.allclose(shown[0].float(), q) and torch.allclose(shown[1].float(), k)

    def test_zero_is_the_middle_of_the_scale(self):
        low, high = (
            plotting.plot_matrices({"Q": torch.tensor([[1.0, -3.0]])}).axes[0].images[0].get_clim()
        )
        assert (low, high) == (-3, 3)

    def test_numbers_may_be_written_as_nothing(self):
        figure = plotting.plot_matrices({"Q": torch.eye(2)}, numbers="")
        assert torch.equal(drawn_maps(figure)[0].float(), torch.eye(2))

    def test_a_view_of_negated_numbers_is_drawn(self):
        negated = torch.full((2, 2), 1j, dtype=torch.complex128).conj().imag
        shown = drawn_maps(plotting.plot_matrices({"Q": negated}))[0]
        assert torch.equal(shown, -torch.ones(2, 2, dtype=torch.float64))

    @pytest.mark.parametrize("matrix", [torch.randn(3), [[1.0]]])
    def test_bad_input(self, matrix):
        with pytest.raises((TypeError, ValueError), match=r"matrices\['Q'\]"):
            plotting.plot_matrices({"Q": matrix})


def test_a_lone_matrix_has_its_labels_whole_on_a_phone():
    names = ["adjective>noun", "adjective>adverb"]
    figure = phone_copy(plotting.plot_matrices({"m": torch.ones(2, 2)}, row_labels=names))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == names


def scale_of(figure):
    """Return the texts beside the legend of colors, or None without one."""
    bars = [ax for ax in figure.axes if not ax.images and ax.collections]
    figure.canvas.draw()
    read = [[t.get_text() for a in (b.xaxis, b.yaxis) for t in a.get_ticklabels()] for b in bars]
    return [text.replace("\N{MINUS SIGN}", "-") for text in read[0] if text] if read else None


class TestScale:
    signed = torch.tensor([[0.5, -2.0]])

    def test_where_no_number_is_written_a_legend_says_what_the_colors_mean(self):
        figure = plotting.plot_matrices({"Q": self.signed}, numbers=None)
        assert scale_of(figure) == scale_of(phone_copy(figure)) == ["-2", "0", "2"]
        assert scale_of(plotting.plot_matrices({"Q": self.signed})) is None
        crowded = plotting.plot_matrices({"Q": torch.randn(60, 60)}, limit=1.0)  # no room for any
        assert scale_of(crowded) == ["-1", "0", "1"]

    def test_it_leaves_out_the_half_that_nothing_has(self):
        figure = plotting.plot_matrices({"Q": self.signed.abs()}, numbers=None)
        assert scale_of(figure) == scale_of(phone_copy(figure)) == ["0", "2"]

    @pytest.mark.parametrize("columns", [1, 2])
    def test_it_covers_no_matrix(self, columns):
        both = {"Q": torch.randn(26, 26), "K": torch.randn(26, 26)}
        page = plotting.plot_matrices(both, numbers=None, columns=columns)
        for figure in (page, phone_copy(page)):
            figure.canvas.draw()
            boxes = [ax.get_window_extent() for ax in figure.axes]
            for i, one in enumerate(boxes):
                assert not any(one.overlaps(other) for other in boxes[i + 1 :])
