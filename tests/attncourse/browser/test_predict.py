"""Predict in a real browser, without a kernel: committing, what is told then, its manners."""

import pytest
from tools.widget_pages import said

from attncourse.widgets import Predict

CHOICES = ["tiny", "healthy", "huge"]


def predict(answer=1, question="What reaches the first block?"):
    return Predict(question, CHOICES, answer, "The norm keeps its size.\n\nMeasure it.")


def example(text):
    """A question for the tests of what every widget does."""
    return Predict(text, [f"*{text}*", f"`{text}`", text], [0, 1], text)


def largest(text):
    return Predict(text, [text, f"`{text}` and more words than fit a line"], 0, text)


PLACES = {
    "legend > span.attn-paragraph",
    "label > span",
    "label.attn-wrong > span",
    "span > em",
    "span > code",
    "output.attn-live > em",
    "output.attn-live > code",
    "div.attn-explanation > p.attn-paragraph",
}
KEY = ("input[type=radio]", "Space")
DAMAGES = {
    "choices should be": {"choices": ["a"]},
    "choices should be a list": {"choices": None},
    "answers should be": {"answers": [3]},
    "answers should be a list": {"answers": []},
    "choice should be": {"choice": 1.5},
    "committed should be": {"committed": 1},
    "question should be": {"question": ["q"]},
    "explanation should be": {"explanation": None},
}


def marks(page):
    return [mark.strip() for mark in page.locator(".attn-mark").all_text_contents()]


def assert_untold(page):
    assert page.get_by_text("The norm keeps its size.").is_hidden()
    assert marks(page) == ["", "", ""]
    assert page.locator("label:is(.attn-right, .attn-wrong)").count() == 0
    assert page.get_by_role("button", name="Think again").is_hidden()
    assert page.get_by_role("button", name="Commit").is_visible()


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
    explained = page.get_by_role("group", name="Explanation").locator("p").all_inner_texts()
    assert explained == ["The norm keeps its size.", "Measure it."]
    assert [radio.is_disabled() for radio in page.get_by_role("radio").all()] == [True] * 3
    assert page.get_by_label(choice).is_checked()
    assert page.get_by_role("button", name="Commit").is_hidden()


@pytest.mark.parametrize(
    ("rights", "choice", "signs"),
    [
        ([1], "tiny", ["✗", "✓", ""]),
        ([0, 2], "huge", ["✓", "", "✓"]),
        ([0, 2], "healthy", ["✓", "✗", "✓"]),
    ],
)
def test_a_tap_commits_and_thinking_again_starts_over(show, rights, choice, signs):
    page = show(predict(rights), damage={"committed": True})  # without a choice: it starts over
    assert_untold(page)
    page.get_by_role("button", name="Commit").tap()
    assert said(page)  # that there is nothing to commit to yet
    assert_untold(page)
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
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Think again"
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "0"  # the first choice again
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Commit"


def test_the_question_names_the_group_and_looks_like_text(show):
    page = show(predict(question="What?\n\nAnd `why`?"))
    page.add_style_tag(content="legend {float: left; width: 100%; font-size: 30px}")  # as the theme
    group = page.get_by_role("group", name="What? And why?")
    assert group.get_by_role("radio").count() == 3
    legend = page.locator("legend")
    assert legend.evaluate("node => getComputedStyle(node).float") == "none"
    assert legend.evaluate("node => getComputedStyle(node).fontSize") == "16px"
    assert page.locator("legend .attn-paragraph").all_inner_texts() == ["What?", "And why?"]


MARKUP = {
    "plain": "plain",
    "a `b c` d": "a <code>b c</code> d",
    "*very* much": "<em>very</em> much",
    "`a*b*c` and *d*": "<code>a*b*c</code> and <em>d</em>",
    "2 * 3 * 4 = 24": "2 * 3 * 4 = 24",
    "one ` and one *": "one ` and one *",
    "``": "``",
    "a < b & `c > d`": "a &lt; b &amp; <code>c &gt; d</code>",
    "softmax(q·k / √d_k)": "softmax(q·k / √d_k)",
}


def test_code_and_emphasis_are_all_the_markup_there_is(show):
    every = "\n \n".join(MARKUP)
    page = show(Predict(every, list(MARKUP), 0, every))
    for place in ("legend .attn-paragraph", "label span", ".attn-explanation p"):
        written = page.locator(place).evaluate_all("nodes => nodes.map((node) => node.innerHTML)")
        assert written == list(MARKUP.values())
