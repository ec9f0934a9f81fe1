"""Pages whose scripts don't run still say what each widget is about, and ask their questions."""

import pytest
from course import widgets
from course.lengths import VIEW
from tools.lesson_runs import all_pages
from tools.site_builds import read

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
def bare(browser):
    """Return a page on which no script runs."""
    with browser.new_context(java_script_enabled=False) as context:
        yield context.new_page()


def show(page, state):
    """Have a page show what stands in for a widget."""
    told = widgets.fallback(state)
    page.set_content(f"<!doctype html><title>Page</title><main>{told}</main>")


@pytest.mark.parametrize("name", all_pages())
def test_every_widget_of_a_page_is_told_in_words(site, name):
    page = read(site / f"{name}.html").article
    texts = [" ".join(words.text.split()) for words in page.select("noscript")]
    assert len(texts) == len(page.select(VIEW))
    for text in texts:  # each says what it is
        summary = text.partition("it needs JavaScript. ")[2]
        assert "The answer" in text or len(summary) > 30, (
            f"a widget's trait summary should say in a sentence what it shows, not {summary!r}"
        )


def test_the_page_is_whole_in_its_colors_and_has_no_dead_button(bare, site_address):
    page = bare
    page.goto(f"{site_address}book/L03_The_Attention_Mechanism.html")  # it has many figures
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


def test_what_is_asked_is_written_out_and_its_answer_is_folded(bare):
    page = bare
    show(page, QUESTION)
    assert page.locator("code").inner_text() == "q * k"
    assert page.locator("em").inner_text() == "do"
    assert page.locator(".predict > p").last.inner_text() == "Think."
    assert page.locator(".predict > ol > li").all_inner_texts() == ["this", "that"]
    explanation = page.locator("details p").last
    assert explanation.is_hidden()
    page.locator("summary").click()
    assert explanation.is_visible() and explanation.inner_text() == "B. Because 2 * 3 < 7."

    show(page, ANSWER)
    assert page.locator("em").inner_text() == "A"
    assert page.locator("li").all_inner_texts() == ["x < y", "both", "neither"]
    assert page.locator("li code").inner_text() == "x < y"
    words = "Here an answer is checked; it needs JavaScript. Run the notebook."
    assert page.locator("p").last.inner_text() == words
    listing = {"kind": "lines", "titles": [""], "labels": [["if a < b:", "    `a` = *b"]]}
    show(page, ANSWER | listing)
    assert page.locator("pre").inner_text() == "  1  if a < b:\n  2      `a` = *b\n"


ATTACKS = [
    {"summary": ATTACK},
    {"question": ATTACK, "choices": [ATTACK] * 2, "answers": [0], "explanation": f"`{ATTACK}`"},
    {"kind": "order", "titles": [ATTACK], "labels": [[ATTACK]], "summary": ATTACK},
    {"kind": "lines", "titles": [""], "labels": [[ATTACK]], "summary": ATTACK},
]


def test_texts_stay_text_and_with_scripts_none_of_it_is_shown(browser, bare):
    with browser.new_context() as context:
        for page in (bare, context.new_page()):
            for state in ATTACKS:
                show(page, state)
                assert page.locator("img, main script").count() == 0
                assert page.title() == "Page"
                words = page.locator("main").inner_text()
                assert ATTACK in words if page is bare else words == ""
