"""Each device has the columns, the heads and the rows of its own heads, and no others."""

from functools import partial

import pytest
from matplotlib.patches import Rectangle
from tools.refusing import refusals

from attncourse.head_shards import plot_head_shards


def colors_of_devices(figure, num_heads, devices):
    """Per device: the columns that are filled, its heads, the rows that are filled; as colors."""
    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    own = num_heads // devices
    parts = num_heads, 1, own, num_heads, 1  # columns, their frame, heads, rows, their frame
    found = []
    for _ in range(devices):
        drawn = [[boxes.pop(0).get_facecolor() for _ in range(part)] for part in parts]
        found.append([[color for color in drawn[i] if color[3]] for i in (0, 2, 3)])
    assert not boxes
    return found


@pytest.mark.parametrize(("num_heads", "devices"), [(8, 1), (6, 3)])
def test_columns_heads_and_rows_are_those_of_a_device_s_heads(num_heads, devices):
    figure = plot_head_shards(num_heads, devices)
    found = colors_of_devices(figure, num_heads, devices)
    assert len(found) == devices
    for columns, heads, rows in found:
        assert columns == heads == rows and len(heads) == num_heads // devices
    everyone = [color for _, heads, _ in found for color in heads]
    assert len(set(everyone)) == num_heads


def test_all_meet_in_one_sum():
    texts = [text.get_text() for text in plot_head_shards(8, 4).axes[0].texts]
    assert texts.count("+") == 1
    assert {f"device {i}" for i in (1, 2, 3, 4)} <= {*texts}


eight, of_two = partial(plot_head_shards, 8), partial(plot_head_shards, devices=2)
test_what_does_not_fit_is_refused = refusals(
    {ValueError: {eight: {"devices": [3, 16]}, of_two: {"num_heads": [500]}}}
)
