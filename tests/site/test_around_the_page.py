"""What stands around the text, and what is wider than a phone: seen, framed, and not in the way."""

import pytest
from tools.browsing import AT_REST, open_page
from tools.lesson_runs import all_lessons, all_pages

STYLE = "(node, name) => getComputedStyle(node)[name]"
DRAWN = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


@pytest.fixture
def lesson(site_address):
    return f"{site_address}{all_lessons()[0]}.html"


FRAME = """() => {
    const focused = document.activeElement;
    if (!focused.closest(".bd-header-article")) return null;
    const {outlineStyle, outlineWidth} = getComputedStyle(focused);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
}"""


def test_on_a_desktop_keys_skip_to_the_text_or_reach_each_button_and_listings_can_be_copied(
    browser, lesson
):
    with open_page(browser, lesson) as (page, problems):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to main content"
        frames = []
        for _ in range(40):
            page.keyboard.press("Tab")
            frames.append(page.evaluate(FRAME))
        buttons = page.locator(".bd-header-article button:visible").count()
        assert buttons > 3 and frames.count(True) == buttons and False not in frames
        page.locator(".theme-switch-button:visible").press("Enter")
        assert page.locator(".theme-switch-button:focus-visible").count() == 1
        names = page.locator(".toggle-button").evaluate_all("all => all.map((b) => b.ariaLabel)")
        assert len(set(names)) == len(names) > 1
        page.locator("#pst-skip-link a").press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('article') !== null")
        assert page.locator("article h1").bounding_box()["y"] > 0

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


@pytest.mark.everyday
def test_a_search_shows_lessons_first_each_with_a_passage_and_words_are_marked_whole(
    browser, lesson, site_address
):
    with open_page(browser, f"{lesson}?highlight=token", width=360) as (page, problems):
        page.locator("article .highlighted").first.wait_for(state="attached")
        assert "highlight" not in page.url
        page.goto(site_address)  # which leads to its first page
        page.wait_for_url(f"{site_address}{all_pages()[0]}.html")
        page.evaluate(AT_REST)
        page.keyboard.press("Control+k")
        page.keyboard.type("softmax row")
        page.keyboard.press("Enter")
        page.get_by_text("Search finished").wait_for()
        page.wait_for_function("document.querySelectorAll('#search-results .context').length > 8")
        results = page.locator("#search-results li")
        links = results.locator("a").evaluate_all("all => all.map((a) => a.pathname)")
        pages = [link.split("/")[-1] for link in links]
        is_lesson, is_api = ([name.startswith(one) for name in pages] for one in ("L", "api"))
        assert sum(is_lesson) > 3 and sum(is_api) > 1
        assert is_lesson == sorted(is_lesson, reverse=True)
        assert is_api == sorted(is_api)
        excerpts = results.locator(".context").all_inner_texts()
        both = ["softmax" in text.lower() and "row" in text.lower() for text in excerpts]
        assert sum(both[:10]) > 4
        for excerpt in excerpts:
            assert "softmax" in excerpt.lower() or "row" in excerpt.lower()
            assert "on this page" not in excerpt.lower()
        name = results.locator("a", has_text="l03.softmax_row")
        marked = name.locator(".highlighted").first
        assert name.bounding_box()["height"] > 1.5 * marked.bounding_box()["height"]
        assert marked.evaluate("word => word.getClientRects().length") == 1
        page.set_viewport_size({"width": 320, "height": 900})
        page.goto(f"{site_address}genindex.html")
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        assert problems == []


LAB = ".course-widget:has(.attn-wide)"
AS_WIDE = """(places) => {
  const [lab, text] = places.map((one) => document.querySelector(one).clientWidth);
  return Math.abs(lab - text) <= 1;
}"""
HEIGHT = "node => node.getBoundingClientRect().height"


def test_a_lab_is_as_wide_as_the_page_and_the_list_of_contents_is_folded_beside_it(
    browser, site_address
):
    with open_page(browser, f"{site_address}{all_lessons()[3]}.html") as (page, problems):
        lab = page.locator(LAB).first
        for width in (1280, 390, 1200):
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
