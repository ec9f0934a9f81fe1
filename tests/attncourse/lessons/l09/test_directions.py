"""Each panel's direction is one in which its point, and no other, lies furthest out."""

import math

import pytest
import torch
from matplotlib.colors import to_hex
from tools.figure_reading import titles

from attncourse.lessons.l09 import figures
from attncourse.lessons.l09.figures.directions import furthest_out
from attnlib import palette

PLACES = torch.tensor([[0.42, 0.03], [0.02, 0.4], [0.44, 0.44]])
NAMES = ["1 back", "3 back", "5 back"]


def dots(ax, color):
    """Return the dots of one color as [n, 2], and the size of each."""
    lines = [line for line in ax.lines if line.get_marker() == "o"]
    lines = [line for line in lines if to_hex(line.get_color()) == color]
    return torch.tensor([line.get_xydata()[0].tolist() for line in lines]), [
        line.get_markersize() for line in lines
    ]


def leads(weights, place, direction):
    """Return by how much a point leads the others, and the origin, in a direction."""
    rivals = torch.cat([weights[:place], weights[place + 1 :], torch.zeros(1, 2)])
    return (weights[place] - rivals).double() @ direction


class TestPlotDirections:
    def test_a_panel_marks_its_place_and_its_foot_which_lies_furthest_out(self):
        figure = figures.plot_directions(PLACES, NAMES)
        assert titles(figure) == [f"to hear {name}" for name in NAMES]
        for place, ax in enumerate(figure.axes):
            lit, _ = dots(ax, palette.KEY_COLOR)
            torch.testing.assert_close(lit, PLACES[place : place + 1])
            feet, sizes = dots(ax, palette.QUERY_COLOR)
            assert sizes.index(max(sizes)) == place and sizes.count(max(sizes)) == 1
            along = feet @ (feet[place] / feet[place].norm())
            assert (along < along[place]).sum() == 2

    def test_a_dotted_line_leads_at_a_right_angle_from_each_point_to_its_foot(self):
        for ax in figures.plot_directions(PLACES, NAMES).axes:
            (arrow,) = (text for text in ax.texts if text.arrow_patch)
            ends = torch.tensor([arrow.xy, arrow.xyann], dtype=torch.float64)
            line = ends[0] - ends[1]
            dotted = [torch.tensor(found.get_xydata()) for found in ax.lines if found.is_dashed()]
            torch.testing.assert_close(torch.stack(dotted)[:, 0].float(), PLACES)
            for point, foot in dotted:
                assert abs((point - foot) @ line) < 1e-6
                assert abs(foot[0] * line[1] - foot[1] * line[0]) < 1e-6

    def test_each_point_has_its_name(self):
        for ax in figures.plot_directions(PLACES, NAMES).axes:
            named = {text.get_text(): text.xy for text in ax.texts if text.get_text()}
            assert list(named) == NAMES
            torch.testing.assert_close(torch.tensor(list(named.values())), PLACES)

    def test_all_panels_show_one_square_of_the_plane_and_nothing_lies_outside(self):
        squares = set()
        for ax in figures.plot_directions(PLACES, NAMES).axes:
            squares |= {ax.get_xlim(), ax.get_ylim()}
            drawn = [text.xy for text in ax.texts] + [
                text.xyann for text in ax.texts if not text.get_text()
            ]
            drawn += [xy for line in ax.lines if line.is_dashed() for xy in line.get_xydata()]
            ((low, high),) = squares
            assert all(low < number < high for xy in drawn for number in xy)


class TestFurthestOut:
    @pytest.mark.parametrize("seed", range(5))
    def test_no_angle_gives_a_larger_lead(self, seed):
        weights = torch.rand(4, 2, generator=torch.Generator().manual_seed(seed)).double() / 4
        angles = torch.arange(0, 2 * math.pi, 1e-3, dtype=torch.float64)
        tried = torch.stack([angles.cos(), angles.sin()])  # [2, angles]
        for place in range(4):
            best = leads(weights, place, tried).min(0).values.max()
            if best <= 0:
                with pytest.raises(ValueError, match=f"place {place} does in none"):
                    furthest_out(weights, place)
                continue
            direction = furthest_out(weights, place)
            assert abs(direction.norm() - 1) < 1e-9
            assert best <= leads(weights, place, direction).min() + 1e-9

    def test_it_is_found_for_small_weights_too(self):
        large, small = (furthest_out(PLACES.double() * size, 0) for size in (1, 1e-30))
        torch.testing.assert_close(small, large)
