"""Pages whose scripts don't run still say what each widget is about, and ask their questions."""

import pytest
from course import widgets
from course.page_lengths import VIEW
from tools import site_builds
from tools.lesson_runs import all_pages

ATTACK = "</noscript><img src=x onerror=\"document.title = 'run'\"><script>alert(1)</script>"
QUESTION = {
    "question": "What does `q * k` *do*?\n\nThink.",
    "choices": ["this", "that"],
    "answers": [1],
    "explanation": "Because 2 * 3 < 7.",
}

ANSWER = {
    "kind": "choice",
    "titles": ["Log *A*", ""],
    "labels": [["`x < y`", "both"], ["neither"]],
    "summary": "Run the notebook.",
}


@pytest.fixture
def read(browser):
    """Return a function that opens a page, or an address, with or without scripts."""
    contexts = []

    def open_page(source, *, scripts=False):
        context = browser.new_context(java_script_enabled=scripts)
        contexts.append(context)
        page = context.new_page()
        if source.startswith("http"):
            page.goto(source)
        else:
            page.set_content(f"<!doctype html><title>Page</title><main>{source}</main>")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", all_pages())
def test_every_widget_of_a_page_is_told_in_words(site, name):
    page = site_builds.read(site / f"{name}.html").article
    texts = [" ".join(words.text.split()) for words in page.select("noscript")]
    assert len(texts) == len(page.select(VIEW))
    for text in texts:  # each says what it is
        summary = text.partition("it needs JavaScript. ")[2]
        assert "The answer" in text or len(summary) > 30, (
            f"a widget's trait summary should say in a sentence what it shows, not {summary!r}"
        )


def test_the_page_is_whole_in_its_colors_and_has_no_dead_button(read, site_address):
    page = read(f"{site_address}book/L03_The_Attention_Mechanism.html")  # it has many figures
    light, dark = (page.locator(f"article figure img.only-{theme}") for theme in ("light", "dark"))
    assert light.count() == dark.count() > 5
    assert light.first.is_visible()
    assert not any(drawing.is_visible() for drawing in dark.all())
    boxes = page.locator("article .math:visible")
    assert boxes.count() == page.locator("article .math:visible > math").count() > 50
    color = "node => getComputedStyle(node).color"
    text = page.locator("article p").first.evaluate(color)
    assert page.locator("article p a:not(.headerlink)").first.evaluate(color) != text
    code = page.locator(".highlight pre").first
    assert code.locator(".kn, .k").first.evaluate(color) != code.evaluate(color)
    bar = page.locator(".bd-header-article")  # it hides what scrolls below it
    assert bar.evaluate("bar => getComputedStyle(bar).backgroundColor") == "rgb(255, 255, 255)"
    dead = "button:not(.dropdown-download-buttons > button)"  # that opens when it is hovered
    assert not any(button.is_visible() for button in bar.locator(dead).all())
    bar.locator(".dropdown-download-buttons").hover()
    shown = [item.inner_text().strip() for item in bar.locator(".dropdown-item:visible").all()]
    assert shown == [".ipynb", ".md"]


def test_a_question_is_written_out_and_its_answer_is_folded(read):
    page = read(widgets.fallback(QUESTION))
    assert page.locator("code").inner_text() == "q * k"
    assert page.locator("em").inner_text() == "do"
    assert page.locator(".predict > p").last.inner_text() == "Think."
    assert page.locator(".predict > ol > li").all_inner_texts() == ["this", "that"]
    explanation = page.locator("details p").last
    assert explanation.is_hidden()
    page.locator("summary").click()
    assert explanation.is_visible() and explanation.inner_text() == "B. Because 2 * 3 < 7."


def test_what_an_exercise_offers_is_written_out(read):
    page = read(widgets.fallback(ANSWER))
    assert page.locator("em").inner_text() == "A"
    assert page.locator("li").all_inner_texts() == ["x < y", "both", "neither"]
    assert page.locator("li code").inner_text() == "x < y"
    words = "Here an answer is checked; it needs JavaScript. Run the notebook."
    assert page.locator("p").last.inner_text() == words


def test_a_listing_is_written_out_with_its_numbers(read):
    listing = {"kind": "lines", "titles": [""], "labels": [["if a < b:", "    `a` = *b"]]}
    page = read(widgets.fallback(ANSWER | listing))
    assert page.locator("pre").inner_text() == "  1  if a < b:\n  2      `a` = *b\n"


def test_with_scripts_none_of_it_is_shown(read):
    page = read(widgets.fallback(QUESTION), scripts=True)
    assert page.locator("main").inner_text() == ""


@pytest.mark.parametrize("scripts", [False, True])
@pytest.mark.parametrize(
    "state",
    [
        {"summary": ATTACK},
        {"question": ATTACK, "choices": [ATTACK] * 2, "answers": [0], "explanation": f"`{ATTACK}`"},
        {"kind": "order", "titles": [ATTACK], "labels": [[ATTACK]], "summary": ATTACK},
        {"kind": "lines", "titles": [""], "labels": [[ATTACK]], "summary": ATTACK},
    ],
)
def test_texts_stay_text(read, state, scripts):
    page = read(widgets.fallback(state), scripts=scripts)
    assert page.locator("img, main script").count() == 0
    assert page.title() == "Page"
    if not scripts:
        assert ATTACK in page.locator("main").inner_text()
