"""What stands around the text, and what is wider than a phone: seen, framed, and not in the way."""

import pytest
from tools.browsing import open_page
from tools.lesson_runs import all_lessons

STYLE = "(node, name) => getComputedStyle(node)[name]"
DRAWN = "() => new Promise(requestAnimationFrame)"


@pytest.fixture
def lesson(site_address):
    return f"{site_address}{all_lessons()[0]}.html"


FRAME = """() => {
    const focused = document.activeElement;
    if (!focused.closest(".bd-header-article")) return null;
    const {outlineStyle, outlineWidth} = getComputedStyle(focused);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
}"""


def test_the_keyboard_skips_to_the_text_or_reaches_each_button_in_a_frame(browser, lesson):
    with open_page(browser, lesson) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to main content"
        frames = []
        for _ in range(40):
            page.keyboard.press("Tab")
            frames.append(page.evaluate(FRAME))
        buttons = page.locator(".bd-header-article button:visible").count()
        assert buttons > 3 and frames.count(True) == buttons and False not in frames
        page.locator("#pst-skip-link a").press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('article') !== null")
        assert page.locator("article h1").bounding_box()["y"] > 0


def test_on_a_desktop_parts_stand_beside_each_other_and_each_listing_can_be_copied(browser, lesson):
    with open_page(browser, lesson) as (page, problems):
        logo = page.locator(".logo__image:visible").bounding_box()
        title = page.locator(".logo__title:visible").bounding_box()
        assert 24 <= logo["width"] <= 64 and 24 <= logo["height"] <= 64
        assert logo["x"] + logo["width"] <= title["x"]
        listings = page.locator("div.highlight pre")
        assert page.locator("button.copybtn").count() == listings.count() > 3
        seen = page.locator("div.highlight:has(pre:visible)").first
        assert seen.locator("button.copybtn").evaluate(STYLE, "opacity") == "0"
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        seen.hover()
        seen.locator("button.copybtn").click()
        page.locator("button.copybtn.success").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.split() == seen.locator("pre").text_content().split()
        assert problems == []


def test_on_a_phone_code_is_a_line_a_solution_opens_and_nothing_lies_on_the_text(browser, lesson):
    with open_page(browser, lesson, width=320, touch=True) as (page, problems):
        assert page.locator("button.copybtn").first.evaluate(STYLE, "opacity") == "1"
        first = page.locator("article section section .tag_hide-input").first
        assert first.locator("pre").is_hidden()
        first.locator("summary").click()
        assert first.locator("pre").is_visible()
        exercises = page.locator("details.exercise")
        exercises.evaluate_all("all => all.forEach((one) => one.open = true)")
        solution = page.locator(".solution").first
        title, inside = solution.locator(".admonition-title"), solution.locator("section")
        box = title.bounding_box()
        for share in (0.05, 0.6, 0.98):  # wherever it is pressed
            was_open = inside.is_visible()
            title.click(position={"x": share * box["width"], "y": box["height"] / 2})
            assert inside.is_visible() is not was_open
        assert page.evaluate("location.hash") == ""
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.evaluate(DRAWN)
        page.evaluate("scrollBy(0, -200)")  # the theme then offers its button
        page.evaluate(DRAWN)
        assert page.locator("#pst-back-to-top").is_hidden()
        page.locator(".primary-toggle").click()
        assert page.locator(".logo__image:visible").is_visible()
        assert problems == []


def test_words_that_were_searched_for_are_marked_whole(browser, lesson, site_address):
    with open_page(browser, f"{lesson}?highlight=token", width=360) as (page, problems):
        page.locator("article .highlighted").first.wait_for(state="attached")
        assert "highlight" not in page.url
        page.goto(f"{site_address}search.html?q=softmax")
        name = page.locator("#search-results a", has_text="l03.softmax_row")
        name.wait_for()
        marked = name.locator(".highlighted")
        assert name.bounding_box()["height"] > 1.5 * marked.bounding_box()["height"]
        assert marked.evaluate("word => word.getClientRects().length") == 1
        page.set_viewport_size({"width": 320, "height": 900})
        page.goto(f"{site_address}genindex.html")
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        assert problems == []
