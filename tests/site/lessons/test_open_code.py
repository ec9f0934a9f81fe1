"""Code that stands open on a page is there to be read; checks of what it shows are folded."""

import ast

import pytest
from course.pages import read_notebook
from tools import ROOT
from tools.lesson_runs import NOTEBOOK, all_notebooks

NOT_OPEN = {"hide-input", "hide-cell", "remove-input", "remove-cell", "exercise-solution"}
FEW_LINES, SMALL_SHARE = 2, 1 / 4  # of checks in an open cell: so many lines or such a share


def is_check(statement: ast.stmt) -> bool:
    """Tell an assert, a call such as assert_close(...), and a loop over nothing else."""
    if isinstance(statement, ast.For | ast.With):
        return all(map(is_check, statement.body))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func).split(".")[-1].startswith("assert_")
    return isinstance(statement, ast.Assert)


def count_lines(code: str) -> tuple[int, int]:
    """Return how many of a cell's lines check something, and how many there are but empty ones."""
    written = {number for number, line in enumerate(code.splitlines(), start=1) if line.strip()}
    checking = {
        line
        for statement in filter(is_check, ast.walk(ast.parse(code)))
        for line in range(statement.lineno, statement.end_lineno + 1)
    }
    return len(written & checking), len(written)


def checks_too_much(code: str) -> bool:
    """Tell a cell with nothing but checks, or with more than a few lines of them."""
    checking, written = count_lines(code)
    return checking == written or checking > max(FEW_LINES, SMALL_SHARE * written)


def cells_that_check_too_much(page) -> list[str]:
    """Name the open cells of a page that hold too many checks, by their first lines."""
    cells = [cell for cell in read_notebook(page).cells if cell.cell_type == "code"]
    return [
        f"{page.stem}: the cell that begins with {cell.source.strip().splitlines()[0]!r} stands "
        f"open with {count_lines(cell.source)[0]} lines of checks; move them into a cell with the "
        "tag hide-input or remove-cell"
        for cell in cells
        if NOT_OPEN.isdisjoint(cell.metadata.get("tags", [])) and checks_too_much(cell.source)
    ]


@pytest.mark.parametrize("page", all_notebooks())
def test_open_cells_are_there_to_be_read(page):
    found = cells_that_check_too_much(ROOT / f"{page}.md")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("x = 1\n\ny = 2\nz = 3\nassert x\n", (1, 4)),
        ("assert (\n    x\n)\ny = 1", (3, 4)),
        ("for x in y:\n    assert x\n    torch.testing.assert_close(x, y)\nz = 1", (3, 4)),
        ("for x in y:\n    print(x)\n    assert x", (1, 3)),
        ("def f(x):\n    assert x\n    return x\nf(1)", (1, 4)),
    ],
)
def test_lines_of_checks_are_counted(code, counted):
    assert count_lines(code) == counted


@pytest.mark.parametrize(
    ("checking", "others", "too_much"),
    [(1, 0, True), (2, 1, False), (3, 8, True), (3, 9, False)],
)
def test_a_few_checks_may_stand_open(checking, others, too_much):
    assert checks_too_much("assert x\n" * checking + "y = 1\n" * others) == too_much


def test_only_open_cells_are_asked(tmp_path):
    cell = "```{{code-cell}} ipython3\n:tags: [{}]\n\nassert {}\n```\n"
    page = tmp_path / "L99_Checks.md"
    page.write_text(NOTEBOOK + cell.format("hide-input", 1) + cell.format("other", 2))
    (found,) = cells_that_check_too_much(page)
    assert found.startswith("L99_Checks: the cell that begins with 'assert 2' stands open with 1 l")
