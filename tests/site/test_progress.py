"""What a reader did on a page is kept in their browser: given back, counted, and cleared."""

import json

import pytest
from progress import mark_of
from tools.browsing import AT_REST, open_page, serve, violations_on
from tools.lesson_runs import NOTEBOOK
from tools.site_builds import build, small_project

CELL = """
```{{code-cell}} ipython3
{}
```
"""
PREDICT = CELL.format(
    "from attnlib.widgets import Predict\n"
    'Predict("What is 6 * 7?", ["41", "42", "43"], 1, "Count.")'
)
OTHER = CELL.format('Predict("And 6 * 8?", ["46", "48"], 1, "Count on.")')
ANSWER = CELL.format("from attnlib.exercises import l03, l05\nl03.softmax_row.on_page()")
CHOICE = CELL.format("l05.diagnosis.on_page()")
RIGHT = ["1/8", "0,25", "0.625", "20"]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Serve a site with a page that asks four things, one that asks one, and one that doesn't."""
    pages = {
        "index": "# Start\n\nNothing is asked here.\n",
        "L91_One": f"{NOTEBOOK}# One\n" + "\n## Next\n".join([PREDICT, OTHER, ANSWER, CHOICE]),
        "L92_Two": f"{NOTEBOOK}# Two\n{PREDICT}{CELL.format('6 * 7')}",
    }
    project = small_project(tmp_path_factory.mktemp("progress"), pages)
    result = build(project, project, "-W")
    assert result.returncode == 0, result.stderr
    with serve(project / "_build" / "html") as root:
        yield f"{root}book/"


@pytest.fixture
def reader(browser, address):
    """Return a function that opens a page in a new tab of one reader, and fails on any problem."""
    opened = open_page(browser, f"{address}index.html")
    first, problems = opened.__enter__()

    def visit(name):
        page = first.context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{address}{name}.html")
        page.evaluate(AT_REST)
        return page

    yield visit
    assert problems == []
    opened.__exit__(None, None, None)


def box(page, number):
    return page.locator(".course-widget").nth(number)


def predict(page, choice, number=0):
    box(page, number).get_by_label(choice).check()
    box(page, number).get_by_role("button", name="Commit").click()


def solve(page, *texts):
    for field, text in zip(box(page, 2).get_by_role("textbox").all(), texts, strict=True):
        field.fill(text)
    box(page, 2).get_by_role("button", name="Check").click()


def said(page, number=2):
    return box(page, number).get_by_role("status").inner_text()


def lines(page):
    """Return what the sidebar says of the pages."""
    return [text for text in page.locator(".course-progress").all_inner_texts() if text]


def kept(page):
    ours = "Object.entries(localStorage).filter(([key]) => key.startsWith('course '))"
    return page.evaluate(ours)


def test_untouched_pages_say_and_keep_nothing(reader):
    for name in ("index", "L91_One"):
        page = reader(name)
        assert lines(page) == []
        assert page.locator(".course-kept").is_hidden()
        assert page.locator(".course-progress:visible").count() == 0
        assert kept(page) == []


def test_what_was_done_is_there_again(reader):
    page = reader("L91_One")
    predict(page, "41")
    solve(page, *RIGHT)
    assert said(page).startswith("Correct.")
    box(page, 3).get_by_role("group", name="Log A").get_by_label("both").check()
    page.reload()
    page.evaluate(AT_REST)
    for tab in (page, reader("L91_One")):
        assert said(tab, 0) == "Not this one. Right: 42"
        assert box(tab, 0).get_by_label("41").is_checked()
        fields = box(tab, 2).get_by_role("textbox").all()
        assert [field.input_value() for field in fields] == RIGHT
        assert said(tab).startswith("Correct.")
        assert box(tab, 3).locator(":checked").count() == 1
        assert box(tab, 1).locator(":checked").count() == 0
        assert lines(tab) == ["1 of 2 predictions, 1 of 2 exercises on the page"]


