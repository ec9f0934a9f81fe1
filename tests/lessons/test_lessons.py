"""Every lesson runs, and its exercises do what they promise."""

import pytest
from tools import ROOT
from tools.lesson_runs import NOTEBOOK, all_lessons, all_notebooks, execute, read_notebook

FEWEST_EXERCISES = 4


def short_name(page: str) -> str:
    return page.split("/")[-1]


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_runs(run_notebook, page, record_property):
    run = run_notebook(page)
    record_property("lesson", page)  # for the summary
    record_property("seconds", run.seconds)
    if run.failure:
        pytest.fail(run.failure, pytrace=False)


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_starts_with_a_folded_setup_cell(page):
    cells = read_notebook(ROOT / f"{page}.md").cells
    first = next(cell for cell in cells if cell.cell_type == "code")
    assert "hide-input" in first.metadata.get("tags", [])


@pytest.mark.parametrize("lesson", all_lessons(), ids=short_name)
def test_stubs_fail_their_checks_and_solutions_pass(run_notebook, lesson):
    run = run_notebook(lesson)  # the same run as above
    if run.failure:
        pytest.fail("the lesson doesn't run through", pytrace=False)
    stubs = run.outputs_of("exercise-stub")
    solutions = run.outputs_of("exercise-solution")
    assert len(stubs) >= FEWEST_EXERCISES
    assert len(solutions) == len(stubs)
    for text in stubs:
        assert "Not yet" in text
        assert "Correct" not in text
    for text in solutions:
        assert "Correct" in text
        assert "Not yet" not in text


FAILING = (
    NOTEBOOK
    + """
# Broken

```{code-cell} ipython3
fine = 1
```

```{code-cell} ipython3
divisor = fine - 1
fine / divisor
```
"""
)


def test_a_failure_names_lesson_cell_and_error(tmp_path):
    lesson = tmp_path / "L99_Broken.md"
    lesson.write_text(FAILING, encoding="utf-8")
    failure = execute(lesson, tmp_path / "cache").failure
    assert failure.startswith("L99_Broken, cell 2 (divisor = fine - 1): ZeroDivisionError")
    assert not list((tmp_path / "cache").rglob("*.ipynb"))  # a failed run isn't remembered


def test_pages_without_cells_are_not_notebooks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n", encoding="utf-8")
    assert read_notebook(page) is None
