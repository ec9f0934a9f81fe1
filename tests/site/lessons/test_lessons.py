"""Every lesson has what a lesson needs, it runs, and its exercises do what they promise."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from course.pages import lesson_checked_on, lesson_of, read_notebook
from tools import ROOT
from tools.lesson_runs import all_notebooks, all_pages, all_with_exercises

EXERCISE = re.compile(r"^`{3,}\{exercise-start\}", re.M)


def short_name(page: str) -> str:
    return page.split("/")[-1]


def missing_from(page: Path) -> list[str]:
    """Say what a notebook lacks, as far as can be told without executing it."""
    cells, text, missing = read_notebook(page).cells, page.read_text(encoding="utf-8"), []
    tags = [cell.metadata.get("tags", []) for cell in cells if cell.cell_type == "code"]
    figures = [cell.metadata.get("mystnb", {}).get("figure", {}) for cell in cells]
    if not {"hide-input", "remove-input"} & set(tags[0]):
        missing.append(f"{page.stem}: its first cell isn't folded; give it the tag hide-input")
    missing += [
        f"{page.stem}: a caption doesn't say random, hand-built or trained (seed n): {caption}"
        for caption in filter(None, (figure.get("caption") for figure in figures))
        if not re.search(r"\b(random|hand-built|trained)", caption, re.IGNORECASE)
    ]
    number = lesson_of(page.stem)
    if folder := number.lower() or lesson_checked_on(text):
        lesson, checks = number or page.stem, f"attncourse.lessons.{folder}"
        stubs = sum("exercise-stub" in found for found in tags)
        solutions = sum("exercise-solution" in found for found in tags)
        if solutions != stubs:
            missing.append(
                f"{lesson} has {stubs} cells with the tag exercise-stub, and {solutions} with the "
                "tag exercise-solution; each stub has one solution"
            )
        if without := len(EXERCISE.findall(text)) - text.count("{effort}`"):
            missing.append(
                f"{lesson} has {without} exercises that don't begin with stars and minutes, "
                "such as {effort}`★★ 10 minutes`"
            )
        if getattr(find_spec(checks), "origin", None) is None:  # a folder alone is no module
            missing.append(f"{lesson} has no checks: there is no module {checks}")
    return missing


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_nothing_is_missing(page):
    missing = missing_from(ROOT / f"{page}.md")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("lesson", all_with_exercises(), ids=short_name)
def test_the_tables_of_lessons_name_it(lesson):
    for table, address in (("README.md", f"{lesson}.md"), ("book/index.md", f"{lesson[5:]}.md")):
        text = (ROOT / table).read_text(encoding="utf-8")
        assert f"]({address})" in text, f"the table of lessons in {table} has no link to {address}"


def test_each_page_is_in_the_table_of_contents():
    pages = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.md")}
    absent = [f"_toc.yml doesn't name {page}" for page in sorted(pages - set(all_pages()))]
    assert absent == []


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_runs(run_notebook, page, record_property):
    run = run_notebook(page)
    record_property("lesson", page)  # for the summary
    record_property("seconds", run.seconds)
    if run.failure:
        pytest.fail(run.failure, pytrace=False)


def text_of(output) -> str:
    return output.get("text") or output.get("data", {}).get("text/plain", "")


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
            text = "\n".join(map(text_of, cell.outputs))
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
