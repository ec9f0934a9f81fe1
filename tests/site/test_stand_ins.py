"""A drawing stands in for a widget where that isn't drawn, and on paper: one of both, never two."""

import contextlib

import pytest
from tools.lesson_runs import all_lessons
from tools.site_builds import read

DRAWING = ".tag_drawing-of-widget .drawing"
OF_THE_DRAWING, OF_THE_WIDGET = ".of-drawing", ".of-widget"  # parts of a caption
UNFOLD = "document.querySelectorAll('details').forEach((fold) => (fold.open = true))"
WIDGET = ".cell:has(+ .tag_drawing-of-widget) .attn-widget"


def shown(page, part):
    return page.locator(f"{part} >> visible=true").count()


@pytest.fixture
def standing(browser, site, site_address):
    """Return a function that opens the lessons with a drawing that stands in."""
    with contextlib.ExitStack() as stack:

        def opened(**options):
            context = stack.enter_context(browser.new_context(**options))
            names = [n for n in all_lessons() if read(site / f"{n}.html").select(DRAWING)]
            assert names
            for name in names:
                page = context.new_page()
                page.goto(f"{site_address}{name}.html")
                page.evaluate(UNFOLD)
                yield page

        yield opened


def test_a_widget_takes_the_place_of_its_drawing_and_leaves_it_to_paper(standing):
    for page in standing():
        assert page.locator(WIDGET).is_visible()
        assert page.locator(DRAWING).is_hidden()
        assert page.locator(".tag_drawing-of-widget figcaption").is_visible()
        assert shown(page, OF_THE_DRAWING) == 0
        assert shown(page, OF_THE_WIDGET) == page.locator(OF_THE_WIDGET).count()
        page.emulate_media(media="print")
        assert page.locator(WIDGET).is_hidden()
        assert page.locator(DRAWING).is_visible()
        assert shown(page, OF_THE_DRAWING) >= 1 and shown(page, OF_THE_WIDGET) == 0


def test_without_script_there_is_the_drawing(standing):
    for page in standing(java_script_enabled=False):
        assert page.locator(".attn-widget").count() == 0
        assert page.locator(DRAWING).is_visible()
        assert shown(page, OF_THE_DRAWING) >= 1 and shown(page, OF_THE_WIDGET) == 0
