"""Answer in a real browser, without a kernel: each kind, and verdicts like the check's."""

import math
import random
import re
from itertools import combinations, permutations, product

import pytest
import torch
from playwright.sync_api import expect
from tools.widget_pages import press, said, target_sizes

from attncourse.lessons import lessons
from attncourse.widgets import Answer
from attndoctor.support.check_result import MARKUP, CheckResult

ON_PAGES = {
    f"{lesson}.{name}": getattr(module, name)
    for lesson, module in lessons().items()
    for name in module.__all__
    if getattr(module, name).page is not None
}


def verdicts(answers, right=None):
    """A verdict for each answer that says which it is."""
    return [CheckResult(answer == right, f"It is {answer}.") for answer in answers]


def numbers():
    """Two rows, known apart: of the first 1, 2 and 3, 4; of the second 5."""
    kinds = product(["right", "known", "near", "other"], ["right", "near", "other"])
    known = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0]])]
    parts = [("Row *a*", ["x", "y"]), ("", ["z"])]
    told = verdicts(kinds, ("right", "right"))
    return Answer("numbers", parts, told, known=known, tolerance=0.01, near=0.1)


def choice():
    parts = [("One", ["a", "b"]), ("*Two*", ["c", "d", "e"])]
    return Answer("choice", parts, verdicts(product(range(2), range(3)), (0, 2)))


def lines(pick=1):
    code = [f"    x = {i}" for i in range(4)]
    return Answer("lines", [("", code)], verdicts(combinations(range(4), pick)), pick=pick)


def order():
    steps = ["merge", "project", "split"]
    return Answer("order", [("", steps)], verdicts(permutations(range(3))))


def example(text):
    labels = [f"*{text}*", f"`{text}`", text]
    told = [CheckResult(i == 1, " ".join(labels)) for i in range(3)]
    return Answer("choice", [(text, labels)], told)


def largest(text):
    titled = [(text, [text, f"{text} 2"]), (f"`{text}`", [text])]
    return Answer("numbers", titled, verdicts([text, "other"]), known=[torch.zeros(1, 3)])


PLACES = {
    "fieldset.attn-answers > legend", "label > span", "span > em", "span > code",
    "form > output.attn-live", "output.attn-live > em", "output.attn-live > code",
}  # fmt: skip
KEY = ("input[type=radio]", "Space")
DAMAGES = {
    "kind should be": {"kind": "essay"}, "labels should be": {"labels": [[]]},
    "titles should be 1 strings": {"titles": ["a", "b"]}, "pick should be": {"pick": 0},
    "near should be": {"near": None}, "groups should be": {"groups": [[1]]},
    "known should be 2 numbers": {"groups": [[1, 2]]}, "verdicts should be": {"verdicts": [1]},
    "table should be places from 0 to 0": lambda s, _: s["verdicts"].pop(),
    "given should be": {"given": [7]}, "checked should be": {"checked": 1},
}  # fmt: skip


def check(page):
    press(page, "Check")
    return said(page)


def fill(page, *texts):
    for field, text in zip(page.get_by_role("textbox").all(), texts, strict=True):
        field.fill(text)


# How an answer is given at once, by a function of JavaScript.
GIVE = {
    "numbers": """(texts) => document.querySelectorAll(".attn-widget input").forEach((field, i) => {
      field.value = texts[i];
      field.dispatchEvent(new InputEvent("input", {bubbles: true}));
    })""",
    "choice": """(picked) => document.querySelectorAll(".attn-widget fieldset").forEach((part, i) =>
      part.querySelectorAll("input")[picked[i]].click())""",
    "lines": """(picked) => document.querySelectorAll(".attn-widget input").forEach((line, i) =>
      line.checked === picked.includes(i) || line.click())""",
}


