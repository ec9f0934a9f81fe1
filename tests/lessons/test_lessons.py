"""Every lesson runs, and its exercises do what they promise."""

import pytest
from lesson_runs import NOTEBOOK, all_lessons, execute, read_notebook

FEWEST_EXERCISES = 4


@pytest.fixture(params=all_lessons(), ids=lambda lesson: lesson.split("/")[-1])
def run(request, run_lesson):
    """Return what came of executing a lesson; every test below shares one execution."""
    return run_lesson(request.param)


@pytest.fixture
def finished(run):
    """Return the run of a lesson that went through."""
    if run.failure:
        pytest.skip("the lesson didn't run through: see test_runs")
    return run


def test_runs(run):
    if run.failure:
        pytest.fail(run.failure, pytrace=False)


def test_starts_with_a_folded_setup_cell(run):
    first = next(cell for cell in run.notebook.cells if cell.cell_type == "code")
    assert "hide-input" in first.metadata.get("tags", [])


def test_stubs_fail_their_checks_and_solutions_pass(finished):
    stubs = finished.outputs_of("exercise-stub")
    solutions = finished.outputs_of("exercise-solution")
    assert len(stubs) >= FEWEST_EXERCISES
    assert len(solutions) == len(stubs)
    for text in stubs:
        assert "Not yet" in text and "Correct" not in text
    for text in solutions:
        assert "Correct" in text and "Not yet" not in text


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
