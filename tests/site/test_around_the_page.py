"""What stands around the text, and what is wider than a phone: seen, framed, and not in the way."""

import pytest
from tools.browsing import open_page
from tools.lesson_runs import all_lessons, all_pages
from tools.site_builds import read

NOTHING_WIDE = {"book/L02_Embeddings_and_Positions"}  # its widgets have no map and no table


@pytest.fixture
def lesson(site_address):
    return f"{site_address}{all_lessons()[0]}.html"


def test_the_searchs_magnifier_stands_beside_what_is_typed(browser, lesson):
    with open_page(browser, lesson) as (page, _):
        page.keyboard.press("Control+k")
        field = page.locator("dialog input[type=search]")
        typed_from = field.evaluate(
            "f => f.getBoundingClientRect().left + parseFloat(getComputedStyle(f).paddingLeft)"
        )
        glass = page.locator("dialog .fa-magnifying-glass").bounding_box()
        assert glass["width"] > 5
        assert glass["x"] + glass["width"] <= typed_from


def test_each_button_of_the_header_is_framed_when_the_keyboard_reaches_it(browser, lesson):
    with open_page(browser, lesson) as (page, _):
        buttons = page.locator(".bd-header-article button:visible")
        reached = 0
        for _ in range(40):
            page.keyboard.press("Tab")
            style = page.evaluate("""() => {
                const focused = document.activeElement;
                if (!focused.closest(".bd-header-article")) return null;
                const {outlineStyle, outlineWidth} = getComputedStyle(focused);
                return [outlineStyle, outlineWidth];
            }""")
            if style is not None:
                reached += 1
                assert style == ["solid", "3px"]
        assert reached == buttons.count() > 3


@pytest.mark.parametrize("width", [360, 1280])
def test_the_logo_is_a_mark_beside_the_title(browser, lesson, width):
    with open_page(browser, lesson, width=width) as (page, _):
        if width == 360:
            page.locator(".primary-toggle").click()
        logo = page.locator(".logo__image:visible").bounding_box()
        title = page.locator(".logo__title:visible").bounding_box()
        assert 24 <= logo["width"] <= 64 and 24 <= logo["height"] <= 64
        assert logo["x"] + logo["width"] <= title["x"]


@pytest.mark.parametrize("name", all_lessons())
def test_what_a_widget_cuts_off_fades_at_the_right(browser, site_address, name):
    """Not at the left: there the names of its rows stay."""
    fades = """box => getComputedStyle(box).maskImage !== "none"
        && parseFloat(getComputedStyle(box).getPropertyValue("--fade-right")) > 0"""
    with open_page(browser, f"{site_address}{name}.html", width=360) as (page, _):
        for fold in page.locator("article details:has(.attn-scroll)").all():
            fold.evaluate("fold => { fold.open = true; }")
        boxes = page.locator(".attn-scroll").locator("visible=true").all()
        assert bool(boxes) == (name not in NOTHING_WIDE)
        for box in boxes:
            box.evaluate("box => { box.firstElementChild.style.minWidth = '60rem'; }")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            assert box.evaluate(fades)
            box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            assert not box.evaluate(fades)


def test_a_word_that_was_searched_for_is_found_whole(browser, site_address):
    with open_page(browser, f"{site_address}search.html?q=softmax", width=360) as (page, _):
        name = page.locator("#search-results a", has_text="l03.softmax_row")
        name.wait_for()
        assert (
            name.bounding_box()["height"]
            > 1.5 * name.locator(".highlighted").bounding_box()["height"]
        )
        assert name.locator(".highlighted").evaluate("word => word.getClientRects().length") == 1


@pytest.mark.parametrize("name", [*all_pages(), "search", "genindex"])
def test_every_page_has_what_its_skip_link_leads_to(site, name):
    page = read(site / f"{name}.html")
    assert page.select_one(f"main {page.select_one('#pst-skip-link a')['href']}") is not None


