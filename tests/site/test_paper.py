"""A page on paper: in light colors, with nothing to press, and nothing cut."""

import pytest
from tools.browsing import open_page
from tools.lesson_runs import all_lessons

A4, LETTER = 718, 740  # pixels between margins of a centimeter
WHITE = "rgb(255, 255, 255)"
PAGES = ["book/index", *all_lessons(), "book/museum"]

# What is wrong with a page as it is printed. Buttons that say what is chosen are read, too.
FAULTS = """() => {
  const faults = [];
  const isSeen = (node) => node.checkVisibility() && node.getBoundingClientRect().height > 0;
  const name = (node) => `<${node.localName} class="${node.className}"> ${node.textContent.trim()}`;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(isSeen);
  const BUTTONS = "button:not([aria-pressed], [aria-checked]), details:not([open])";
  for (const node of all(`${BUTTONS}, .bd-sidebar, .bd-header-article`))
    faults.push(`to press: ${name(node)}`);
  for (const node of all("article :is(figure, .attn-widget, table, .cell_input)"))
    if (getComputedStyle(node).breakInside !== "avoid") faults.push(`may break: ${name(node)}`);
  for (const node of all("article *:not(span.math, mjx-container *, .attn-unseen)")) {
    const {right} = node.getBoundingClientRect();
    const isTooSmall = node.clientWidth > 0 && node.scrollWidth > node.clientWidth + 1;
    const cuts = getComputedStyle(node).overflowX !== "visible";
    if (right > innerWidth + 1 || (cuts && isTooSmall)) faults.push(`is cut: ${name(node)}`);
  }
  for (const image of all("article img"))
    if (image.matches(".only-dark")) faults.push(`dark: ${image.src}`);
  return [...new Set(faults.map((fault) => fault.slice(0, 150)))];
}"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_read_in_the_dark_is_printed_whole_and_in_light_colors(browser, site_address, name):
    with open_page(browser, f"{site_address}{name}.html", scheme="dark") as (page, problems):
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == WHITE
        for width in (A4, LETTER):
            page.set_viewport_size({"width": width, "height": 1000})
            assert page.evaluate(FAULTS) == []
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert problems == []


def test_printing_shows_figures_that_were_not_loaded_yet(browser, site_address):
    with open_page(browser, f"{site_address}{PAGES[0]}.html", scheme="dark") as (page, _):
        light = page.locator(".bd-article img.only-light")
        loaded = "images => images.map((image) => image.naturalWidth > 0)"
        assert not any(light.evaluate_all(loaded))
        page.evaluate("""() => addEventListener("beforeprint", () => {
            window.paper = getComputedStyle(document.body).backgroundColor;
        })""")
        page.pdf()
        assert page.evaluate("paper") == WHITE
        assert all(light.evaluate_all(loaded))
        assert light.first.is_hidden()  # the reader has the dark ones back


def test_a_page_printed_from_a_phone_shows_the_drawings_for_wide_windows(browser, site_address):
    with open_page(browser, f"{site_address}{all_lessons()[1]}.html", width=390) as (page, _):
        shown = """() => [...document.querySelectorAll("picture:has(source) > img.only-light")]
            .map((image) => image.currentSrc === image.src)"""
        assert len(page.evaluate(shown)) > 3 and not any(page.evaluate(shown))
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.wait_for_function(f"({shown})().every((isWide) => isWide)")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.wait_for_function(f"({shown})().every((isWide) => !isWide)")


def test_a_solution_is_printed_if_it_was_opened(browser, site_address):
    """Who prints a lesson as a handout gives its exercises away, not their solutions."""
    with open_page(browser, f"{site_address}{all_lessons()[0]}.html") as (page, _):
        solutions = page.locator(".solution")
        solutions.first.locator(".admonition-title").click()
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        opened, *closed = [solution.is_visible() for solution in solutions.all()]
        assert opened and closed and not any(closed)
        assert solutions.first.locator("section").is_visible()
        covered = page.locator(".course-cover figure")
        assert covered.count() > 0 and all(figure.is_visible() for figure in covered.all())


def test_what_a_reader_answered_is_printed(browser, site_address):
    with open_page(browser, f"{site_address}{all_lessons()[0]}.html") as (page, _):
        question = page.locator(".attn-predict").first
        question.get_by_role("radio").first.check()
        question.get_by_role("button", name="Commit").click()
        answer = page.locator(".attn-answer:has([type=text])").first
        for field in answer.get_by_role("textbox").all():
            field.fill("7")
        answer.get_by_role("button", name="Check").click()
        page.emulate_media(media="print")
        assert question.locator(":checked").is_visible()
        assert question.locator(".attn-explanation").is_visible()
        assert question.get_by_role("button").all_inner_texts() == []
        assert answer.get_by_role("textbox").first.is_visible()
        assert answer.get_by_role("status").inner_text().startswith("Not yet.")
