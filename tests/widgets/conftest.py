"""What the tests of single widgets share."""

import pytest
from tools.widget_pages import page_source


@pytest.fixture
def show(browser):
    """Open a page with widgets; return the page. Errors on the page fail the test."""
    pages, errors = [], []

    def open_page(*widgets, width=1000, **options):
        page = browser.new_page(viewport={"width": width, "height": 900}, has_touch=True)
        pages.append(page)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_content(page_source(*widgets, **options))
        page.wait_for_function(
            "n => document.querySelectorAll('.attn-widget').length == n"
            " || document.querySelector('[role=alert]')",
            arg=len(widgets),
        )
        return page

    yield open_page
    for page in pages:
        page.close()
    assert errors == []
