"""What a reader did on a page is kept in their browser: given back, counted, and cleared."""

import json
import re

import pytest
from course.widgets import mark_of
from tools.browsing import AT_REST, open_page, switch_theme, violations_on

RIGHT = ["1/8", "0,25", "0.625", "20"]


@pytest.fixture
def reader(browser, small_address):
    """Return a function that opens a page in a new tab of one reader, and fails on any problem."""
    with open_page(browser, f"{small_address}index.html") as (first, problems):

        def visit(name):
            page = first.context.new_page()
            page.goto(f"{small_address}{name}.html")
            page.evaluate(AT_REST)
            return page

        yield visit
        assert problems == []


def box(page, number):
    return page.locator(".course-widget").nth(number)


def predict(page, choice, number=0):
    box(page, number).get_by_label(choice).check()
    box(page, number).get_by_role("button", name="Commit").click()


def solve(page, *texts):
    for number, text in enumerate(texts):
        box(page, 2).get_by_role("textbox").nth(number).fill(text)
    box(page, 2).get_by_role("button", name="Check").click()


def said(page, number=2):
    return box(page, number).get_by_role("status").inner_text()


def fields(page):
    return [field.input_value() for field in box(page, 2).get_by_role("textbox").all()]


def lines(page):
    """Return what the sidebar says of the pages."""
    return [text for text in page.locator(".course-progress").all_inner_texts() if text]


def kept(page):
    ours = "Object.entries(localStorage).filter(([key]) => key.startsWith('course '))"
    return page.evaluate(ours)


def test_what_was_done_is_there_again_and_counted_on_every_page(reader):
    page = reader("L91_One")
    assert lines(page) == kept(page) == []
    assert page.locator(".course-kept").is_hidden()
    assert page.locator(".course-progress:visible").count() == 0
    assert page.locator(".course-states").count() == 0  # no links to what a reader answers
    solve(page, "1", "1", "1", "1")
    assert said(page).startswith("Not yet.") and lines(page) == []
    predict(page, "41")
    solve(page, *RIGHT)
    assert said(page).startswith("Correct.")
    box(page, 3).get_by_role("group", name="Log A").get_by_label("both").check()
    page.reload()
    page.evaluate(AT_REST)
    for tab in (page, reader("L91_One")):
        assert said(tab, 0) == "Not this one. Right: 42"
        assert box(tab, 0).get_by_label("41").is_checked()
        assert fields(tab) == RIGHT
        assert said(tab).startswith("Correct.")
        assert box(tab, 3).locator(":checked").count() == 1
        assert box(tab, 1).locator(":checked").count() == 0
        assert lines(tab) == ["1 of 2 predictions, 1 of 2 exercises on the page"]
    other = reader("L99_Class")
    assert box(other, 0).locator(":checked").count() == 0  # the same question, on another page
    predict(other, "42")
    expected = ["1 of 2 predictions, 1 of 2 exercises on the page", "1 of 1 predictions"]
    for name in ("index", "L99_Class", "../search"):
        assert lines(reader(name)) == expected
    link = "node => node.innerText && node.previousElementSibling.textContent.trim()"
    links = page.locator(".course-progress").evaluate_all(f"all => all.map({link})")
    assert [*filter(None, links)] == ["One", "L99 · A lesson"]
    box(page, 0).get_by_role("button", name="Think again").click()
    assert lines(page)[0] == "0 of 2 predictions, 1 of 2 exercises on the page"


def test_tabs_stay_together_also_when_a_reader_clears_all(reader):
    one, two = reader("L91_One"), reader("L91_One")
    predict(one, "42")
    box(two, 0).get_by_role("button", name="Think again").wait_for()
    assert said(two, 0) == "Right."
    solve(two, *RIGHT)
    one.get_by_text("Correct.").wait_for()
    assert lines(one) == lines(two) == ["1 of 2 predictions, 1 of 2 exercises on the page"]
    box(one, 2).get_by_role("textbox").first.fill("9")
    two.wait_for_function("document.querySelector('[type=text]').value === '9'")
    assert said(one) == said(two) == ""

    # All can be cleared, after a question.
    one.evaluate("localStorage.setItem('somebody else', 'their value')")
    predict(reader("L99_Class"), "41")
    area = one.locator(".course-kept")
    clear = area.get_by_role("button", name="Clear my answers")
    for key in ("Enter", "Escape"):  # "No, keep" has the focus
        clear.click()
        assert area.get_by_role("status").inner_text()
        one.keyboard.press(key)
        assert len(kept(one)) == 3
        assert area.get_by_role("button").all_inner_texts() == ["Clear my answers"]
    clear.click()
    area.get_by_role("button", name="Yes, clear").click()
    assert kept(one) == []
    assert one.evaluate("localStorage.getItem('somebody else')") == "their value"
    assert area.inner_text() == one.evaluate("document.activeElement.textContent") != ""
    box(two, 0).get_by_role("button", name="Commit").wait_for()
    two.wait_for_function("document.querySelector('[type=text]').value === ''")
    for tab in (one, two):
        assert lines(tab) == [] and said(tab) == ""
        assert tab.get_by_role("radio", checked=True).count() == 0
    predict(one, "42")  # and goes on
    assert clear.is_visible()
    assert lines(one) == ["1 of 2 predictions, 0 of 2 exercises on the page"]


