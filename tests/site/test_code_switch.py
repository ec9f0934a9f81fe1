"""The switch Reading / Coding: what is read, and what only those need who write code."""

import pytest
from tools.browsing import open_page

READING = {"few lines", "module"}
WITHOUT_SCRIPT = {"stub", "doubled", *READING}
CODING = {"import", "drawing", "example", "second", *WITHOUT_SCRIPT}
TOP = "part => part.getBoundingClientRect().top"


@pytest.fixture
def page(browser, small_address):
    with open_page(browser, f"{small_address}switch.html") as (page, problems):
        yield page
        assert problems == []


def switch(page):
    return page.get_by_role("switch", name="Open the code of all pages")


def open_code(page):
    """Return the names of the cells whose code can be seen."""
    seen = page.locator("article").inner_text()
    return {name for name in {"gone", "figures", *CODING} if f"code of {name}" in seen}


def title_of_exercise(page):
    return page.locator("#ex-write > summary")


def test_one_reads_first_and_a_press_opens_one_fold_or_all_code_and_the_goals(page):
    goal = page.get_by_role("listitem").filter(has_text="do it")
    offer = page.locator("article > section > .cell summary")
    assert offer.count() == 1 and not offer.is_visible()  # above the first heading
    assert page.locator("#fig-dot").is_visible()
    assert open_code(page) == READING and not goal.is_visible()
    assert switch(page).get_attribute("aria-checked") == "false"
    switch(page).click()
    assert open_code(page) == CODING and goal.is_visible()
    assert switch(page).get_attribute("aria-checked") == "true"
    switch(page).focus()
    page.keyboard.press("Space")
    assert open_code(page) == READING and not goal.is_visible()
    page.locator(".course-code summary").first.click()
    assert open_code(page) == {"example", *READING}
    page.get_by_text("After this lesson you can").click()
    assert goal.is_visible()
    text, solution = page.get_by_text("Text of write"), page.locator("#sol-write")
    assert not text.is_visible() and not solution.is_visible()
    title_of_exercise(page).press("Enter")
    assert text.is_visible() and solution.is_visible() and "stub" in open_code(page)
    assert not page.get_by_text("Text of solution").is_visible()
    for words in ("The last words.", "Text of write"):
        # A third of the way down the window is where a reader's eyes are: that stays there, or the
        # line of its exercise does.
        read = page.get_by_text(words)
        read.evaluate("p => scrollBy(0, p.getBoundingClientRect().bottom - innerHeight / 3 - 5)")
        before = read.evaluate(TOP)
        box = switch(page).bounding_box()
        page.mouse.click(box["x"] + 5, box["y"] + 5)  # a locator's click may scroll
        page.wait_for_timeout(100)  # what a browser does by itself it does in the next frames
        stays = read if read.is_visible() else title_of_exercise(page)
        assert stays.evaluate(TOP) == pytest.approx(before, abs=1)


def test_who_comes_by_a_link_or_from_the_search_finds_it_open_and_so_does_paper(
    page, small_address
):
    text = page.get_by_text("Text of write")
    for from_page in ("switch", "plain"):
        page.goto(f"{small_address}{from_page}.html")
        for _ in range(2):  # also where it was followed before
            page.locator("article a[href$='#ex-write']").last.click()
            page.wait_for_url("**/switch.html#ex-write")
            text.wait_for()
            page.wait_for_timeout(100)
            assert 0 <= title_of_exercise(page).bounding_box()["y"] < 450
            title_of_exercise(page).click()
            assert not text.is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert text.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not text.is_visible()
    for end in ("#sol-write", "?highlight=text"):  # on this page, and on one that is opened
        page.goto(f"{small_address}switch.html{end}")
        text.wait_for()
    page.evaluate("localStorage.setItem('sphinx_highlight_terms', 'write')")  # as the search does
    page.goto(f"{small_address}switch.html")
    assert text.is_visible()


def test_a_line_explains_the_switch_on_the_first_page_alone_and_the_choice_is_kept(
    page, small_address
):
    words = page.locator(".course-code-words")
    assert words.is_visible()
    page.goto(f"{small_address}figures.html")
    assert words.count() == 0 and open_code(page) == set()
    page.go_back()
    switch(page).click()
    page.goto(f"{small_address}figures.html")
    assert open_code(page) == {"figures"}
    switch(page).click()
    page.go_back()
    assert open_code(page) == READING and words.count() == 0
    tab = page.context.new_page()
    tab.goto(f"{small_address}figures.html")
    switch(page).click()
    tab.get_by_text("code of figures").wait_for(timeout=5000)
    page.goto(f"{small_address}plain.html")
    assert switch(page).count() == 0  # there is no code


def test_it_works_where_nothing_can_be_kept_and_a_stub_stands_in_for_what_has_no_script(
    browser, page, small_address
):
    page.locator("#ex-pick .attn-answer").wait_for()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw Error('denied'); },"
        " configurable: true})"
    )
    page.reload()
    switch(page).click()
    assert open_code(page) == CODING
    with browser.new_context() as context:
        broken = context.new_page()
        broken.route("**/widgets/answer.js*", lambda route: route.fulfill(body=""))
        broken.goto(f"{small_address}switch.html")
        broken.get_by_role("alert").wait_for()
        assert open_code(broken) == {"doubled", *READING}
    with browser.new_context(java_script_enabled=False) as context:
        bare = context.new_page()
        bare.goto(f"{small_address}switch.html")
        assert switch(bare).count() == 0
        assert open_code(bare) == WITHOUT_SCRIPT
        bare.locator(".course-code summary").first.click()
        assert open_code(bare) == {"example", *WITHOUT_SCRIPT}
