"""Labs with two panes are wider than the text, and the list of contents yields to them."""

import pytest
from tools.browsing import open_page

pytestmark = pytest.mark.thorough

LESSON = "book/L04_Multi_Head_Attention.html"
LAB = ".course-widget:has(.attn-wide)"
BOX = "node => node.getBoundingClientRect().toJSON()"


@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_a_lab_is_as_wide_as_the_page_and_moves_no_text(browser, site_address, width):
    with open_page(browser, site_address + LESSON, width=width) as (page, problems):
        lab, text = (page.locator(one).first.evaluate(BOX) for one in (LAB, "article > section"))
        assert 960 < lab["width"] <= 1080 and text["width"] < 700
        assert lab["left"] == pytest.approx(text["left"], abs=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        left, right = (pane.bounding_box() for pane in page.locator(f"{LAB} >> nth=0").locator(
            ".attn-panes > *").all())  # fmt: skip
        assert left["x"] + left["width"] < right["x"]
        assert problems == []


def test_on_a_small_screen_a_lab_is_as_wide_as_the_text(browser, site_address):
    for width in (390, 1200):
        with open_page(browser, site_address + LESSON, width=width) as (page, _):
            lab, text = (
                page.locator(one).first.evaluate(BOX) for one in (LAB, "article > section")
            )
            assert lab["width"] == pytest.approx(text["width"], abs=1)


def test_the_list_of_contents_is_folded_beside_a_lab_and_opens_for_the_keyboard(
    browser, site_address
):
    with open_page(browser, site_address + LESSON, width=1440) as (page, _):
        contents = page.locator(".bd-sidebar-secondary")
        height = "node => node.getBoundingClientRect().height"
        opened = contents.evaluate(height)
        page.locator(LAB).first.scroll_into_view_if_needed()
        page.wait_for_function(f"({height})(document.querySelector('.bd-sidebar-secondary')) < 50")
        contents.get_by_role("link").first.focus()
        page.keyboard.press("Tab")  # focus as the keyboard gives it
        page.wait_for_function(
            f"({height})(document.querySelector('.bd-sidebar-secondary')) > {opened} - 2"
        )
