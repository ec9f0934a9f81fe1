"""Code that stands open on a page is there to be read; checks of what it shows are folded."""

import re

import pytest
from course.pages import read_notebook
from tools import ROOT
from tools.lesson_runs import all_notebooks

NOT_OPEN = {"hide-input", "hide-cell", "remove-input", "remove-cell", "exercise-solution"}
CHECK = re.compile(r"^ *(assert |[\w.]*assert_\w+\()", re.M)


@pytest.mark.parametrize("page", all_notebooks())
def test_at_most_two_lines_or_a_quarter_of_an_open_cell_are_checks(page):
    for cell in read_notebook(ROOT / f"{page}.md").cells:
        if cell.cell_type == "code" and NOT_OPEN.isdisjoint(cell.metadata.get("tags", [])):
            lines, checks = len(cell.source.split("\n")), len(CHECK.findall(cell.source))
            assert checks < lines and checks <= max(2, lines / 4), (
                f"{cell.source}\nstands open with many lines of checks; move them into a cell with "
                "the tag hide-input or remove-cell"
            )
