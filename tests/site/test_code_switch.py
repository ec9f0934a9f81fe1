"""The switch Reading / Coding folds and opens the code of all pages."""

import pytest
from tools.browsing import open_page, serve
from tools.lesson_runs import NOTEBOOK
from tools.site_builds import build, small_project

CELL = """```{{code-cell}} ipython3
:tags: [{tags}]
_ = 1
_ = 2

_ = 3
_ = 4
_ = 5
_ = 6
"code of {name}".removeprefix("code of ")
```
"""
SHORT = CELL.replace("_ = 6\n", "")
STUB = """```{{exercise-start}} Do it
:label: ex-do-it
```
{stub}
```{{exercise-end}}
```
"""
PROSE = "Words that are read.\n\n" * 40
PAGE = "\n".join([
    NOTEBOOK, "# Page", CELL.format(tags="", name="example"), PROSE,
    CELL.format(tags="stays-open", name="module"),
    CELL.format(tags="hide-input", name="drawing"), CELL.format(tags="remove-input", name="gone"),
    SHORT.format(tags="", name="few lines"),
    STUB.format(stub=CELL.format(tags="exercise-stub", name="stub")), PROSE,
    CELL.format(tags="", name="second"), "The last words.", "", PROSE,
])  # fmt: skip
OTHER = "\n".join([NOTEBOOK, "# Other", CELL.format(tags="", name="other")])
PLAIN = "# Plain\n\nNo code.\n"

READING = {"few lines", "module", "stub"}
CODING = {"drawing", "example", "second", *READING}
SWITCH = "Open the code of all pages"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    project = tmp_path_factory.mktemp("switch") / "project"
    small_project(project, {"index": PAGE, "other": OTHER, "plain": PLAIN})
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    with serve(project / "_build/html") as address:
        yield f"{address}book/"


@pytest.fixture
def page(browser, site):
    with open_page(browser, f"{site}index.html") as (page, problems):
        yield page
        assert problems == []


def switch(page):
    return page.get_by_role("switch", name=SWITCH)


def open_code(page):
    """Return the names of the cells whose code can be seen."""
    names = {"gone", "other"} | CODING
    seen = page.locator("article").inner_text()
    return {name for name in names if f"code of {name}" in seen}


def test_one_reads_first_and_one_press_opens_the_code(page):
    assert open_code(page) == READING
    assert switch(page).get_attribute("aria-checked") == "false"
    switch(page).click()
    assert open_code(page) == CODING
    assert switch(page).get_attribute("aria-checked") == "true"
    switch(page).focus()
    page.keyboard.press("Space")
    assert open_code(page) == READING


def test_one_cell_is_opened_by_itself(page):
    page.get_by_text("Show the code").first.click()
    assert open_code(page) == {"example", *READING}


def test_the_choice_holds_on_every_page_and_is_kept(page, site):
    switch(page).click()
    page.reload()
    assert open_code(page) == CODING
    page.goto(f"{site}other.html")
    assert open_code(page) == {"other"}
    switch(page).click()
    page.go_back()
    assert open_code(page) == READING


def test_another_tab_follows(page, site):
    tab = page.context.new_page()
    tab.goto(f"{site}other.html")
    switch(page).click()
    tab.get_by_text("code of other").wait_for(timeout=5000)
    tab.close()


def test_what_is_read_stays_where_it_is(page):
    words = page.get_by_text("The last words.")
    words.evaluate(
        "words => scrollBy(0, words.getBoundingClientRect().bottom - innerHeight / 3 - 5)"
    )
    place = "words => words.getBoundingClientRect().top"
    before = words.evaluate(place)
    box = switch(page).bounding_box()
    for _ in range(2):
        page.mouse.click(box["x"] + 5, box["y"] + 5)  # a locator's click may scroll
        page.wait_for_timeout(100)  # what a browser does by itself it does in the next frames
        assert words.evaluate(place) == pytest.approx(before, abs=1)


def test_a_page_without_code_has_no_switch(browser, site):
    with open_page(browser, f"{site}plain.html") as (page, problems):
        assert switch(page).count() == 0
        assert problems == []


def test_where_nothing_can_be_kept_it_holds_until_the_page_is_left(browser, site):
    with open_page(browser, f"{site}plain.html") as (page, problems):
        page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw Error('denied'); },"
            " configurable: true})"
        )
        page.goto(f"{site}index.html")
        switch(page).click()
        assert open_code(page) == CODING
        assert problems == []


def test_without_script_each_cell_can_be_opened(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}index.html")
    assert switch(page).count() == 0
    assert open_code(page) == READING
    page.get_by_text("Show the code").first.click()
    assert open_code(page) == {"example", *READING}
    context.close()
