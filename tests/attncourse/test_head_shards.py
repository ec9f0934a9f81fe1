"""Each device has the columns, the heads and the rows of its own heads, and no others."""

from functools import partial

import pytest
from matplotlib.patches import Rectangle
from tools.refusing import refusals

from attncourse.head_shards import plot_head_shards


@pytest.mark.parametrize(("num_heads", "devices"), [(8, 1), (6, 3)])
def test_each_device_has_what_belongs_to_its_heads_and_all_meet_in_one_sum(num_heads, devices):
    (ax,) = plot_head_shards(num_heads, devices).axes
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    own = num_heads // devices
    parts = num_heads, 1, own, num_heads, 1  # columns, their frame, heads, rows, their frame
    everyone = []
    for _ in range(devices):
        drawn = [[boxes.pop(0).get_facecolor() for _ in range(part)] for part in parts]
        columns, heads, rows = ([color for color in drawn[i] if color[3]] for i in (0, 2, 3))
        assert columns == heads == rows and len(heads) == own
        everyone += heads
    assert not boxes and len(set(everyone)) == num_heads
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("+") == 1 and {f"device {i + 1}" for i in range(devices)} <= {*texts}


eight, of_two = partial(plot_head_shards, 8), partial(plot_head_shards, devices=2)
test_what_does_not_fit_is_refused = refusals(
    {ValueError: {eight: {"devices": [3, 16]}, of_two: {"num_heads": [500]}}}
)