def test_the_cell_that_answers_a_kept_prediction_stays_open(reader):
    page = reader("L92_Two")
    assert page.locator("details.course-cover pre").first.is_hidden()
    predict(page, "41")
    page.reload()
    page.evaluate(AT_REST)
    assert page.locator("details.course-cover pre").first.is_visible()


def test_the_sidebar_of_every_page_counts(reader):
    page = reader("L91_One")
    solve(page, "1", "1", "1", "1")
    assert said(page).startswith("Not yet.")
    assert lines(page) == []
    predict(page, "42")
    predict(page, "46", 1)
    assert lines(page) == ["2 of 2 predictions, 0 of 2 exercises on the page"]
    other = reader("L92_Two")
    assert box(other, 0).locator(":checked").count() == 0  # the same question, on another page
    predict(other, "42")
    solve(page, *RIGHT)
    expected = ["2 of 2 predictions, 1 of 2 exercises on the page", "1 of 1 predictions"]
    for name in ("index", "L91_One", "L92_Two", "../search"):
        assert lines(reader(name)) == expected
    link = "node => node.previousElementSibling.textContent.trim()"
    assert page.locator(".course-progress").evaluate_all(f"all => all.map({link})") == [
        "One", "Two",
    ]  # fmt: skip
    box(page, 0).get_by_role("button", name="Think again").click()
    assert lines(page)[0] == "1 of 2 predictions, 1 of 2 exercises on the page"


def test_all_can_be_cleared_after_a_question(reader):
    page = reader("L91_One")
    page.evaluate("localStorage.setItem('somebody else', 'their value')")
    predict(page, "42")
    solve(page, *RIGHT)
    predict(reader("L92_Two"), "41")
    area = page.locator(".course-kept")
    assert area.inner_text().startswith("Your answers are kept in this browser alone.")
    area.get_by_role("button", name="Clear my answers").click()
    assert "on all pages?" in area.get_by_role("status").inner_text()
    page.keyboard.press("Enter")  # "No, keep" has the focus
    assert len(kept(page)) == 3
    area.get_by_role("button", name="Clear my answers").click()
    page.keyboard.press("Escape")
    assert len(kept(page)) == 3
    assert area.get_by_role("button").all_inner_texts() == ["Clear my answers"]
    area.get_by_role("button", name="Clear my answers").click()
    area.get_by_role("button", name="Yes, clear").click()
    assert kept(page) == []
    assert page.evaluate("localStorage.getItem('somebody else')") == "their value"
    assert area.inner_text() == "Your answers are cleared."
    assert page.evaluate("document.activeElement.textContent") == "Your answers are cleared."
    assert lines(page) == []
    assert page.get_by_role("radio", checked=True).count() == 0
    assert said(page) == ""
    predict(page, "42")  # and goes on
    assert area.get_by_role("button", name="Clear my answers").is_visible()
    assert lines(page) == ["1 of 2 predictions, 0 of 2 exercises on the page"]


def test_two_tabs_stay_together(reader):
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
    one.get_by_role("button", name="Clear my answers").click()
    one.get_by_role("button", name="Yes, clear").click()
    box(two, 0).get_by_role("button", name="Commit").wait_for()
    two.wait_for_function("document.querySelector('[type=text]').value === ''")
    assert kept(one) == kept(two) == []


GIVEN = {"values": {"given": RIGHT, "checked": True}, "isDone": True}
CHOSEN = {"values": {"choice": 1, "committed": True}, "isDone": True}


