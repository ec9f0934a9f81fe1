"""An exercise's box: no verdict before its reader has tried, and how to try is said once."""

import nbformat
import pytest
from bs4 import BeautifulSoup
from tools.lesson_runs import NOTEBOOK, all_lessons
from tools.site_builds import build, small_project

START = """# Start

(how-to-run)=
## Run it
"""
CELL = """```{{code-cell}} ipython3
:tags: [{tags}]

{code}
```
"""


def exercise(name, *cells):
    begin = f"```{{exercise-start}} Ex\n:label: ex-{name}\n```\n"
    return f"{begin}Do it.\n\n" + "\n".join(cells) + "\n```{exercise-end}\n```\n"


STUB = CELL.format(tags="exercise-stub", code="print('Not' + ' yet')")
WIDGET = CELL.format(tags="exercise-page", code="secret = 1\nprint('answer' + ' here')")
SOLUTION = """```{solution-start} ex-code
:label: sol-code
:class: dropdown
```
So.
```{solution-end}
```
"""
LESSON = "\n".join([
    NOTEBOOK, "# Lesson", exercise("page", STUB, WIDGET), exercise("code", STUB), SOLUTION,
    exercise("more", STUB),
])  # fmt: skip


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """Build a small site; return where its lesson stands, and the lesson."""
    project = tmp_path_factory.mktemp("stubs") / "project"
    small_project(project, {"index": START, "lesson": LESSON})
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    path = project / "_build/html/book/lesson.html"
    return path, BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def test_the_page_shows_no_verdict_but_once_how_to_get_one(lesson):
    path, page = lesson
    assert "Not yet" not in page.select_one("article").text
    [line] = page.select(".course-how-to-run")
    assert line.find_next_sibling()["id"] == "ex-code"  # the first that needs it
    notebook, how = line.select("a")
    assert (path.parent / notebook["href"]).resolve().is_file()
    assert how["href"] == "index.html#how-to-run"


def test_only_what_is_answered_in_code_is_a_fold_and_comes_open(lesson):
    _, page = lesson
    folds = page.select("details.exercise")
    assert [fold["id"] for fold in folds] == ["ex-code", "ex-more"]
    assert all(fold.has_attr("open") for fold in folds)
    assert page.select_one("#ex-code > summary").text.strip() == "Exercise 2  (Ex)"


def test_a_solution_stands_in_its_exercise_under_a_title_without_links(lesson):
    _, page = lesson
    title = page.select_one("#ex-code > #sol-code > .admonition-title")
    assert "Exercise 2" in title.text and title.select("a") == []


def test_of_a_cell_that_answers_on_the_page_only_its_output_is_shown(lesson):
    _, page = lesson
    text = page.select_one(".tag_exercise-page").text
    assert "answer here" in text and "secret" not in text


def test_the_downloaded_notebook_has_stubs_that_never_ran(lesson):
    path, _ = lesson
    sources = path.parents[1] / "_sources/book/lesson.ipynb"
    notebook = nbformat.read(sources, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [bool(cell.outputs) for cell in cells] == [False, True, False, False]
    assert [cell.execution_count is None for cell in cells] == [True, False, True, True]


def test_without_that_section_the_line_leads_to_the_start_page(tmp_path):
    pages = {"index": "# Start\n", "lesson": LESSON}
    project = small_project(tmp_path / "project", pages)
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    html = (project / "_build/html/book/lesson.html").read_text(encoding="utf-8")
    line = BeautifulSoup(html, "html.parser").select_one(".course-how-to-run")
    assert line.select("a")[1]["href"] == "index.html"


@pytest.mark.parametrize("page", all_lessons())
def test_no_lesson_shows_a_verdict_over_a_stub_and_each_says_once_how_to_get_one(site, page):
    html = BeautifulSoup((site / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    stubs = html.select(".tag_exercise-stub")
    assert stubs
    assert not any(stub.select(".cell_output") for stub in stubs)
    [line] = html.select(".course-how-to-run")
    assert line.select("a")[1]["href"] == "index.html#how-to-run"
    assert all(title.select(".effort") for title in html.select(".exercise > .admonition-title"))
    assert html.select("details.course-goals > ul > li")