def told_of(page, kind, answers) -> list[str]:
    """Give each answer, and return what is said after "Check"."""
    return page.evaluate(
        f"""(answers) => answers.map((answer) => {{
          ({GIVE[kind]})(answer);
          document.querySelector("[type=submit]").click();
          return document.querySelector("output").textContent;
        }})""",
        answers,
    )


def as_shown(verdict: CheckResult) -> str:
    return MARKUP.sub(lambda match: match[1] or match[2], repr(verdict))


def in_relation(right, rng):
    """Return numbers that remarks are made of: times, parts, units, signs, orders, off by one."""
    times = rng.choice([2, 3, 8, 64, 100, 1000, 1024, 1024**2, 1.024, 1.024**3, -1])
    shuffled = right[torch.tensor(rng.sample(range(len(right)), len(right)))]
    return times * right, right / times, shuffled, 1 / right.where(right != 0, 7), right + 1


def exercises(*kinds):
    """Return the parameters of a test that is asked of each exercise of some kinds."""
    names = [name for name, exercise in ON_PAGES.items() if exercise.page.kind in kinds]
    return pytest.mark.parametrize("name", names)


@exercises("numbers")
def test_typed_numbers_get_the_verdict_of_the_check(show, name):
    exercise, form, rng = ON_PAGES[name], ON_PAGES[name].page, random.Random(name)
    right = torch.as_tensor(form.right).detach().double()
    wrong = [torch.as_tensor(mistake.answer).double() for mistake in exercise.mistakes]
    known = [right, *(numbers for numbers in wrong if numbers.shape == right.shape)]
    near = 6 * form.tolerance if form.near is None else form.near
    offs = [0, 0.9 * form.tolerance, 1.1 * form.tolerance, 0.9 * near, 1.1 * near, 1.0, -3.0]
    answers, wanted = [], []
    for _ in range(80):
        one, other = (row.flatten() for row in rng.choices(known, k=2))
        first = right.shape[-1]
        start = rng.choice([one, torch.cat([one[:first], other[first:]])])
        start = rng.choice([start, *in_relation(right.flatten(), rng)])
        off = rng.choice(offs)
        answer = [number + off * rng.choice([0, 1, -1]) for number in start.tolist()]
        answers.append([*map(repr, answer)])
        numbers = torch.tensor(answer, dtype=torch.float64)
        wanted.append(as_shown(exercise(numbers.view_as(right))))
    assert told_of(show(exercise.on_page()), "numbers", answers) == wanted
    assert len(set(wanted)) > 2


@exercises("choice", "lines")
def test_choices_and_lines_get_the_verdict_of_the_check(show, name):
    exercise, widget = ON_PAGES[name], ON_PAGES[name].on_page()
    mixes = product(*(range(len(labels)) for labels in widget.labels))
    picks = combinations(range(len(widget.labels[0])), widget.pick)
    given = [*(picks if widget.kind == "lines" else mixes)]
    wanted = [as_shown(exercise(answer)) for answer in exercise.page.answers(())]
    assert told_of(show(widget), widget.kind, given) == wanted


def test_orders_have_the_places_that_itertools_gives_them(show):
    placed = "orders => orders.map(attnModules['answer/places.js'].placeOfOrder)"
    assert show(order()).evaluate(placed, [*permutations(range(5))]) == [*range(120)]


