"""A figure can be shown on the whole screen, by a press or by keyboard, and nothing moves."""

import pytest
from tools.browsing import open_page

LARGE = "document.fullscreenElement?.id === 'fig-wide'"
SMALL = "document.fullscreenElement === null"
PLACES = """() => [...document.querySelectorAll("article :is(p, img, figcaption)")]
    .map((node) => Object.values(node.getBoundingClientRect().toJSON()).join())"""


@pytest.fixture
def address(small):
    """Return a page with a small figure, opened from its folder."""
    return (small / "figures.html").as_uri()


COLOR = "node => getComputedStyle(node).backgroundColor"
FRAME = "button => [getComputedStyle(button).opacity, getComputedStyle(button).outlineStyle]"


def test_a_press_shows_it_large_in_its_theme_and_leads_back_and_so_does_a_button(browser, address):
    with open_page(browser, address, scheme="dark") as (page, problems):
        figure = page.locator("#fig-wide")
        drawing, button = figure.locator(".drawing"), figure.locator("> button")
        image = drawing.locator("img.only-dark")
        before = page.evaluate(PLACES)
        drawing.click()
        page.wait_for_function(LARGE)
        box = image.bounding_box()
        assert box["width"] > 1000 and box["height"] > 500
        assert image.evaluate("image => getComputedStyle(image).objectFit") == "contain"
        assert figure.locator("figcaption").is_visible()
        assert figure.evaluate(COLOR) == page.locator("body").evaluate(COLOR)
        drawing.click()
        page.wait_for_function(SMALL)
        assert page.evaluate(PLACES) == before

        page.mouse.move(1, 1)
        assert button.evaluate(FRAME)[0] == "0"
        figure.locator("figcaption").hover()
        assert button.evaluate(FRAME)[0] == "1"
        page.emulate_media(media="print")
        assert button.is_hidden()
        page.emulate_media(media="screen")
        assert button.get_attribute("aria-label") == "Full screen: Figure 1"
        page.locator("article h1").click()  # from there the keyboard goes on
        for _ in range(40):
            page.keyboard.press("Tab")
            if button.evaluate("button => button === document.activeElement"):
                break
        assert button.evaluate(FRAME) == ["1", "solid"]
        page.keyboard.press("Enter")
        page.wait_for_function(LARGE)
        figure.locator("> button[aria-label='Leave the full screen: Figure 1']").wait_for()
        page.keyboard.press("Enter")
        page.wait_for_function(SMALL)
        page.keyboard.press("Enter")
        page.wait_for_function(LARGE)
        page.evaluate("document.exitFullscreen()")  # a browser with a window does so at Escape
        page.wait_for_function(SMALL)
        figure.locator("> button[aria-label='Full screen: Figure 1']").wait_for()
        with_button = page.evaluate(PLACES)
        button.evaluate("button => button.remove()")
        assert page.evaluate(PLACES) == with_button
        assert problems == []


def test_where_a_part_of_a_page_cant_be_shown_so_nothing_is_offered(browser, address):
    page = browser.new_page()
    page.add_init_script("""Object.defineProperty(document, "fullscreenEnabled", {value: false})""")
    page.goto(address)
    assert page.locator("#fig-wide").count() == 1
    assert page.locator("#fig-wide > button").count() == 0
    page.close()


def test_only_pages_with_drawings_load_it(small):
    for name, loads in (("figures", True), ("plain", False)):
        text = (small / f"{name}.html").read_text(encoding="utf-8")
        assert ("large-figures.js" in text) is loads
