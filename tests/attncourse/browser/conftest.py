"""What the tests of single widgets share."""

import pytest
from tools import browser_models
from tools.head_labs import LISTEN
from tools.widget_pages import page_source


@pytest.fixture(scope="session")
def tabs(browser):
    """Return tabs for pages with widgets: a fresh one costs more than a page in it."""
    return []


@pytest.fixture
def show(browser, tabs):
    """Open a page with widgets; return the page. Errors on the page fail the test."""
    opened, errors = [], []

    def note(error):
        errors.append(str(error))

    def free_tab():
        if len(opened) == len(tabs):
            tabs.append(browser.new_page(has_touch=True))
        return tabs[len(opened)]

    def open_page(*widgets, width=1000, **options):
        page = free_tab()
        opened.append(page)
        page.on("pageerror", note)
        page.set_viewport_size({"width": width, "height": 900})
        page.set_content(page_source(*widgets, **options))
        page.wait_for_function(
            "n => document.querySelectorAll('.attn-widget').length == n"
            " || document.querySelector('[role=alert]')",
            arg=len(widgets),
        )
        return page

    yield open_page
    for page in opened:
        page.remove_listener("pageerror", note)
        page.emulate_media(reduced_motion="null")
        page.mouse.move(0, 0)
        page.goto("about:blank")  # a document and a window of its own for the next test
    assert errors == []


@pytest.fixture
def lab(show):
    """Open a page with HeadLabs whose workers are counted, and the last one kept at hand.

    A test may have its clock run ahead.
    """

    def open_page(*widgets, **options):
        page = show(*widgets, **options)
        page.clock.install()
        page.evaluate(LISTEN)
        return page

    return open_page


@pytest.fixture(scope="session")
def model_page(browser, tmp_path_factory):
    """Return a page with the browser's model engine, opened from a folder."""
    path = tmp_path_factory.mktemp("engine") / "page.html"
    path.write_text(browser_models.page_source(), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    yield page
    page.close()
