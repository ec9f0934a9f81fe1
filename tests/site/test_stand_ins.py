"""A drawing stands in for a widget where that isn't drawn, and on paper: one of both, never two."""

import pytest
from tools.lesson_runs import all_lessons

DRAWING = ".tag_drawing-of-widget .drawing"
UNFOLD = "document.querySelectorAll('details').forEach((fold) => (fold.open = true))"
WIDGET = ".cell:has(+ .tag_drawing-of-widget) .attn-widget"


@pytest.fixture
def standing(browser, site_address):
    """Return a function that opens each lesson and gives those with a drawing that stands in."""
    contexts = []

    def opened(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        pages = []
        for name in all_lessons():
            page = context.new_page()
            page.goto(f"{site_address}{name}.html")
            if page.locator(DRAWING).count():
                page.evaluate(UNFOLD)
                pages.append(page)
        return pages

    yield opened
    for context in contexts:
        context.close()


def test_a_widget_takes_the_place_of_its_drawing_and_leaves_it_to_paper(standing):
    pages = standing()
    assert pages
    for page in pages:
        assert page.locator(WIDGET).is_visible()
        assert page.locator(DRAWING).is_hidden()
        assert page.locator(".tag_drawing-of-widget figcaption").is_visible()
        page.emulate_media(media="print")
        assert page.locator(WIDGET).is_hidden()
        assert page.locator(DRAWING).is_visible()


def test_without_script_there_is_the_drawing(standing):
    pages = standing(java_script_enabled=False)
    assert pages
    for page in pages:
        assert page.locator(".attn-widget").count() == 0
        assert page.locator(DRAWING).is_visible()
