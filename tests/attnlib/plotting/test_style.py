"""Figures look alike and are where they are looked for: `plot_x` in x.py, its tests beside these.

`tests/tools/figure_examples.py` has a good call of each.
"""

import inspect
from pathlib import Path

import matplotlib
import pytest
import torch
from matplotlib.colors import to_hex
from tools import ROOT
from tools.figure_examples import EXAMPLES
from tools.figures import FIGURES

from attnlib import palette
from attnlib.plotting.style import SIGNED_MAP, WEIGHT_MAP, new_figure


def test_the_scales_are_the_palette_s():
    for scale, stops in ((WEIGHT_MAP, palette.WEIGHT_SCALE), (SIGNED_MAP, palette.SIGNED_SCALE)):
        assert [to_hex(scale(end)) for end in (0.0, 1.0)] == [stops[0], stops[-1]]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_first_row_is_the_highest_whatever_the_reader_s_own_style(name):
    with matplotlib.rc_context({"image.origin": "lower"}):
        before = dict(matplotlib.rcParams)
        figure = FIGURES[name](**EXAMPLES[name].arguments)
        assert matplotlib.rcParams == before  # the style is the figure's alone
    assert all(image.origin == "upper" for ax in figure.axes for image in ax.images)


def test_a_figure_of_one_s_own_has_the_course_s_style():
    figure, ax = new_figure()
    assert figure.get_size_inches().tolist() == [7.2, 3.0]
    assert not ax.spines["top"].get_visible() and to_hex(ax.xaxis.label.get_color()) == palette.INK
    (line,) = ax.plot([1, 2])
    assert line.get_color() == palette.HEAD_COLORS[0]


@pytest.mark.parametrize(
    ("named", "value"),
    [("height", 100), ("height", "3"), ("width", 0), ("width", torch.inf), ("gap", -0.1)],
)
def test_sizes_that_no_figure_has_are_refused(named, value):
    with pytest.raises((TypeError, ValueError), match=rf"^{named} must "):
        new_figure(**{named: value})


def test_a_color_is_that_of_a_head():
    assert palette.head_color(9) == palette.HEAD_COLORS[1]
    for head in (None, "a", -1, 1.0):
        with pytest.raises((TypeError, ValueError), match=r"^head must be"):
            palette.head_color(head)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_in_the_file_of_its_name(name):
    file = Path(inspect.getfile(inspect.unwrap(FIGURES[name])))
    assert file.stem == name.removeprefix("plot_"), f"{name} is in {file.name}, not in its own file"
    room = str(file.parent.relative_to(ROOT / "src")).removesuffix("/figures")
    tests = ROOT / "tests" / room / f"test_{file.name}"
    assert tests.exists(), f"{name} has no tests of its own: {tests.relative_to(ROOT)}"
