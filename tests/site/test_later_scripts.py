"""Scripts that a page can do without until it stands: loaded then, once, and at work."""

import pytest
from course.publishing import LATER
from tools.browsing import open_page
from tools.lesson_runs import all_lessons

NAMES = """() => [...document.scripts].map(({src}) => src.split("/").at(-1).split("?")[0])"""
WITHOUT_IDLE_TIME = "delete globalThis.requestIdleCallback"  # as in WebKit


@pytest.fixture
def lesson(site_address):
    return f"{site_address}{all_lessons()[0]}.html"


def open_lesson(browser, address, script=""):
    """Open a page; return it when its content is there, before its later scripts."""
    page = browser.new_page()
    page.add_init_script(script)
    page.add_init_script(f"""addEventListener("load", () => {{
      window.namesWhenLoaded = ({NAMES})();
    }}, {{once: true, capture: true}})""")
    page.goto(address, wait_until="load")
    return page


@pytest.mark.parametrize("script", ["", WITHOUT_IDLE_TIME], ids=["idle", "no-idle-time"])
@pytest.mark.parametrize("place", ["server", "folder"])
def test_they_come_once_in_order_after_everything_else(browser, site, lesson, script, place):
    address = lesson if place == "server" else (site / f"{all_lessons()[0]}.html").as_uri()
    page = open_lesson(browser, address, script)
    page.locator("button.copybtn").first.wait_for(state="attached")
    assert not set(LATER) & set(page.evaluate("namesWhenLoaded"))
    page.wait_for_function("SphinxHighlight")
    assert [name for name in page.evaluate(NAMES) if name in LATER] == list(LATER)
    page.close()


def test_each_listing_gets_one_button_that_copies_it(browser, lesson):
    with open_page(browser, lesson) as (page, problems):
        listings = page.locator("div.highlight pre")
        assert page.locator("button.copybtn").count() == listings.count() > 3
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        seen = page.locator("div.highlight:has(pre:visible)").first
        seen.hover()
        seen.locator("button.copybtn").click()
        page.locator("button.copybtn.success").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.split() == seen.locator("pre").text_content().split()
        assert problems == []


def test_a_word_that_was_searched_for_is_marked(browser, lesson):
    with open_page(browser, f"{lesson}?highlight=token") as (page, _):
        page.locator("article .highlighted").first.wait_for(state="attached")
        assert "highlight" not in page.url


def test_the_search_needs_them_at_once(browser, site_address):
    with open_page(browser, f"{site_address}search.html?q=softmax") as (page, problems):
        page.locator("#search-results .highlighted").first.wait_for()
        assert not page.locator("[data-scripts]").count()
        assert problems == []
