"""Predict in a real browser, without a kernel: committing, what is told then, its manners."""

import pytest
from tools.widget_pages import press, said, style

from attncourse.widgets import Predict

CHOICES = ["tiny", "healthy", "huge"]


def predict(answer=1):
    question = "What reaches the first block?"
    return Predict(question, CHOICES, answer, "The norm keeps its size.\n\nMeasure it.")


def example(text):
    return Predict(text, [f"*{text}*", f"`{text}`", text], [0, 1], text)


def largest(text):
    return Predict(text, [text, f"`{text}` and more words than fit a line"], 0, text)


PLACES = {
    "legend > span.attn-paragraph", "label > span", "label.attn-wrong > span", "span > em",
    "span > code", "output.attn-live > em", "output.attn-live > code",
    "div.attn-explanation > p.attn-paragraph",
}  # fmt: skip
KEY = ("input[type=radio]", "Space")
DAMAGES = {
    "choices should be": {"choices": ["a"]},
    "answers should be": {"answers": [3]},
    "choice should be": {"choice": 1.5},
    "committed should be": {"committed": 1},
    "question should be": {"question": ["q"]},
}


def marks(page):
    return [mark.strip() for mark in page.locator(".attn-mark").all_text_contents()]


def assert_untold(page):
    assert page.get_by_text("The norm keeps its size.").is_hidden()
    assert marks(page) == ["", "", ""]
    assert page.locator("label:is(.attn-right, .attn-wrong)").count() == 0
    assert page.get_by_role("button", name="Think again").is_hidden()


def assert_told(page, choice, signs):
    """Fail unless a committed choice is locked, and all are marked; a wrong one names the right."""
    own = CHOICES.index(choice)
    named = [sign == "✓" and signs[own] == "✗" for sign in signs]
    assert [text in said(page) for text in CHOICES] == named
    assert [mark[:1] for mark in marks(page)] == signs
    assert ["your answer" in mark for mark in marks(page)] == [i == own for i in range(3)]
    looks = [label.get_attribute("class") or "" for label in page.locator("label").all()]
    colors = {"✓": "attn-right", "✗": "attn-wrong", "": ""}
    assert looks == [colors[sign] for sign in signs]
    assert page.get_by_role("group", name="Explanation").locator("p").count() == 2
    assert page.get_by_role("radio", disabled=True).count() == 3
    assert page.get_by_role("button", name="Commit").is_hidden()


@pytest.mark.parametrize(
    ("rights", "choice", "signs"),
    [([0, 2], "huge", ["✓", "", "✓"]), ([0, 2], "healthy", ["✓", "✗", "✓"])],
)
def test_a_tap_commits_and_thinking_again_starts_over(show, rights, choice, signs):
    page = show(predict(rights), damages=[{"committed": True}])  # without a choice: it starts over
    assert_untold(page)
    press(page, "Commit")
    assert said(page)  # that there is nothing to commit to yet
    assert page.get_by_role("radio").first.evaluate("radio => radio === document.activeElement")
    page.get_by_label(choice).tap()
    assert said(page) == ""
    assert_untold(page)
    page.get_by_role("button", name="Commit").tap()
    assert_told(page, choice, signs)
    page.get_by_role("button", name="Think again").tap()
    assert page.get_by_role("radio", checked=True).count() == 0
    assert_untold(page)


def test_the_keyboard_is_enough_and_the_focus_is_never_lost(show):
    page = show(predict())
    focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.value"
    for key in ("Tab", "Space", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert_told(page, "healthy", ["", "✓", ""])
    assert page.evaluate(focused) == "Explanation"
    for key in ("Tab", "Enter"):  # to "Think again"
        page.keyboard.press(key)
    assert_untold(page)
    assert page.evaluate(focused) == "0"  # the first choice again


MARKUP = {
    "a `b c` and *very* much": "a <code>b c</code> and <em>very</em> much",
    "`a*b*c`": "<code>a*b*c</code>",
    "2 * 3 * 4 = 24, one ` and one *": "2 * 3 * 4 = 24, one ` and one *",
    "a < b & `c > d`": "a &lt; b &amp; <code>c &gt; d</code>",
}


def test_texts_have_code_and_emphasis_and_the_question_names_the_group(show):
    every = "\n \n".join(MARKUP)
    page = show(Predict(every, list(MARKUP), 0, every))
    for place in ("legend .attn-paragraph", "label span", ".attn-explanation p"):
        written = page.locator(place).evaluate_all("nodes => nodes.map((node) => node.innerHTML)")
        assert written == list(MARKUP.values())
    assert page.get_by_role("group", name="a b c and very much").count() == 1
    page.add_style_tag(content="legend {float: left; width: 100%; font-size: 30px}")  # as the theme
    legend = page.locator("legend")
    assert (style(legend, "float"), style(legend, "fontSize")) == ("none", "16px")
