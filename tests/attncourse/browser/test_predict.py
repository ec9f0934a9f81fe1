"""Predict in a real browser, without a kernel: committing, what is told then, its manners."""

import pytest

from attncourse.widgets import Predict

CHOICES = ["tiny", "healthy", "huge"]

LOOK = """(({padding, borderWidth, background, fontSize, lineHeight, boxShadow}) =>
    ({padding, borderWidth, background, fontSize, lineHeight, boxShadow}))(
    getComputedStyle(document.querySelector("NODE")))"""


def predict(answer=1, *, question="What reaches the first block?", choices=CHOICES, committed=None):
    widget = Predict(question, choices, answer, "The norm keeps its size.\n\nMeasure it.")
    if committed is not None:
        widget.choice, widget.committed = committed, True
    return widget


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


def marks(page):
    return [mark.strip() for mark in page.locator(".attn-mark").all_text_contents()]


def test_nothing_is_told_before_the_reader_commits(show):
    page = show(predict())
    page.get_by_label("huge").check()
    assert page.get_by_text("The norm keeps its size.").is_hidden()
    assert marks(page) == ["", "", ""]
    assert page.locator("output").inner_text() == ""
    assert page.get_by_role("button", name="Think again").is_hidden()


@pytest.mark.parametrize(
    ("answer", "choice", "verdict", "words"),
    [
        (1, "healthy", "Right.", ["", "✓ your answer, right", ""]),
        (1, "tiny", "Not this one. Right: healthy", ["✗ your answer", "✓ right answer", ""]),
        ([0, 2], "huge", "Right.", ["✓ right answer", "", "✓ your answer, right"]),
        (
            [0, 2],
            "healthy",
            "Not this one. Right: tiny · huge",
            ["✓ right answer", "✗ your answer", "✓ right answer"],
        ),
    ],
)
def test_committing_locks_the_choice_and_tells_in_words(show, answer, choice, verdict, words):
    page = show(predict(answer))
    page.get_by_label(choice).check()
    page.get_by_role("button", name="Commit").click()
    assert page.get_by_role("status").inner_text() == verdict
    assert marks(page) == words
    assert page.get_by_role("group", name="Explanation").locator("p").all_inner_texts() == [
        "The norm keeps its size.",
        "Measure it.",
    ]
    assert [radio.is_disabled() for radio in page.get_by_role("radio").all()] == [True] * 3
    assert page.get_by_label(choice).is_checked()
    assert page.get_by_role("button", name="Commit").is_hidden()


def test_thinking_again_starts_over(show):
    page = show(predict(committed=0))
    page.get_by_role("button", name="Think again").click()
    assert page.get_by_role("radio", checked=True).count() == 0
    assert page.get_by_text("The norm keeps its size.").is_hidden()
    assert marks(page) == ["", "", ""]
    page.get_by_label("healthy").check()
    page.get_by_role("button", name="Commit").click()
    assert page.get_by_role("status").inner_text() == "Right."


def test_the_keyboard_is_enough_and_the_focus_is_never_lost(show):
    page = show(predict())
    focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.value"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches(':focus-visible')")
    assert page.evaluate("document.activeElement.hasAttribute('data-lm-suppress-shortcuts')")
    assert page.get_by_role("radio", checked=True).count() == 0
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert page.get_by_role("radio", name="healthy").is_checked()
    page.keyboard.press("Enter")
    assert page.get_by_role("status").inner_text() == "Right."
    assert page.evaluate(focused) == "Explanation"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Think again"
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "0"  # the first choice again
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Commit"


def test_committing_to_nothing_asks_for_a_choice(show):
    page = show(predict())
    page.get_by_role("button", name="Commit").click()
    assert page.get_by_role("status").inner_text() == "Pick an answer first; a guess will do."
    assert page.get_by_text("The norm keeps its size.").is_hidden()
    assert page.get_by_role("radio").first.evaluate("radio => radio === document.activeElement")
    page.get_by_label("tiny").check()
    assert page.get_by_role("status").inner_text() == ""


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


@pytest.mark.parametrize("width", [360, 1000])
def test_a_long_word_stays_inside(show, width):
    page = show(largest("Donaudampfschifffahrtsgesellschaftskapitän" * 2), width=width)
    page.get_by_role("radio").last.check()
    page.get_by_role("button", name="Commit").click()
    inside = "box => [...box.querySelectorAll('*')].every((e) => e.scrollWidth <= box.clientWidth)"
    assert page.locator(".attn-widget").evaluate(inside)


def test_several_questions_on_a_page_do_not_disturb_each_other(show):
    page = show(predict(), predict(answer=2))
    one, two = page.locator(".attn-widget").all()
    one.get_by_label("tiny").check()
    two.get_by_label("huge").check()
    assert one.get_by_label("tiny").is_checked()
    two.get_by_role("button", name="Commit").click()
    assert two.get_by_role("status").inner_text() == "Right."
    assert one.get_by_role("button", name="Commit").is_visible()
    assert page.locator("[id]").count() == 0


def test_views_of_one_widget_stay_together(show):
    widget = predict()
    one, two = show(widget, widget).locator(".attn-widget").all()
    one.get_by_label("tiny").check()
    assert two.get_by_label("tiny").is_checked()
    two.get_by_role("button", name="Commit").click()
    assert one.get_by_role("status").inner_text() == "Not this one. Right: healthy"


DAMAGES = {
    'choices should be a list of texts, at least 2, but is ["a"]': lambda s, _: s.update(
        choices=["a"]
    ),
    "choices should be a list of texts, at least 2, but is undefined": lambda s, _: s.pop(
        "choices"
    ),
    "answers should be a list of choices from 0 to 2, at least 1, but is [3]": lambda s, _: (
        s.update(answers=[3])
    ),
    "answers should be a list of choices from 0 to 2, at least 1, but is []": lambda s, _: s.update(
        answers=[]
    ),
    "choice should be one of 0 to 2, but is 1.5": lambda s, _: s.update(choice=1.5),
    "committed should be true or false, but is 1": lambda s, _: s.update(committed=1),
    'question should be text, but is ["q"]': lambda s, _: s.update(question=["q"]),
    "explanation should be text, but is undefined": lambda s, _: s.pop("explanation"),
}


def test_a_commitment_without_a_choice_starts_over(show):
    page = show(predict(), damage=lambda state, _: state.update(committed=True))
    assert page.get_by_role("button", name="Commit").is_visible()
    assert page.get_by_text("The norm keeps its size.").is_hidden()
    page.get_by_role("button", name="Commit").click()
    assert page.get_by_role("status").inner_text().startswith("Pick an answer first")
    page.get_by_role("radio").first.check()
    assert page.get_by_role("button", name="Commit").is_visible()
