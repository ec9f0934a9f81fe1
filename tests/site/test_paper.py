"""What paper shows of a page that is read, and what a reader did there; see also test_pages.py."""

from tools.browsing import open_page
from tools.lesson_runs import all_lessons

HEAD_LAB = next(name for name in all_lessons() if "/L08" in name)


def test_what_shows_nothing_on_paper_takes_no_room_there(browser, site_address):
    """A model that nobody has trained has no maps, and presets can't be pressed."""
    with open_page(browser, f"{site_address}{HEAD_LAB}.html") as (page, _):
        blank = page.locator(".attn-head-lab .attn-blank").first
        repeat = page.locator(".attn-head-lab .attn-repeat").first
        assert blank.is_visible() and repeat.is_visible()
        page.emulate_media(media="print")
        assert blank.is_hidden() and repeat.is_hidden()
        assert page.locator(".attn-head-lab .attn-first").first.is_visible()
        empty = page.locator("article .attn-live:empty")
        assert empty.count() > 0 and not any(line.is_visible() for line in empty.all())


def test_printing_shows_the_drawings_for_wide_windows_also_those_not_loaded_yet(
    browser, site_address
):
    """From a phone, and from a page in the dark."""
    address = f"{site_address}{all_lessons()[2]}.html"
    with open_page(browser, address, scheme="dark", width=390) as (page, _):
        loaded = """() => [...document.querySelectorAll("picture:has(source) > img.only-light")]
            .map((image) => image.naturalWidth > 0 && image.currentSrc === image.src)"""
        assert len(page.evaluate(loaded)) > 3 and not any(page.evaluate(loaded))
        page.evaluate("""() => addEventListener("beforeprint", () => {
            window.paper = getComputedStyle(document.body).backgroundColor;
        })""")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("paper") == "rgb(255, 255, 255)"
        page.wait_for_function(f"({loaded})().every(Boolean)")  # the paper waits, the page not
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.wait_for_function(f"({loaded})().every((isWide) => !isWide)")
        assert page.locator("img.only-light").first.is_hidden()  # the dark ones are back


def test_a_handout_has_what_was_answered_and_opened_and_each_prediction_with_its_answer(
    browser, site_address
):
    """Who prints a lesson gives its exercises away, not the solutions that weren't opened."""
    with open_page(browser, f"{site_address}{all_lessons()[0]}.html") as (page, _):
        boxes = page.locator(".attn-predict")
        boxes.first.get_by_role("radio").first.check()
        boxes.first.get_by_role("button", name="Commit").click()
        answer = page.locator(".attn-answer:has([type=text])").first
        for field in answer.get_by_role("textbox").all():
            field.fill("7")
        answer.get_by_role("button", name="Check").click()
        page.locator("details.exercise > summary").first.click()
        solutions = page.locator(".solution")
        solutions.first.locator(".admonition-title").click()
        before = [box.inner_text() for box in boxes.all()]
        assert sum("Right" in text for text in before) == 1
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert boxes.first.locator(":checked").is_visible()
        for box in boxes.all():
            assert box.locator(".attn-explanation").is_visible()
            assert box.inner_text().count("Right") == 1  # on paper or in the verdict
        opened, *closed = [solution.is_visible() for solution in solutions.all()]
        assert opened and closed and not any(closed)
        assert solutions.first.locator("section").is_visible()
        assert answer.get_by_role("textbox").first.is_visible()
        assert answer.get_by_role("status").inner_text().startswith("Not yet.")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
        assert [box.inner_text() for box in boxes.all()] == before