TYPED = {
    ".5": 0.5, "1,5/2,5": 0.6, " 3 / -7 ": -3 / 7, "1234,567": 1234.567, "1 000": 1000,
    "1\u2009024": 1024, "1/2/3": 1 / 6, "1\u20132": -1, "27 × 16 + 1·2": 434, "-2^2": -4,
    "2**-1": 0.5, "2^3^2": 512, "2e\u20133": 0.002, "-ln(72/168)": -math.log(72 / 168),
    "sqrt(2) - 3*(1 - e^-1)": math.sqrt(2) - 3 * (1 - math.exp(-1)), "cos(0)+sin(pi/2)": 2,
    "LOG(2)/exp(1)": math.log(2) / math.e, "\u200f٠١٢٣٤\u066b٥٦٧٨٩": 1234.56789,
    "۰۱۲۳۴/۵۶۷۸۹\u00a0": 1234 / 56789, "０１２３４．５６７８９": 1234.56789, "2，5": 2.5,
    **{f"{minus}4": -4 for minus in "-\u2010\u2013\u2212\ufe63\uff0d"},
}  # fmt: skip
NO_NUMBERS = [
    "1.2.3", "1,234.5", "3/", "0/0", "1e999", "NaN", "Infinity", "0x10", "-", "\u20145", "1 1/2",
    "1'000", "1_000", "½", "2²", "٣x", "1 00", "2(3)", "(2", "2)", "ln 2", "ln", "constructor",
]  # fmt: skip
DOUBTFUL = {"0.25": ["25%", "٢٥٪"], "4096 or 4.096": ["4,096", "1/ 1,500 ", "１，０００"]}


def test_a_number_may_be_typed_in_many_ways_and_other_texts_are_none(show):
    page = show(numbers())
    calculated = "(texts) => texts.map(attnModules['shared/calculation.js'].calculated)"
    assert page.evaluate(calculated, [*TYPED]) == pytest.approx([*TYPED.values()], abs=1e-12)
    refused = [*((text, "") for text in NO_NUMBERS)]
    refused += [(text, advice) for advice, texts in DOUBTFUL.items() for text in texts]
    told = told_of(page, "numbers", [[text, "2", "5"] for text, _ in refused])
    for (text, advice), words in zip(refused, told, strict=True):
        assert f"“{text}”" in words and advice in words, text  # what may mean two numbers is none


def test_what_is_missing_or_no_number_is_said_of_each_field_and_enter_hands_in(show):
    page = show(numbers(), width=360)
    fields, shown = page.get_by_role("textbox"), page.get_by_role("status")
    long = "<b>" * 30_000
    for texts, named, invalid in (
        (("", "", ""), [], [0, 1, 2]),
        (("1", "2 apples", "1/0"), ["“2 apples”", "“1/0”"], [1, 2]),
        (("1", "", "5"), ["y"], [1]),
        ((long, "2", "0." + "3" * 58), [f"“{long[:61]}”", "60"], [0]),  # cut, and still too long
    ):
        fill(page, *texts)
        answered = check(page)
        assert answered and all(name in answered for name in named)
        for i, field in enumerate(fields.all()):
            assert (field.get_attribute("aria-invalid") == "true") == (i in invalid)
            assert bool(page.locator("label .attn-note").nth(i).inner_text()) == (i in invalid)
        expect(fields.nth(invalid[0])).to_be_focused()
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    fill(page, "1", "2", "5")
    enter = """(field, options) => field.dispatchEvent(new KeyboardEvent(
        "keydown", {key: "Enter", bubbles: true, cancelable: true, ...options}))"""
    for composing in ({"isComposing": True}, {"keyCode": 229}):  # the second in Safari
        assert fields.first.evaluate(enter, composing) and said(page) == ""
    fields.first.press("Enter")
    assert "('right', 'right')" in said(page)
    assert "attn-passed" in shown.get_attribute("class")
    fields.first.press("End")
    page.keyboard.type("0")  # another answer takes the verdict away
    assert said(page) == ""
    assert "attn-passed" not in shown.get_attribute("class")
    rows = [("Row *a*", ["x", "`y`"]), ("Row b", ["x", "z"])]
    page = show(Answer("numbers", rows, verdicts("01"), known=[torch.zeros(1, 4)]))
    fill(page, "", "", "", "0")
    assert check(page).endswith(": x (Row a), y and x (Row b).")  # one label, told apart


