"""A line per part: the token's row, or hatches, and a bar as long as what the part adds."""

import torch

from attncourse.lessons.l11 import figures

WEIGHTS = torch.tensor([[0.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
ADDS = torch.tensor([0.5, -1.0, 2.0])


def walk():
    return figures.plot_token_walk(WEIGHTS, ADDS, ["start", "one", "two"], list("abc"))


def test_rows_are_the_weights_and_a_part_that_looks_nowhere_is_hatched():
    maps = walk().axes[0]
    shown = torch.tensor(maps.images[0].get_array().filled(torch.nan))
    assert shown[0].isnan().all() and torch.equal(shown[1:].float(), WEIGHTS[1:])
    (hatched,) = maps.patches
    assert hatched.get_hatch() and hatched.get_y() == -0.5 and hatched.get_width() == 3
    written = [float(text.get_text()) for text in maps.texts]
    assert written == WEIGHTS[1:].flatten().tolist()


def test_a_bar_is_as_long_as_what_its_part_adds_and_stands_beside_its_row():
    figure = walk()
    maps, bars = figure.axes[:2]
    assert [bar.get_width() for bar in bars.patches] == ADDS.tolist()
    assert [round(bar.get_y() + bar.get_height() / 2, 6) for bar in bars.patches] == [0, 1, 2]
    assert bars.get_ylim() == maps.get_ylim() == (2.5, -0.5)


def test_lines_and_columns_are_labelled():
    maps = walk().axes[0]
    assert [text.get_text() for text in maps.get_yticklabels()] == ["start", "one", "two"]
    assert [text.get_text() for text in maps.get_xticklabels()] == ["a", "b", "c"]
