"""Where a figure and its tests are: `plot_x` in x.py, its tests in test_x.py beside these."""

import inspect
from pathlib import Path

import pytest
from tools import ROOT
from tools.figures import FIGURES, ILLUSTRATIONS

from attnlib import plotting

ROOMS = [Path(room.__file__).parent for room in (plotting, *ILLUSTRATIONS)]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_in_the_file_of_its_name(name):
    file = Path(inspect.getfile(inspect.unwrap(FIGURES[name])))
    assert file.stem == name.removeprefix("plot_"), f"{name} is in {file.name}, not in its own file"
    room = str(file.parent.relative_to(ROOT / "src")).removesuffix("/figures")
    tests = ROOT / "tests" / room / f"test_{file.name}"
    assert tests.exists(), f"{name} has no tests of its own: {tests.relative_to(ROOT)}"


def test_every_figure_is_public():
    """A figure that its room's __init__.py doesn't name can't be found by its users."""
    files = [file for room in ROOMS for file in room.glob("*.py")]
    drawn = {file.stem for file in files if f"def plot_{file.stem}(" in file.read_text()}
    hidden = sorted(drawn - {name.removeprefix("plot_") for name in FIGURES})
    assert not hidden, f"an __init__.py doesn't name the figures of {hidden}"


def test_no_two_files_define_a_function_of_one_name():
    found = {}
    for module in (file for room in ROOMS for file in room.rglob("*.py")):
        for line in module.read_text().splitlines():
            if line.startswith("def ") and not line.startswith("def _"):
                found.setdefault(line[4:].split("(")[0], []).append(module.name)
    twice = {name: files for name, files in found.items() if len(files) > 1}
    assert not twice, f"functions of one name: {twice}"