@pytest.mark.parametrize(
    "value",
    [
        "", "{", "null", "7", '"text"', "[]", "{}", '{"isDone": true}', '{"values": 7}',
        json.dumps(GIVEN | {"isDone": "yes"}),
        json.dumps(GIVEN | {"values": [1, 2]}),
        json.dumps(GIVEN | {"values": {"given": ["1"], "checked": True}}),
        json.dumps(GIVEN | {"values": {"given": [1, 2, 3, 4], "checked": True}}),
        json.dumps(GIVEN | {"values": {"given": RIGHT, "checked": "yes"}}),
        json.dumps(CHOSEN | {"values": {"choice": 3, "committed": True}}),
        json.dumps(CHOSEN | {"values": {"choice": "1", "committed": True}}),
        json.dumps(CHOSEN | {"values": {"choice": 1, "committed": 1}}),
        json.dumps(CHOSEN | {"values": {"choice": None, "committed": True}}),
        json.dumps(CHOSEN | {"values": {"committed": True}}),
        json.dumps(GIVEN | {"isDone": False}),
        json.dumps({"__proto__": {"values": {}, "isDone": True}}),
    ],
)  # fmt: skip
def test_what_is_damaged_or_foreign_is_as_if_it_were_not_there(reader, value):
    page = reader("L91_One")
    predict(page, "42")
    solve(page, *RIGHT)
    keys = [key for key, _ in kept(page)]
    assert len(keys) == 2
    for key in keys:
        page.evaluate("([key, value]) => localStorage.setItem(key, value)", [key, value])
    page.reload()
    page.evaluate(AT_REST)
    assert box(page, 0).locator(":checked").count() == 0
    assert said(page) == "" and box(page, 2).get_by_role("textbox").first.input_value() == ""
    assert lines(page) == [] and page.locator(".course-kept").is_hidden()
    predict(page, "42")  # the page works
    page.reload()
    page.evaluate(AT_REST)
    assert said(page, 0) == "Right."


def test_what_an_older_edition_kept_is_forgotten(reader):
    page = reader("L91_One")
    predict(page, "42")
    ((key, value),) = kept(page)
    mark = key.rpartition(" ")[2]
    page.evaluate(
        """([key, mark, value]) => {
            localStorage.clear();
            localStorage.setItem(key.replace(mark, "0123456789ab"), value);
            localStorage.setItem(key.replace("L91_One", "L90_Gone"), value);
        }""",
        [key, mark, value],
    )
    page.reload()
    page.evaluate(AT_REST)
    assert box(page, 0).locator(":checked").count() == 0
    assert lines(page) == [] and page.locator(".course-kept").is_hidden()
    assert kept(page) == []


DENIED = {
    "no storage": """Object.defineProperty(window, "localStorage", {
        get() { throw new DOMException("denied", "SecurityError"); }})""",
    "no such thing": 'Object.defineProperty(window, "localStorage", {value: null})',
    "full": "Storage.prototype.setItem = () => { throw new DOMException('full'); }",
    "unreadable": "Storage.prototype.getItem = () => { throw new DOMException('no'); }",
}


@pytest.mark.parametrize("how", DENIED)
def test_where_nothing_can_be_kept_the_page_works(browser, address, how):
    with open_page(browser, f"{address}index.html") as (page, problems):
        page.add_init_script(DENIED[how])
        page.goto(f"{address}L91_One.html")
        page.evaluate(AT_REST)
        predict(page, "42")
        assert said(page, 0) == "Right."
        solve(page, *RIGHT)
        assert said(page).startswith("Correct.")
        assert lines(page) == []
        assert problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_sidebar_and_verdicts_can_be_read_by_all(browser, address, scheme):
    with open_page(browser, f"{address}L91_One.html", scheme=scheme) as (page, problems):
        predict(page, "42")
        solve(page, *RIGHT)
        box(page, 3).get_by_role("button", name="Check").click()
        page.get_by_role("button", name="Clear my answers").click()
        page.evaluate(AT_REST)
        assert problems == []
        assert violations_on(page) == []


# --- the mark of what is asked --------------------------------------------------------------------

STATE = {
    "question": "Why?", "choices": ["a", "b"], "kept": ["choice"], "choice": None,
    "layout": "IPY_MODEL_1", "_module": "predict", "tooltip": None,
}  # fmt: skip


def test_the_mark_is_that_of_what_is_asked():
    mark = mark_of({"state": STATE})
    for change in ({"choice": 1}, {"layout": "IPY_MODEL_2"}, {"_module": "x"}):
        assert mark_of({"state": STATE | change}) == mark
    for change in ({"question": "Who?"}, {"choices": ["b", "a"]}, {"explanation": ""}):
        assert mark_of({"state": STATE | change}) != mark
