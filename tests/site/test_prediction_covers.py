"""What stands below a prediction doesn't give its answer away."""

import json

import pytest
from course.lengths import STATE
from tools.browsing import open_page
from tools.lesson_runs import all_pages
from tools.site_builds import read


@pytest.fixture
def address(small_address):
    return f"{small_address}covers.html"


@pytest.fixture
def page(browser, address):
    with open_page(browser, address) as (page, problems):
        yield page
        assert problems == []


FIRST = {"output answers", "Prose answers", "a table", "a list answers"}
THIRD = {"printed beside it", "the drawing"}
FOURTH = {"The fourth"}
ALWAYS_OPEN = (
    "before all", "Open prose", "Right below", "'output '", "Next", "Below a heading",
    "Dot (hand-built)", "Said of the dot", "Kept open",
)  # fmt: skip

# The words that no cover lies over.
UNCOVERED = """() => {
  const words = [];
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: box } = walker.currentNode;
    if (box.checkVisibility() && !box.closest("[data-covers]")) words.push(walker.currentNode.data);
  }
  return words.join(" ");
}"""


def shown(page):
    """Return which answers can be seen."""
    seen = page.evaluate(UNCOVERED)
    if page.locator("figure .course-cover").get_attribute("data-covers") is None:
        seen += "the drawing"
    return {words for words in FIRST | THIRD | FOURTH if words in seen}


def commit(page, number):
    box = page.locator(".attn-predict").nth(number)
    box.get_by_label("this").check()
    box.get_by_role("button", name="Commit").click()


def covers(page):
    return page.get_by_role("button", name="Your guess first, or press to see")


def reload(page):
    page.reload()
    page.locator(".attn-predict").first.wait_for()


def test_a_cover_is_a_line_until_its_reader_commits_and_all_else_stands_open(page):
    assert shown(page) == set()
    seen = page.evaluate(UNCOVERED)
    assert [words for words in ALWAYS_OPEN if words not in seen] == []
    # Neighbors share one: the output, then prose with a table, and the list under the next heading.
    assert page.locator(".course-cover").count() == 7
    assert covers(page).count() == 5  # and one line says it for the output and that prose
    is_inert = "words => words.closest('[inert]') !== null"
    assert page.get_by_text("Prose answers").evaluate(is_inert)
    assert not page.locator("figure .drawing").evaluate(is_inert)
    assert page.get_by_role("img", name="A dark little dot.").count() == 1
    button = page.locator("figure").get_by_role("button").first
    button.scroll_into_view_if_needed()
    assert button.evaluate("""button => {
      const { x, y, width, height } = button.getBoundingClientRect();
      return document.elementFromPoint(x + width / 4, y + height / 4) === button;
    }""")
    assert page.locator("figure .course-cover").bounding_box()["height"] < 50
    page.emulate_media(media="print")
    answer = page.locator(".course-answer").first
    assert answer.evaluate("a => getComputedStyle(a).opacity") == "1"
    assert not covers(page).first.is_visible()
    page.emulate_media(media="screen")
    page.get_by_role("link", name="There").click()  # within the page
    reload(page)
    for number, opened in enumerate((set(), FIRST, FIRST, FIRST | THIRD)):
        assert shown(page) == opened
        commit(page, number)
    reload(page)  # what a reader committed to is open when they come back
    again = page.get_by_role("button", name="Think again").first
    again.wait_for()
    assert shown(page) == FIRST | THIRD | FOURTH
    assert page.locator("figure .course-cover").bounding_box()["height"] > 50
    again.click()
    assert shown(page) == THIRD | FOURTH


def test_a_press_opens_what_answers_one_prediction_and_three_presses_open_all(page):
    covers(page).first.focus()
    page.keyboard.press("Enter")
    assert shown(page) == FIRST
    assert "output answers" in page.locator("article :focus").inner_text()
    reload(page)
    assert shown(page) == FIRST
    covers(page).first.click()
    assert shown(page) == FIRST | THIRD
    assert covers(page).count() == 0
    page.locator("[data-covers] > button").first.click()
    assert shown(page) == FIRST | THIRD | FOURTH


def test_who_comes_by_a_link_from_the_search_or_without_script_is_shown_all(browser, address):
    for end in ("#fig-covered", "#:~:text=said", "?highlight=dot"):
        with open_page(browser, f"{address}{end}") as (page, problems):
            assert shown(page) == FIRST | THIRD | FOURTH
            reload(page)
            assert shown(page) == FIRST | THIRD | FOURTH
            assert problems == []
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address)
        assert page.locator("[data-covers]").count() == 0 == covers(page).count()
        assert page.get_by_text("Prose answers").is_visible()


def test_a_page_that_arrives_slowly_shows_no_answer(browser, small, address):
    head, body = (small / "covers.html").read_text(encoding="utf-8").split("<body ")
    body = body.replace("Below a heading.", "<script src='slow.js'></script> Below", 1)
    page, held = browser.new_page(), []
    page.route(address, lambda route: route.fulfill(body=f"{head}<body {body}"))
    page.route("**/slow.js", lambda route: held.append(route))  # what stands below waits for it
    page.route("**/widgets/*.js*", lambda route: route.abort())  # nor are widgets there
    page.goto(address, wait_until="commit")
    page.get_by_text("Right below.").wait_for()
    seen = page.evaluate(UNCOVERED)
    assert "before all" in seen and "output answers" not in seen and "Below" not in seen
    held[0].abort()
    page.close()


NEVER_COVERED = "section, .exercise, .solution, figcaption, script, .course-widget"


@pytest.mark.parametrize("page", all_pages())
def test_the_covers_of_the_course_take_back_what_answers_and_nothing_else(site, page):
    html = read(site / f"{page}.html")
    assert html.select(f".course-cover :is({NEVER_COVERED})") == []
    state = json.loads(html.select_one(STATE).string)["state"] if html.select_one(STATE) else {}
    asked = {model for model, one in state.items() if one["state"].get("_module") == "predict"}
    assert {cover["data-until"] for cover in html.select(".course-cover")} <= asked
