"""What stands below a prediction doesn't give its answer away."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from urllib.request import urlopen

import pytest
from bs4 import BeautifulSoup
from page_lengths import STATE
from tools.browsing import open_page, serve
from tools.lesson_runs import NOTEBOOK, all_pages
from tools.site_builds import build, small_project

PREDICT = """```{{code-cell}} ipython3
:tags: [remove-input]

from attnlib.widgets import Predict
Predict("What is {question}?", ["this", "that"], 0, "Because.")
```
"""
CELL = """```{{code-cell}} ipython3
:tags: [{tags}]

{code}
```
"""
FIGURE = """```{code-cell} ipython3
---
mystnb: {image: {alt: A dark little dot.}, figure: {name: fig-dot, caption: "Dot (hand-built)."}}
---
from IPython.display import SVG
SVG('<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="6pt"><path fill="#1F2328"/></svg>')
```
"""
EXERCISE = """```{exercise-start} Do it
:label: ex-do-it
```
What the exercise asks.

```{exercise-end}
```
"""
PAGE = "\n".join([
    NOTEBOOK, "# Page", "See {numref}`fig-dot`.", CELL.format(tags="", code="'before all'"),
    PREDICT.format(question="first"), "Prose answers.", CELL.format(tags="", code="'code answers'"),
    "A formula answers: $x$.", CELL.format(tags="hide-input", code="'output answers'"), EXERCISE,
    "After the exercise.", PREDICT.format(question="asked in vain"), "(next)=", "## Next",
    "Below a heading. " * 300, PREDICT.format(question="second"), PREDICT.format(question="third"),
    FIGURE, "Said of the dot.", PREDICT.format(question="fourth"), "### Part", "In the part.",
    PREDICT.format(question="fifth").replace("Predict(", "p = Predict(").replace(
        ".\")\n", ".\")\np.choice, p.committed = 0, True\np\n"
    ), "Kept open.",
])  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    project = tmp_path_factory.mktemp("covers") / "project"
    small_project(project, {"index": PAGE})
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    with serve(project / "_build/html") as site:
        yield f"{site}book/index.html"


@pytest.fixture
def page(browser, address):
    with open_page(browser, address) as (page, problems):
        yield page
        assert problems == []


ALWAYS = {
    "before all", "What the exercise asks", "After the exercise", "Below a heading",
    "In the part", "Kept open",
}  # fmt: skip
FIRST = {"Prose answers", "code answers", "A formula answers", "output answers"}
THIRD = {"Dot (hand-built)", "Said of the dot"}
SUMMARY = ".course-cover > summary"


def shown(page):
    """Return what can be seen of the page's words."""
    seen = page.locator("article").inner_text()
    return {words for words in ALWAYS | FIRST | THIRD if words in seen}


def commit(page, number):
    box = page.locator(".attn-predict").nth(number)
    box.get_by_label("this").check()
    box.get_by_role("button", name="Commit").click()


def test_what_answers_is_folded_until_its_reader_commits(page):
    assert shown(page) == ALWAYS
    commit(page, 0)
    assert shown(page) == ALWAYS | FIRST
    commit(page, 2)
    assert shown(page) == ALWAYS | FIRST
    commit(page, 3)
    assert shown(page) == ALWAYS | FIRST | THIRD


def test_an_answer_has_one_fold_and_no_answer_has_none(page):
    assert page.locator(f"{SUMMARY}:visible").count() == 2
    assert page.locator("details.course-cover").count() == 3  # with the one that comes open


def test_thinking_again_folds_again(page):
    commit(page, 0)
    page.get_by_role("button", name="Think again").first.click()
    assert shown(page) == ALWAYS


def test_by_hand_it_opens_at_any_time_with_the_keyboard(page):
    summary = page.locator(SUMMARY).first
    summary.focus()
    page.keyboard.press("Enter")
    assert shown(page) == ALWAYS | FIRST
    assert summary.inner_text().strip() == "Hide the answer and what follows"
    page.keyboard.press("Space")
    assert shown(page) == ALWAYS
    assert summary.inner_text().strip() == "Show the answer and what follows"
    assert summary.evaluate("summary => summary === document.activeElement")


