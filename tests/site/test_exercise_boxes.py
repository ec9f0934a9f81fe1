"""An exercise's box says how hard it is and how to try, but no verdict before one tries."""

import nbformat
import pytest
from tools.lesson_runs import all_lessons
from tools.site_builds import read


def test_a_box_says_how_hard_it_is_shows_no_verdict_and_but_once_how_to_get_one(small):
    lesson = read(small / "switch.html")
    assert "Not yet" not in lesson.select_one("article").text
    [line] = lesson.select(".course-how-to-run")
    assert line.find_next_sibling()["id"] == "ex-write"  # the first that needs it
    notebook, how = line.select("a")
    assert (small / notebook["href"]).resolve().is_file()
    assert how["href"] == "index.html#how-to-run"
    [fold] = lesson.select("details.exercise")  # only what is answered in code is a fold
    assert fold["id"] == "ex-write" and fold.has_attr("open")
    assert fold.summary.text.split("(")[0].strip() == "Exercise 2"
    title = fold.select_one("#sol-write > .admonition-title")  # without links
    assert "Exercise 2" in title.text and title.select("a") == []
    cell = lesson.select_one(".tag_exercise-page")
    assert cell.select(".cell_output") and not cell.select(".cell_input")
    assert not read(small / "L99_Class.html").select(".exercise .solution")  # it's another's
    in_prose = read(small / "index.html").select("section > p .effort")
    efforts = [fold.select_one(".admonition-title .effort"), *in_prose]
    told = [one.text for one in efforts]
    assert told == ["★★☆ · about 10 minutes", "★★★ · about 1 minute", "★★★ · about 1 minute"]
    heard = [one.select_one("[role=img]")["aria-label"] for one in efforts]
    assert heard == [f"difficulty {number} of 3" for number in (2, 3, 3)]


def test_the_downloaded_notebook_has_stubs_that_never_ran_and_says_their_effort(small):
    notebook = nbformat.read(small.parent / "_sources/book/switch.ipynb", as_version=4)
    _, *cells = [cell for cell in notebook.cells if cell.cell_type == "code"]  # it installs
    stubs = [cell for cell in cells if "exercise-stub" in cell.metadata.tags]
    assert len(stubs) == 2
    assert [cell for cell in cells if not cell.outputs] == stubs
    assert [cell for cell in cells if cell.execution_count is None] == stubs
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "*★★☆ · about 10 minutes.* Text of write" in text
    assert "{effort}" not in text


@pytest.mark.parametrize("page", all_lessons())
def test_no_lesson_shows_a_verdict_over_a_stub_and_each_says_once_how_to_get_one(site, page):
    html = read(site / f"{page}.html")
    stubs = html.select(".tag_exercise-stub")
    assert stubs and not any(stub.select(".cell_output") for stub in stubs)
    [line] = html.select(".course-how-to-run")
    assert line.select("a")[1]["href"] == "index.html#how-to-run"
    assert all(title.select(".effort") for title in html.select(".exercise > .admonition-title"))
    assert html.select("details.course-goals > ul > li")
