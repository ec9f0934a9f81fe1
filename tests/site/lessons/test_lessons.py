"""Every lesson has what a lesson needs, it runs, and its exercises do what they promise."""

import re
from importlib.util import find_spec

import pytest
from course.pages import lesson_checked_on, lesson_of, read_notebook
from tools import ROOT
from tools.lesson_runs import all_notebooks, all_pages, all_with_exercises

EXERCISE = re.compile(r"^`{3,}\{exercise-start\}", re.M)


def short_name(page: str) -> str:
    return page.split("/")[-1]


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_it_has_what_a_page_and_a_lesson_need(page):
    path = ROOT / f"{page}.md"
    cells, text = read_notebook(path).cells, path.read_text(encoding="utf-8")
    tags = [cell.metadata.get("tags", []) for cell in cells if cell.cell_type == "code"]
    assert {"hide-input", "remove-input"} & set(tags[0]), "give its first cell the tag hide-input"
    for cell in cells:
        caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption")
        is_honest = caption is None or re.search(r"\b(random|hand-built|trained)", caption, re.I)
        assert is_honest, f"a caption doesn't say random, hand-built or trained (seed n): {caption}"
    if folder := lesson_of(path.stem).lower() or lesson_checked_on(text):
        stubs = sum("exercise-stub" in found for found in tags)
        solutions = sum("exercise-solution" in found for found in tags)
        assert solutions == stubs, "each cell exercise-stub has one with the tag exercise-solution"
        told = "each exercise begins with stars and minutes, such as {effort}`★★ 10 minutes`"
        assert len(EXERCISE.findall(text)) == text.count("{effort}`"), told
        checks = find_spec(f"attncourse.lessons.{folder}")
        assert checks and checks.origin, f"there is no module attncourse.lessons.{folder}"


@pytest.mark.parametrize("lesson", all_with_exercises(), ids=short_name)
def test_the_tables_of_lessons_name_it(lesson):
    for table, address in (("README.md", f"{lesson}.md"), ("book/index.md", f"{lesson[5:]}.md")):
        text = (ROOT / table).read_text(encoding="utf-8")
        assert f"]({address})" in text, f"the table of lessons in {table} has no link to {address}"


def test_each_page_is_in_the_table_of_contents():
    pages = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.md")}
    assert pages <= {*all_pages()}, "_toc.yml doesn't name all pages"


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_runs(run_notebook, page):
    run = run_notebook(page)
    if run.failure:
        pytest.fail(run.failure, pytrace=False)


@pytest.mark.parametrize("lesson", all_with_exercises(), ids=short_name)
def test_stubs_fail_their_checks_and_solutions_pass(run_notebook, lesson):
    run = run_notebook(lesson)  # the same run as above
    if run.failure:
        pytest.fail("the lesson doesn't run through", pytrace=False)
    for tag, verdict, other in (
        ("exercise-stub", "Not yet", "Correct"), ("exercise-solution", "Correct", "Not yet"),
    ):  # fmt: skip
        cells = [cell for cell in run.notebook.cells if tag in cell.metadata.get("tags", [])]
        for number, cell in enumerate(cells, start=1):
            own = [one.get("text") or one.get("data", {}).get("text/plain") for one in cell.outputs]
            text = "\n".join(filter(None, own))
            assert verdict in text and other not in text, f"{tag} {number} says: {text}"


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_a_measured_number_is_there_when_the_prose_asks_for_it(run_notebook, page):
    """JupyterLab asks the kernel when a text's turn comes, not when all cells are done."""
    glued, too_early = set(), []
    for cell in run_notebook(page).notebook.cells:
        marks = [output.get("metadata", {}) for output in cell.get("outputs", ())]
        glued |= {mark["scrapbook"]["name"] for mark in marks if "scrapbook" in mark}
        if cell.cell_type == "markdown":
            asked = re.findall(r"\{eval\}`(\w+)`", cell.source)
            too_early += [name for name in asked if name not in glued]
    assert too_early == []
