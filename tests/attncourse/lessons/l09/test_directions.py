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


def leads(weights, place, direction):
    """Return by how much a point leads the others, and the origin, in a direction."""
    rivals = torch.cat([weights[:place], weights[place + 1 :], torch.zeros(1, 2)])
    return (weights[place] - rivals).double() @ direction


def test_each_panel_s_direction_is_one_in_which_its_point_lies_furthest_out():
    figure = figures.plot_directions(PLACES, NAMES)
    assert titles(figure) == [f"to hear {name}" for name in NAMES]
    axes = figure.axes[0].xaxis.label, figure.axes[0].yaxis.label
    heads = {label.get_text()[-1]: label.get_color() for label in axes}
    assert heads == {"1": palette.HEAD_COLORS[0], "2": palette.HEAD_COLORS[1]}
    ((low, high),) = {limits for ax in figure.axes for limits in (ax.get_xlim(), ax.get_ylim())}
    for place, ax in enumerate(figure.axes):
        dots = {palette.KEY_COLOR: [], palette.QUERY_COLOR: []}
        for line in ax.lines:
            if line.get_marker() == "o" and to_hex(line.get_color()) in dots:
                dots[to_hex(line.get_color())].append(line)
        (lit,), feet = dots.values()
        torch.testing.assert_close(torch.tensor(lit.get_xydata()[0]).float(), PLACES[place])
        sizes = [foot.get_markersize() for foot in feet]
        assert sizes.index(max(sizes)) == place and sizes.count(max(sizes)) == 1
        named = {text.get_text(): text.xy for text in ax.texts if text.get_text()}
        assert list(named) == NAMES
        torch.testing.assert_close(torch.tensor(list(named.values())), PLACES)
        # A dotted line leads at a right angle from each point to its foot.
        (arrow,) = (text for text in ax.texts if text.arrow_patch)
        line = torch.tensor(arrow.xy).double() - torch.tensor(arrow.xyann).double()
        dotted = [torch.tensor(found.get_xydata()) for found in ax.lines if found.is_dashed()]
        torch.testing.assert_close(torch.stack(dotted)[:, 0].float(), PLACES)
        for (point, end), foot in zip(dotted, feet, strict=True):
            assert abs((point - end) @ line) < 1e-6
            assert abs(end[0] * line[1] - end[1] * line[0]) < 1e-6
            torch.testing.assert_close(torch.tensor(foot.get_xydata()[0]), end)
        assert (torch.stack(dotted)[:, 1] @ line).argmax() == place
        drawn = [*arrow.xy, *arrow.xyann, *torch.stack(dotted).flatten().tolist()]
        assert all(low < number < high for number in drawn)


@pytest.mark.parametrize("seed", range(3))
def test_no_angle_gives_a_larger_lead(seed):
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
        torch.testing.assert_close(furthest_out(weights * 1e-30, place), direction)
