"""Pages whose scripts don't run still say what each widget is about, and ask their questions.

There, and on paper, a drawing can stand in for a widget: one of both is shown, never two.
"""

import pytest
from course import widgets
from course.lengths import VIEW
from tools.lesson_runs import all_lessons, all_pages
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
DRAWING = ".tag_drawing-of-widget .drawing"
WIDGET = ".cell:has(+ .tag_drawing-of-widget) .attn-widget"
UNFOLD = "document.querySelectorAll('details').forEach((fold) => (fold.open = true))"


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
    assert light.first.is_visible() and dark.first.is_hidden()
    assert page.locator("article .math:visible > math").count() > 50
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


def shown_parts(page):
    """Return how many parts of captions are shown that tell of a drawing, and of its widget."""
    parts = (".of-drawing", ".of-widget")
    return [page.locator(f"{part} >> visible=true").count() for part in parts]


def test_a_drawing_stands_in_for_a_widget_without_script_and_on_paper(
    browser, bare, site, site_address
):
    names = [name for name in all_lessons() if read(site / f"{name}.html").select(DRAWING)]
    assert names
    page = browser.new_page()
    for name in names:
        page.goto(f"{site_address}{name}.html")
        page.evaluate(UNFOLD)
        page.locator(WIDGET).wait_for()
        figure = page.locator(".tag_drawing-of-widget figure")
        assert page.locator(DRAWING).is_hidden() and figure.locator("> button").is_hidden()
        assert figure.locator("figcaption").is_visible()
        assert shown_parts(page) == [0, page.locator(".of-widget").count()]
        page.emulate_media(media="print")
        assert page.locator(WIDGET).is_hidden() and page.locator(DRAWING).is_visible()
        of_drawing, of_widget = shown_parts(page)
        assert of_drawing >= 1 and of_widget == 0
        page.emulate_media(media="screen")
        bare.goto(f"{site_address}{name}.html")
        bare.evaluate(UNFOLD)
        assert bare.locator(".attn-widget").count() == 0 and bare.locator(DRAWING).is_visible()
        assert shown_parts(bare) == [of_drawing, 0]
    page.close()


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
    assert page.locator("p").last.inner_text().endswith("Run the notebook.")
    listing = {"kind": "lines", "titles": [""], "labels": [["if a < b:", "    `a` = *b"]]}
    show(page, ANSWER | listing)
    assert page.locator("pre").inner_text() == "  1  if a < b:\n  2      `a` = *b\n"


def test_texts_stay_text_and_with_scripts_none_of_it_is_shown(browser, bare):
    asked = {"choices": [ATTACK] * 2, "answers": [0], "explanation": f"`{ATTACK}`"}
    lines = {"kind": "lines", "titles": [ATTACK], "labels": [[ATTACK]], "summary": ATTACK}
    with browser.new_context() as context:
        for page in (bare, context.new_page()):
            for state in ({"question": ATTACK} | asked, lines, lines | {"kind": "order"}):
                show(page, state)
                assert page.locator("img, main script").count() == 0
                assert page.title() == "Page"
                words = page.locator("main").inner_text()
                assert ATTACK in words if page is bare else words == ""
