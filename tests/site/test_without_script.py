"""Pages whose scripts don't run still say what each widget is about, and ask their questions."""

import pytest
import without_script
from tools.lesson_runs import all_pages

ATTACK = "</noscript><img src=x onerror=\"document.title = 'run'\"><script>alert(1)</script>"
QUESTION = {
    "question": "What does `q * k` *do*?\n\nThink.",
    "choices": ["this", "that"],
    "answers": [1],
    "explanation": "Because 2 * 3 < 7.",
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
def test_every_widget_of_a_page_is_told_in_words(read, site_address, name):
    page = read(f"{site_address}{name}.html")
    views = page.locator('script[type="application/vnd.jupyter.widget-view+json"]').count()
    texts = [words.inner_text() for words in page.locator("article noscript").all()]
    assert len(texts) == views
    for text in texts:  # each says what it is
        summary = text.partition("it needs JavaScript. ")[2]
        assert "The answer" in text or len(summary) > 30, (
            f"a widget's trait summary should say in a sentence what it shows, not {summary!r}"
        )
    assert page.locator(".course-widget").count() == 0


def test_a_question_is_written_out_and_its_answer_is_folded(read):
    page = read(without_script.fallback(QUESTION))
    assert page.locator("code").inner_text() == "q * k"
    assert page.locator("em").inner_text() == "do"
    assert page.locator(".predict > p").last.inner_text() == "Think."
    assert page.locator(".predict > ul > li").all_inner_texts() == ["this", "that"]
    explanation = page.locator("details p").last
    assert explanation.is_hidden()
    page.locator("summary").click()
    assert explanation.is_visible() and explanation.inner_text() == "Because 2 * 3 < 7."
    assert page.locator("details li").all_inner_texts() == ["that"]


def test_with_scripts_none_of_it_is_shown(read):
    page = read(without_script.fallback(QUESTION), scripts=True)
    assert page.locator("main").inner_text() == ""


@pytest.mark.parametrize("scripts", [False, True])
@pytest.mark.parametrize(
    "state",
    [
        {"summary": ATTACK},
        {"question": ATTACK, "choices": [ATTACK] * 2, "answers": [0], "explanation": f"`{ATTACK}`"},
    ],
)
def test_texts_stay_text(read, state, scripts):
    page = read(without_script.fallback(state), scripts=scripts)
    assert page.locator("img, main script").count() == 0
    assert page.title() == "Page"
    if not scripts:
        assert ATTACK in page.locator("main").inner_text()
