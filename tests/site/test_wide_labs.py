"""Labs with two panes are wider than the text, and the list of contents yields to them."""

import pytest
from tools.browsing import open_page

pytestmark = pytest.mark.thorough

LESSON = "book/L04_Multi_Head_Attention.html"
LAB = ".course-widget:has(.attn-wide)"
BOX = "node => node.getBoundingClientRect().toJSON()"
AS_WIDE = """(places) => {
  const [lab, text] = places.map((one) => document.querySelector(one).clientWidth);
  return Math.abs(lab - text) <= 1;
}"""
DRAWN = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
HEIGHT = "node => node.getBoundingClientRect().height"


def test_a_lab_is_as_wide_as_the_page_moves_no_text_and_on_a_small_screen_is_no_wider(
    browser, site_address
):
    with open_page(browser, site_address + LESSON) as (page, problems):
        for width in (1280, 1440, 1920, 390, 1200):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(DRAWN)
            lab, text = (
                page.locator(one).first.evaluate(BOX) for one in (LAB, "article > section")
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if width < 1280:
                page.wait_for_function(AS_WIDE, arg=[LAB, "article > section"])
                continue
            assert 960 < lab["width"] <= 1080 and text["width"] < 700
            assert lab["left"] == pytest.approx(text["left"], abs=1)
            left, right = page.locator(LAB).first.locator(".attn-panes > *").all()
            left, right = left.bounding_box(), right.bounding_box()
            assert left["x"] + left["width"] < right["x"]
        assert problems == []


def test_the_list_of_contents_is_folded_beside_a_lab_and_opens_for_the_keyboard(
    browser, site_address
):
    with open_page(browser, site_address + LESSON, width=1440) as (page, _):
        contents = page.locator(".bd-sidebar-secondary")
        opened = contents.evaluate(HEIGHT)
        page.locator(LAB).first.scroll_into_view_if_needed()
        page.wait_for_function(f"({HEIGHT})(document.querySelector('.bd-sidebar-secondary')) < 50")
        contents.get_by_role("link").first.focus()
        page.keyboard.press("Tab")  # focus as the keyboard gives it
        page.wait_for_function(
            f"({HEIGHT})(document.querySelector('.bd-sidebar-secondary')) > {opened} - 2"
        )
