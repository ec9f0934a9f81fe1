"""What stands around the text, and what is wider than a phone: seen, framed, and not in the way."""

import pytest
from tools.browsing import open_page
from tools.lesson_runs import all_lessons

STYLE = "(node, name) => getComputedStyle(node)[name]"


@pytest.fixture
def lesson(site_address):
    return f"{site_address}{all_lessons()[0]}.html"


FRAME = """() => {
    const focused = document.activeElement;
    if (!focused.closest(".bd-header-article")) return null;
    const {outlineStyle, outlineWidth} = getComputedStyle(focused);
    return [outlineStyle, outlineWidth];
}"""


def test_the_keyboard_skips_to_the_text_or_reaches_each_button_in_a_frame(browser, lesson):
    with open_page(browser, lesson) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to main content"
        frames = []
        for _ in range(40):
            page.keyboard.press("Tab")
            frames.append(page.evaluate(FRAME))
        reached = [frame for frame in frames if frame is not None]
        assert len(reached) == page.locator(".bd-header-article button:visible").count() > 3
        assert all(frame == ["solid", "3px"] for frame in reached)
        page.locator("#pst-skip-link a").press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('article') !== null")
        assert page.locator("article h1").bounding_box()["y"] > 0


def assert_mark_beside_title(page):
    """Fail unless the logo is a small picture to the left of the title."""
    logo = page.locator(".logo__image:visible").bounding_box()
    title = page.locator(".logo__title:visible").bounding_box()
    assert 24 <= logo["width"] <= 64 and 24 <= logo["height"] <= 64
    assert logo["x"] + logo["width"] <= title["x"]


def test_on_a_desktop_parts_stand_beside_each_other_and_say_what_they_are(browser, lesson):
    with open_page(browser, lesson) as (page, problems):
        assert_mark_beside_title(page)
        folds = page.locator("article details.hide > summary")
        assert folds.count() > 0
        for fold in folds.all():
            assert fold.get_attribute("aria-label") is None and fold.text_content().strip()
        page.keyboard.press("Control+k")
        field = page.locator("dialog input[type=search]")
        typed_from = field.evaluate(
            "f => f.getBoundingClientRect().left + parseFloat(getComputedStyle(f).paddingLeft)"
        )
        glass = page.locator("dialog .fa-magnifying-glass").bounding_box()
        assert glass["width"] > 5
        assert glass["x"] + glass["width"] <= typed_from
        assert problems == []


def test_each_listing_gets_one_button_that_copies_it_and_is_seen_where_it_is_pointed_at(
    browser, lesson
):
    with open_page(browser, lesson) as (page, problems):
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
    with open_page(browser, lesson, touch=True) as (page, _):  # where nothing hovers
        assert page.locator("button.copybtn").first.evaluate(STYLE, "opacity") == "1"


def test_on_a_phone_code_is_a_quiet_line_and_a_solution_opens_wherever_it_is_pressed(
    browser, lesson
):
    with open_page(browser, lesson, width=360) as (page, problems):
        first = page.locator("article section section .tag_hide-input").first
        assert first.locator("pre").is_hidden()
        assert first.locator("details").evaluate(STYLE, "borderLeftWidth") == "0px"
        title = first.locator("summary p").locator("visible=true")
        text = page.locator("article section > p").last
        assert title.evaluate(STYLE, "color") != text.evaluate(STYLE, "color")
        first.locator("summary").click()
        assert first.locator("pre").is_visible()
        exercises = page.locator("details.exercise")
        exercises.evaluate_all("all => all.forEach((one) => one.open = true)")
        for solution in page.locator(".solution").all():
            title = solution.locator(".admonition-title")
            box = title.bounding_box()
            inside = solution.locator("section")
            for share in (0.05, 0.3, 0.6, 0.98):
                was_open = inside.is_visible()
                title.click(position={"x": share * box["width"], "y": box["height"] / 2})
                assert inside.is_visible() is not was_open
        assert page.evaluate("location.hash") == ""
        page.locator(".primary-toggle").click()
        assert_mark_beside_title(page)
        assert problems == []


def test_nothing_lies_on_the_text_of_a_small_phone(browser, lesson):
    with open_page(browser, lesson, width=320) as (page, _):
        assert page.locator(".bd-header-article button:visible").count() > 3
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.evaluate("() => new Promise(requestAnimationFrame)")
        page.evaluate("scrollBy(0, -200)")  # the theme then offers its button
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert page.locator("#pst-back-to-top").is_hidden()


def test_words_that_were_searched_for_are_marked_whole(browser, lesson, site_address):
    with open_page(browser, f"{site_address}search.html?q=softmax", width=360) as (page, problems):
        name = page.locator("#search-results a", has_text="l03.softmax_row")
        name.wait_for()
        marked = name.locator(".highlighted")
        assert name.bounding_box()["height"] > 1.5 * marked.bounding_box()["height"]
        assert marked.evaluate("word => word.getClientRects().length") == 1
        assert problems == []
    with open_page(browser, f"{lesson}?highlight=token") as (page, _):
        page.locator("article .highlighted").first.wait_for(state="attached")
        assert "highlight" not in page.url


def test_the_index_is_no_wider_than_a_zoomed_page(browser, site_address):
    with open_page(browser, f"{site_address}genindex.html") as (page, _):
        for width in (720, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width