def test_what_is_still_to_pick_is_named(show):
    page = show(choice())
    assert "One and Two" in check(page)
    page.get_by_role("group", name="One").get_by_label("a").check()
    assert "Two" in check(page) and "One" not in said(page)
    expect(page.get_by_role("group", name="Two").get_by_label("c")).to_be_focused()
    page = show(lines(pick=2))
    assert "2" in check(page)
    for line, words in ((3, "1."), (2, "(2, 3)."), (0, "3.")):
        page.locator("label").nth(line).click()
        assert said(page) == ""
        assert check(page).endswith(words)


def test_steps_are_moved_by_keys_and_by_touch(show):
    page = show(order())
    steps = page.locator("li span")
    down = page.get_by_role("button", name="Move down: merge")
    down.press("Enter")
    assert steps.all_inner_texts() == ["project", "merge", "split"]
    assert re.findall(r"merge|\d", said(page)) == ["merge", "2", "3"]
    page.keyboard.press("Space")  # the button has the focus still
    page.keyboard.press("Space")  # and there it ends
    assert steps.all_inner_texts() == ["project", "split", "merge"]
    assert down.get_attribute("aria-disabled") == "true"
    assert re.findall(r"merge|\d", said(page)) == ["merge", "3", "3"]
    page.get_by_role("button", name="Move up: split").tap()
    assert steps.all_inner_texts() == ["split", "project", "merge"]
    assert "(2, 1, 0)" in check(page)
    page.get_by_role("button", name="Move up: project").tap()
    assert "(1, 2, 0)" in check(page)


NOT_GIVEN = {
    numbers: [["1", "2"], ["1", "2", 5], ["1", "2", "5" * 62]],
    choice: [[0, 3], [0, 0.5], {"length": 2}],
    lines: [["1"], [4], [2, 1]],
    order: [[0, 1], [0, 1, 1]],
}


@pytest.mark.parametrize("make", NOT_GIVEN)
def test_each_kind_starts_over_and_refuses_what_no_reader_can_have_given(show, make):
    damages = [{"given": given, "checked": True} for given in NOT_GIVEN[make]]
    page = show(*(make() for _ in range(len(damages) + 1)), damages=damages, width=360)
    clear = page.get_by_role("button", name="Clear")
    page.locator(".attn-widget").wait_for()  # the last one, which is not damaged
    expect(page.get_by_role("alert")).to_contain_text(["given should be"] * len(damages))
    written = """form => [form.innerText,
      ...[...form.querySelectorAll("input")].map(({checked, value}) => `${checked} ${value}`)]"""
    before = page.locator("form").evaluate(written)
    assert said(page) == "" and clear.is_hidden()
    control = page.locator(".attn-widget :is(input, li [aria-disabled=false])").first
    if make is numbers:
        control.fill("1")
    else:
        control.click()
    assert check(page) != ""
    assert min(target_sizes(page)) >= 24
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    clear.click()
    assert page.locator("form").evaluate(written) == before
    assert page.evaluate("document.activeElement.closest('fieldset') !== null")


def test_what_is_short_stands_side_by_side_on_a_phone_and_long_code_wraps(show):
    def rows_of(page, what):
        tops = [one.bounding_box()["y"] for one in page.locator(what).all()]
        return [tops.count(top) for top in sorted({*tops})]

    rows = [("Token 0", ["to 0", "to 1", "to 2"]), ("Token 1", ["to 0", "to 1", "to 2"])]
    matrix = Answer("numbers", rows, verdicts("01"), known=[torch.zeros(1, 6)])
    assert rows_of(show(matrix, width=320), "[type=text]") == [3, 3]
    for length, found in ((10, [2]), (20, [1, 1])):
        short = Answer("choice", [("", ["a", length * "b"])], verdicts("01"))
        assert rows_of(show(short), "label") == found
    code = ["def f(x):", "    q, k, v = (t.view(B, T, h, d_k).transpose(1, 2) for t in (q, k, v))"]
    page = show(Answer("lines", [("", code)], verdicts("01")), width=360)
    scroll = page.locator(".attn-listing .attn-scroll")
    assert scroll.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert page.locator(".attn-listing code").all_inner_texts() == code  # indented as it was
