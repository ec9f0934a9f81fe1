"""An exercise's box says how hard it is and how to try, but no verdict before one tries."""

import nbformat
import pytest
from tools.lesson_runs import all_lessons
from tools.site_builds import read
from tools.small_pages import EFFORT_MISTAKES


@pytest.fixture
def lesson(small):
    return read(small / "switch.html")


def test_the_page_shows_no_verdict_but_once_how_to_get_one(lesson, small):
    assert "Not yet" not in lesson.select_one("article").text
    [line] = lesson.select(".course-how-to-run")
    assert line.find_next_sibling()["id"] == "ex-write"  # the first that needs it
    notebook, how = line.select("a")
    assert (small / notebook["href"]).resolve().is_file()
    assert how["href"] == "index.html#how-to-run"


def test_only_what_is_answered_in_code_is_a_fold_and_of_others_the_output_is_shown(lesson):
    [fold] = lesson.select("details.exercise")
    assert fold["id"] == "ex-write" and fold.has_attr("open")
    assert fold.summary.text.split("(")[0].strip() == "Exercise 2"
    title = fold.select_one("#sol-write > .admonition-title")  # without links
    assert "Exercise 2" in title.text and title.select("a") == []
    cell = lesson.select_one(".tag_exercise-page")
    assert cell.select(".cell_output") and not cell.select(".cell_input")


def test_the_downloaded_notebook_has_stubs_that_never_ran_and_says_their_effort(small):
    sources = small.parent / "_sources/book/switch.ipynb"
    notebook = nbformat.read(sources, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    stubs = [cell for cell in cells if "exercise-stub" in cell.metadata.tags]
    assert len(stubs) == 2
    assert [c for c in cells if not c.outputs] == stubs
    assert [c for c in cells if c.execution_count is None] == stubs
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "*★★☆ · about 10 minutes.* Text of write" in text
    assert "{effort}" not in text


def test_stars_and_minutes_are_shown_and_told(lesson, small):
    effort = lesson.select_one("#ex-write > .admonition-title .effort")
    assert effort.text == "★★☆ · about 10 minutes"
    assert effort.select_one("[role=img]")["aria-label"] == "difficulty 2 of 3"
    in_prose = read(small / "index.html").select("section > p .effort")
    assert [found.text for found in in_prose] == ["★★★ · about 1 minute"] * 2


def test_malformed_effort_is_refused_with_its_place(warnings):
    for number, text in enumerate(EFFORT_MISTAKES):
        assert f"effort.md:{3 + 2 * number}: WARNING: {{effort}}`{text}`: wanted" in warnings


@pytest.mark.parametrize("page", all_lessons())
def test_no_lesson_shows_a_verdict_over_a_stub_and_each_says_once_how_to_get_one(site, page):
    html = read(site / f"{page}.html")
    stubs = html.select(".tag_exercise-stub")
    assert stubs
    assert not any(stub.select(".cell_output") for stub in stubs)
    [line] = html.select(".course-how-to-run")
    assert line.select("a")[1]["href"] == "index.html#how-to-run"
    assert all(title.select(".effort") for title in html.select(".exercise > .admonition-title"))
    assert html.select("details.course-goals > ul > li")