def test_nothing_above_moves(page):
    box = page.locator(".attn-predict").nth(3)
    place = "box => box.getBoundingClientRect().top + scrollY"
    before = box.evaluate(place)
    commit(page, 3)
    assert box.evaluate(place) == before
    box.get_by_role("button", name="Think again").click()
    assert box.evaluate(place) == before


def test_a_reader_who_comes_back_finds_open_what_was_open(page):
    commit(page, 0)
    page.reload()
    page.get_by_role("button", name="Think again").first.wait_for()
    assert shown(page) == ALWAYS | FIRST
    page.get_by_role("button", name="Clear my answers").click()
    page.get_by_role("button", name="Yes, clear").click()
    assert shown(page) == ALWAYS


def test_what_was_opened_by_hand_is_found_open_until_it_is_closed(page):
    def come_back():
        page.reload()
        page.locator(".attn-predict").first.wait_for()
        return shown(page)

    summary = page.locator(SUMMARY).first
    summary.click()
    assert come_back() == ALWAYS | FIRST
    summary.click()
    assert come_back() == ALWAYS
    summary.click()
    commit(page, 0)
    page.get_by_role("button", name="Think again").first.click()
    assert come_back() == ALWAYS


def test_a_page_that_comes_with_an_answer_opens_its_fold(page):
    assert page.get_by_text("Kept open.").is_visible()


def test_a_link_to_a_figure_opens_its_fold(browser, address, page):
    page.get_by_role("link", name="Figure 1").click()
    page.locator("figure").wait_for()
    assert shown(page) == ALWAYS | THIRD
    with open_page(browser, f"{address}#fig-dot") as (linked, problems):
        assert shown(linked) == ALWAYS | THIRD
        assert linked.locator("figure").evaluate("f => f.getBoundingClientRect().top < innerHeight")
        assert problems == []


def test_on_paper_all_is_shown_and_afterwards_as_before(page):
    before = shown(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown(page) == ALWAYS | FIRST | THIRD
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown(page) == before


def test_without_script_nothing_is_folded(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert shown(page) == ALWAYS | FIRST | THIRD
    assert page.locator(f"{SUMMARY}:visible").count() == 0
    context.close()


def test_a_page_that_arrives_slowly_shows_no_answer(browser, address):
    with urlopen(address) as answer:
        html = answer.read().replace(b"<head>", b'<head><base href="%s">' % address.encode(), 1)
    cut = html.index(b"Below a heading.", html.index(b"<body"))  # the description holds it too
    begin, rest = html[:cut], html[cut:]
    looked = Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(begin)
            looked.wait(60)
            self.wfile.write(rest)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}", wait_until="commit")
        page.get_by_text("After the exercise.").wait_for()
        seen = shown(page)
        looked.set()
        page.close()
        server.shutdown()
    assert seen == {"before all", "What the exercise asks", "After the exercise"}


def wrongly_open_or_covered(html):
    """Return what stands open right below a page's Predict boxes, and what no fold may hold."""
    page = BeautifulSoup(html, "html.parser")
    state = json.loads(page.select_one(STATE).string)["state"] if page.select_one(STATE) else {}
    views = page.select('script[type="application/vnd.jupyter.widget-view+json"]')
    models = [json.loads(view.string)["model_id"] for view in views]
    boxes = [
        view.find_parent(class_="cell")
        for view, model in zip(views, models, strict=True)
        if state[model]["state"].get("_module") == "predict"
    ]
    found = page.select(".course-cover :is(section, .exercise, .solution)")
    for box in boxes:
        below = box.find_next_siblings()
        if below and "course-cover" in below[0].get("class", ()):
            below.pop(0)
        if below and not (below[0] in boxes or below[0].css.match("section, .exercise")):
            found.append(below[0])
    return [str(node) for node in found]


@pytest.mark.parametrize("page", all_pages())
def test_the_folds_of_the_course_hold_all_that_answers_and_nothing_else(site, page):
    html = (site / f"{page}.html").read_text(encoding="utf-8")
    assert wrongly_open_or_covered(html) == []
