"""Code that stands open on a page is there to be read; checks of what it shows are folded."""

import ast

import pytest
from course.pages import read_notebook
from tools import ROOT
from tools.lesson_runs import all_notebooks

NOT_OPEN = {"hide-input", "hide-cell", "remove-input", "remove-cell", "exercise-solution"}
FEW_LINES, SMALL_SHARE = 2, 1 / 4  # of checks in an open cell: so many lines or such a share


def is_check(statement: ast.stmt) -> bool:
    """Tell an assert, a call such as assert_close(...), and a loop over nothing else."""
    if isinstance(statement, ast.For | ast.With):
        return all(map(is_check, statement.body))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func).split(".")[-1].startswith("assert_")
    return isinstance(statement, ast.Assert)


def checks_too_much(code: str) -> bool:
    """Tell a cell with nothing but checks, or with more than a few lines of them."""
    written = {number for number, line in enumerate(code.splitlines(), start=1) if line.strip()}
    checking = {
        line
        for statement in filter(is_check, ast.walk(ast.parse(code)))
        for line in range(statement.lineno, statement.end_lineno + 1)
    }
    few = max(FEW_LINES, SMALL_SHARE * len(written))
    return checking >= written or len(checking & written) > few


@pytest.mark.parametrize("page", all_notebooks())
def test_open_cells_are_there_to_be_read(page):
    for cell in read_notebook(ROOT / f"{page}.md").cells:
        is_open = NOT_OPEN.isdisjoint(cell.metadata.get("tags", []))
        if cell.cell_type == "code" and is_open:
            assert not checks_too_much(cell.source), (
                f"{cell.source}\nstands open with many lines of checks; move them into a cell with "
                "the tag hide-input or remove-cell"
            )
