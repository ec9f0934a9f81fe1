"""Labs with two panes are wider than the text, and the list of contents yields to them."""

import pytest
from tools.browsing import open_page

pytestmark = pytest.mark.thorough

LESSON = "book/L04_Multi_Head_Attention.html"
LAB = ".course-widget:has(.attn-wide)"
AS_WIDE = """(places) => {
  const [lab, text] = places.map((one) => document.querySelector(one).clientWidth);
  return Math.abs(lab - text) <= 1;
}"""
DRAWN = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
HEIGHT = "node => node.getBoundingClientRect().height"


def test_a_lab_is_as_wide_as_the_page_and_the_list_of_contents_is_folded_beside_it(
    browser, site_address
):
    with open_page(browser, site_address + LESSON) as (page, problems):
        lab = page.locator(LAB).first
        for width in (1280, 1920, 390, 1200):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(DRAWN)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if width < 1280:
                page.wait_for_function(AS_WIDE, arg=[LAB, "article > section"])
                continue
            box, text = lab.bounding_box(), page.locator("article > section").bounding_box()
            assert 960 < box["width"] <= 1080 and text["width"] < 700
            assert box["x"] == pytest.approx(text["x"], abs=1)
            left, right = (pane.bounding_box() for pane in lab.locator(".attn-panes > *").all())
            assert left["x"] + left["width"] < right["x"]
        page.set_viewport_size({"width": 1440, "height": 900})
        page.evaluate("scrollTo(0, 0)")
        page.evaluate(DRAWN)
        contents = page.locator(".bd-sidebar-secondary")
        opened = contents.evaluate(HEIGHT)
        lab.scroll_into_view_if_needed()
        height = f"({HEIGHT})(document.querySelector('.bd-sidebar-secondary'))"
        page.wait_for_function(f"{height} < 50")
        contents.get_by_role("link").first.focus()
        page.keyboard.press("Tab")  # focus as the keyboard gives it
        page.wait_for_function(f"{height} > {opened} - 2")
        assert problems == []
