"""Every lesson has what a lesson needs, it runs, and its exercises do what they promise."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from course.pages import lesson_checked_on, lesson_of, read_notebook
from tools import ROOT
from tools.lesson_runs import all_notebooks, all_pages, all_with_exercises

USUAL_EXERCISES, USUAL_ON_PAGE = 4, 3


def short_name(page: str) -> str:
    return page.split("/")[-1]


def tags_of_cells(page: Path) -> list[list[str]]:
    cells = read_notebook(page).cells
    return [cell.metadata.get("tags", []) for cell in cells if cell.cell_type == "code"]


def captions_of_cells(page: Path) -> list[str]:
    """Return the captions of the figures that a page computes."""
    options = [cell.metadata.get("mystnb", {}) for cell in read_notebook(page).cells]
    captions = [option.get("figure", {}).get("caption") for option in options]
    return [" ".join(caption.split()) for caption in captions if caption]


def without_effort(page: Path) -> int:
    """Return how many exercises of a page don't say how hard they are."""
    text = page.read_text(encoding="utf-8")
    return len(re.findall(r"^`{3,}\{exercise-start\}", text, re.M)) - text.count("{effort}`")


def missing_from(page: Path) -> list[str]:
    """Say what a notebook lacks, as far as can be told without executing it."""
    tags, missing = tags_of_cells(page), []
    if not {"hide-input", "remove-input"} & set(tags[0]):
        missing.append(f"{page.stem}: its first cell isn't folded; give it the tag hide-input")
    missing += [
        f"{page.stem}: a caption doesn't say random, hand-built or trained (seed n): {caption}"
        for caption in captions_of_cells(page)
        if not re.search(r"\b(random|hand-built|trained)", caption, re.IGNORECASE)
    ]
    number = lesson_of(page.stem)
    if folder := number.lower() or lesson_checked_on(page.read_text(encoding="utf-8")):
        lesson, checks = number or page.stem, f"attncourse.lessons.{folder}"
        stubs = sum("exercise-stub" in found for found in tags)
        solutions = sum("exercise-solution" in found for found in tags)
        if solutions != stubs:
            missing.append(
                f"{lesson} has {stubs} cells with the tag exercise-stub, and {solutions} with the "
                "tag exercise-solution; each stub has one solution"
            )
        if without := without_effort(page):
            missing.append(
                f"{lesson} has {without} exercises that don't begin with stars and minutes, "
                "such as {effort}`★★ 10 minutes`"
            )
        if getattr(find_spec(checks), "origin", None) is None:  # a folder alone is no module
            missing.append(f"{lesson} has no checks: there is no module {checks}")
    return missing


def few_exercises(page: Path) -> str:
    """Say that a lesson has fewer exercises than others; nothing if it hasn't."""
    tags = [tag for found in tags_of_cells(page) for tag in found]
    stubs, on_page = tags.count("exercise-stub"), tags.count("exercise-page")
    if not page.stem.startswith("L") or (stubs >= USUAL_EXERCISES and on_page >= USUAL_ON_PAGE):
        return ""
    told = f"{page.stem} has {stubs} exercises, {on_page} of them answered on the page"
    return f"{told}; {USUAL_EXERCISES} and {USUAL_ON_PAGE} are usual"


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_nothing_is_missing(page):
    missing = missing_from(ROOT / f"{page}.md")
    assert not missing, "\n".join(missing)
    if told := few_exercises(ROOT / f"{page}.md"):
        warnings.warn(told, stacklevel=1)


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


@pytest.mark.parametrize("lesson", all_with_exercises(), ids=short_name)
def test_stubs_fail_their_checks_and_solutions_pass(run_notebook, lesson):
    run = run_notebook(lesson)  # the same run as above
    if run.failure:
        pytest.fail("the lesson doesn't run through", pytrace=False)
    stubs = run.outputs_of("exercise-stub")
    solutions = run.outputs_of("exercise-solution")
    for number, text in enumerate(stubs, start=1):
        assert "Not yet" in text and "Correct" not in text, f"stub {number} passes: {text}"
    for number, text in enumerate(solutions, start=1):
        assert "Correct" in text and "Not yet" not in text, f"solution {number} fails: {text}"


def glued_by(cell) -> set[str]:
    """Return the numbers that an executed cell gave to the prose."""
    return {
        output.metadata["scrapbook"]["name"]
        for output in cell.get("outputs", ())
        if "scrapbook" in output.get("metadata", {})
    }


@pytest.mark.parametrize("page", all_notebooks(), ids=short_name)
def test_a_measured_number_is_there_when_the_prose_asks_for_it(run_notebook, page):
    """JupyterLab asks the kernel when a text's turn comes, not when all cells are done."""
    glued, too_early = set(), []
    for cell in run_notebook(page).notebook.cells:
        glued |= glued_by(cell)
        if cell.cell_type == "markdown":
            asked = re.findall(r"\{eval\}`(\w+)`", cell.source)
            too_early += [name for name in asked if name not in glued]
    assert too_early == []