GIVEN = {"values": {"given": RIGHT, "checked": True}, "isDone": True}
CHOSEN = {"values": {"choice": 1, "committed": True}, "isDone": True}
PICKED = {"values": {"given": [2, None, None], "checked": False}, "isDone": False}

# Answers that no field or choice of the page can have.
IMPOSSIBLE = {"given": ["1"], "checked": True}, {"choice": 3, "committed": True}
DAMAGES = ["", "{", "null", '{"values": 7}', json.dumps(GIVEN | {"isDone": False})]
DAMAGES += [
    json.dumps({"values": values, "isDone": is_done})
    for values in IMPOSSIBLE
    for is_done in (False, True)
]
COMES_BACK = "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"
SET = "([key, value]) => localStorage.setItem(key, value)"


def test_what_is_damaged_is_as_if_it_were_not_there_and_all_can_be_read(browser, small_address):
    with open_page(browser, f"{small_address}L91_One.html") as (page, problems):

        def answer_all():
            predict(page, "42")
            solve(page, *RIGHT)
            box(page, 3).get_by_role("group", name="Log A").get_by_label("both").check()
            return dict(kept(page))

        answers = answer_all()
        shapes = [json.dumps(one, separators=(",", ":")) for one in (GIVEN, CHOSEN, PICKED)]
        assert sorted(answers.values()) == sorted(shapes)
        for damage in DAMAGES:
            for key in answers:
                page.evaluate(SET, [key, damage])
            page.evaluate(COMES_BACK)
            assert kept(page) == lines(page) == [], damage
            assert page.locator(":checked").count() == 0, damage
            assert "".join([*fields(page), *(said(page, n) for n in range(4))]) == "", damage
        assert answer_all() == answers  # the page works

        page.evaluate("localStorage.clear()")
        for key, value in answers.items():
            page.evaluate(SET, [key.replace("L91_One", "L90_Gone"), value])
            page.evaluate(SET, [re.sub("[0-9a-f]+$", "0123456789ab", key), value])
        page.reload()
        page.evaluate(AT_REST)
        assert kept(page) == lines(page) == []
        assert page.locator(":checked").count() == 0

        page.evaluate("localStorage.clear()")  # but what the last edition kept is taken over
        states = json.loads(page.locator("script[type$='widget-state+json']").text_content())
        marks = {one["state"].get("_asked"): one["state"] for one in states["state"].values()}
        ((key, value),) = ((k, v) for k, v in answers.items() if json.loads(v) == CHOSEN)
        mark = key.split()[-1]
        page.evaluate(SET, [key.replace(mark, marks[mark]["_earlier_mark"]), value])
        page.reload()
        page.evaluate(AT_REST)
        assert said(page, 0) == "Right." and lines(page) != []
        assert kept(page) == [[key, value]]

        solve(page, *RIGHT)
        box(page, 3).get_by_role("button", name="Check").click()
        page.get_by_role("button", name="Clear my answers").click()
        assert problems == []
        for _ in range(2):  # what is said can be read by all, also in the other theme
            assert violations_on(page) == []
            switch_theme(page)


# Fills the storage to the last byte, beside what is in it.
FILL = """(() => {
    for (let [size, i] = [2 ** 23, 0]; size >= 1; i++)
        try { localStorage[`full ${i}`] = "x".repeat(size); } catch { size /= 2; }
})()"""
DENIED = """Object.defineProperty(window, "localStorage", {
    get() { throw new DOMException("denied", "SecurityError"); }})"""
NO_SUCH_THING = 'Object.defineProperty(window, "localStorage", {value: null})'


@pytest.mark.parametrize("how", [FILL, DENIED, NO_SUCH_THING], ids=["full", "denied", "none"])
def test_where_nothing_can_be_kept_the_page_works(browser, small_address, how):
    with open_page(browser, f"{small_address}index.html") as (page, problems):
        page.add_init_script(how)
        page.goto(f"{small_address}L91_One.html")
        page.evaluate(AT_REST)
        predict(page, "42")
        assert said(page, 0) == "Right."
        solve(page, *RIGHT)
        assert said(page).startswith("Correct.")
        assert lines(page) == problems == []
        note = page.locator(".course-unkept")  # below each answer for which there is no room
        assert note.count() == (2 if how == FILL else 0)
        if how == FILL:
            assert note.first.inner_text() and note.first.get_attribute("role") == "status"


ASKED = {"question": "Why?", "choices": ["a", "b"], "kept": ["choice"], "choice": None}


def test_an_answer_stays_until_something_else_is_asked():
    mark = mark_of({"state": ASKED})
    changes = {"choice": False, "layout": False, "explanation": False, "question": True}
    for name, is_asked in changes.items():
        assert (mark_of({"state": ASKED | {name: "other"}}) != mark) is is_asked, name
