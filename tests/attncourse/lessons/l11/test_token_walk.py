"""A line per part: the token's row, or hatches, and a bar as long as what the part adds."""

import torch
from tools.figure_reading import ticks

from attncourse.lessons.l11 import figures

WEIGHTS = torch.tensor([[0.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
ADDS = torch.tensor([0.5, -1.0, 2.0])


def test_rows_are_the_weights_or_hatched_and_bars_beside_them_what_the_part_adds():
    figure = figures.plot_token_walk(WEIGHTS, ADDS, ["start", "one", "two"], list("abc"))
    maps, bars = figure.axes[:2]
    shown = torch.tensor(maps.images[0].get_array().filled(torch.nan))
    assert shown[0].isnan().all() and torch.equal(shown[1:].float(), WEIGHTS[1:])
    (hatched,) = maps.patches
    assert hatched.get_hatch() and hatched.get_y() == -0.5 and hatched.get_width() == 3
    assert [float(text.get_text()) for text in maps.texts] == WEIGHTS[1:].flatten().tolist()
    assert (ticks(maps.yaxis), ticks(maps.xaxis)) == (["start", "one", "two"], list("abc"))
    assert [bar.get_width() for bar in bars.patches] == ADDS.tolist()
    assert [round(bar.get_y() + bar.get_height() / 2, 6) for bar in bars.patches] == [0, 1, 2]
    assert bars.get_ylim() == maps.get_ylim() == (2.5, -0.5)
