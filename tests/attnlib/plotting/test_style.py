"""Figures look alike, and `plot_x` is in x.py, its tests beside these."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex, to_rgb
from tools import ROOT
from tools.figures import FIGURES
from tools.refusing import refusals

from attnlib import palette
from attnlib.plotting.cells import text_color_on
from attnlib.plotting.style import SIGNED_MAP, WEIGHT_MAP, new_figure


def test_the_scales_are_the_palette_s():
    for scale, stops in ((WEIGHT_MAP, palette.WEIGHT_SCALE), (SIGNED_MAP, palette.SIGNED_SCALE)):
        assert [to_hex(scale(end)) for end in (0.0, 1.0)] == [stops[0], stops[-1]]


def test_a_number_can_be_read_on_a_cell_of_any_color():
    for color in [*WEIGHT_MAP(np.linspace(0, 1, 99)), *SIGNED_MAP(np.linspace(0, 1, 99))]:
        both = np.array([to_rgb(color), to_rgb(text_color_on(color))])
        linear = np.where(both <= 0.04045, both / 12.92, ((both + 0.055) / 1.055) ** 2.4)  # sRGB's
        assert np.divide(*sorted(0.05 + linear @ [0.2126, 0.7152, 0.0722])) < 1 / 4.5  # as in WCAG


def test_a_figure_of_one_s_own_has_the_course_s_style():
    figure, ax = new_figure()
    assert figure.get_size_inches().tolist() == [7.2, 3.0]
    assert not ax.spines["top"].get_visible() and to_hex(ax.xaxis.label.get_color()) == palette.INK
    (line,) = ax.plot([1, 2])
    assert line.get_color() == palette.HEAD_COLORS[0]


def test_a_color_is_that_of_a_head():
    assert palette.head_color(9) == palette.HEAD_COLORS[1]


test_what_no_figure_has_is_refused = refusals({
    TypeError: {new_figure: {"height": ["3"]}, palette.head_color: {"head": [None, "a", 1.0]}},
    ValueError: {
        new_figure: {"height": [100], "width": [0, torch.inf], "gap": [-0.1]},
        palette.head_color: {"head": [-1]},
    },
})  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_in_the_file_of_its_name(name):
    file = Path(inspect.getfile(inspect.unwrap(FIGURES[name])))
    assert file.stem == name.removeprefix("plot_"), f"{name} is in {file.name}, not in its own file"
    room = str(file.parent.relative_to(ROOT / "src")).removesuffix("/figures")
    tests = ROOT / "tests" / room / f"test_{file.name}"
    assert tests.exists(), f"{name} has no tests of its own: {tests.relative_to(ROOT)}"