@pytest.mark.parametrize("width", [320, 720])
def test_the_index_is_no_wider_than_a_zoomed_page(browser, site_address, width):
    with open_page(browser, f"{site_address}genindex.html", width=width) as (page, _):
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_code_that_the_text_does_not_speak_of_is_a_quiet_line(browser, lesson):
    with open_page(browser, lesson, width=360) as (page, _):
        first = page.locator("article section section .tag_hide-input").first
        assert first.locator("pre").is_hidden()
        style = "(node, name) => getComputedStyle(node)[name]"
        fold = first.locator("details")
        assert fold.evaluate(style, "borderLeftWidth") == "0px"
        title = first.locator("summary p").locator("visible=true")
        text = page.locator("article section > p").last
        assert title.evaluate(style, "color") != text.evaluate(style, "color")
        first.locator("summary").click()
        assert first.locator("pre").is_visible()


def test_the_skip_link_leads_to_the_text_past_the_buttons_above_it(browser, lesson):
    with open_page(browser, lesson) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to main content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('article') !== null")
        assert page.locator("article h1").bounding_box()["y"] > 0


def test_a_fold_is_called_what_it_says(browser, lesson):
    with open_page(browser, lesson) as (page, _):
        folds = page.locator("article details.hide > summary")
        assert folds.count() > 0
        for fold in folds.all():
            assert fold.get_attribute("aria-label") is None
            assert fold.text_content().strip()


def test_nothing_lies_on_the_text_of_a_small_phone(browser, lesson):
    with open_page(browser, lesson, width=320) as (page, _):
        assert page.locator(".bd-header-article button:visible").count() > 3
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.evaluate("() => new Promise(requestAnimationFrame)")
        page.evaluate("scrollBy(0, -200)")  # the theme then offers its button
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert page.locator("#pst-back-to-top").is_hidden()


def test_where_nothing_hovers_the_copy_buttons_are_seen(browser, lesson):
    opacity = "button => getComputedStyle(button).opacity"
    for touch, seen in ((False, "0"), (True, "1")):
        with open_page(browser, lesson, touch=touch) as (page, _):
            assert page.locator("button.copybtn").first.evaluate(opacity) == seen


# How many copy buttons are seen, and which of them lie on code or its results.
LIE_ON_CODE = """() => {
  const isSeen = (node) => node.checkVisibility({visibilityProperty: true});
  const codes = [...document.querySelectorAll("article .cell pre")].filter(isSeen);
  const isOn = (button) => codes.some((code) => {
    const [one, other] = [button, code].map((node) => node.getBoundingClientRect());
    return one.bottom > other.top && one.top < other.bottom;
  });
  const seen = [...document.querySelectorAll("article button.copybtn")].filter(isSeen);
  return [seen.length, seen.filter(isOn).map((button) => button.dataset.clipboardTarget)];
}"""


@pytest.mark.parametrize("name", all_lessons())
def test_where_nothing_hovers_no_copy_button_lies_on_code(browser, site_address, name):
    with open_page(browser, f"{site_address}{name}.html", width=360, touch=True) as (page, _):
        seen, on_code = page.evaluate(LIE_ON_CODE)
        assert seen > 1
        assert on_code == []


def test_a_solution_is_opened_and_closed_wherever_its_title_is_pressed(browser, lesson):
    with open_page(browser, lesson, width=360) as (page, problems):
        page.locator("details.exercise").evaluate_all(
            "all => all.forEach((one) => one.open = true)"
        )
        for solution in page.locator(".solution").all():
            title = solution.locator(".admonition-title")
            box = title.bounding_box()
            inside = solution.locator("section")
            for share in (0.05, 0.3, 0.6, 0.98):
                was_open = inside.is_visible()
                title.click(position={"x": share * box["width"], "y": box["height"] / 2})
                assert inside.is_visible() is not was_open
        assert page.evaluate("location.hash") == ""
        assert problems == []
