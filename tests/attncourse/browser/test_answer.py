"""Answer in a real browser, without a kernel: each kind, and verdicts like the check's."""

import itertools
import json
import math
import random
import re

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
STEPS = ["merge", "project", "split"]


def verdict(passed, words=""):
    return CheckResult(passed, f"{'Yes' if passed else 'No'}: {words}.")


def numbers():
    """Two rows, known apart: of the first 1, 2 and 3, 4; of the second 5."""
    words = ("right", "known", "close", "other")
    mixes = itertools.product(words, ("right", "close", "other"))
    known = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0]])]
    return Answer(
        "numbers",
        [("Row *a*", ["x", "y"]), ("", ["z"])],
        [verdict(mix == ("right", "right"), " ".join(mix)) for mix in mixes],
        known=known,
        tolerance=0.01,
        near=0.1,
    )


def choice():
    mixes = itertools.product("abc", "abc")
    verdicts = [verdict(mix == ("a", "c"), " ".join(mix)) for mix in mixes]
    return Answer("choice", [("One", list("abc")), ("Two", list("abc"))], verdicts)


def lines(pick=1):
    code = ["def f(x):", "    y = x", "    y = x  # again", "    return y"]
    picks = itertools.combinations(range(4), pick)
    verdicts = [verdict(picked[0] == 1, str(picked)) for picked in picks]
    return Answer("lines", [("", code)], verdicts, pick=pick)


def order():
    orders = itertools.permutations(STEPS)
    verdicts = [verdict(found[0] == "project", " ".join(found)) for found in orders]
    return Answer("order", [("", STEPS)], verdicts)


KINDS = [numbers, choice, lines, order]


def example(text):
    """An exercise for the tests of what every widget does."""
    labels = [f"*{text}*", f"`{text}`", text]
    return Answer(
        "choice", [(text, labels)], [CheckResult(i == 1, " ".join(labels)) for i in range(3)]
    )


def largest(text):
    titled = [(text, [text, f"{text} 2"]), (f"`{text}`", [text])]
    verdicts = [CheckResult(i == 0, text) for i in range(3)]
    known = [torch.tensor([[1.0, 2.0, 3.0]])]
    return Answer("numbers", titled, verdicts, known=known, tolerance=0.1, near=0.2)


PLACES = {
    "fieldset.attn-answers > legend",
    "label > span",
    "span > em",
    "span > code",
    "form > output.attn-live",
    "output.attn-live > em",
    "output.attn-live > code",
}
KEY = ("input[type=radio]", "Space")
DAMAGES = {
    "kind should be": {"kind": "essay"},
    "labels should be": {"labels": [[]]},
    "titles should be 1 strings": {"titles": ["a", "b"]},
    "pick should be": {"pick": 0},
    "tolerance should be": {"tolerance": "no"},
    "near should be": {"near": None},
    "groups should be": {"groups": [[1]]},
    "known should be 2 numbers": {"groups": [[1, 2]]},
    "verdicts should be": {"verdicts": [1]},
    "table should be places from 0 to 0": lambda s, _: s["verdicts"].pop(),
    "table should be 3 numbers": {"table": bytes(2)},
    "given should be": {"given": [7]},
    "checked should be": {"checked": 1},
}


def check(page):
    press(page, "Check")
    return said(page)


def fill(page, *texts):
    for field, text in zip(page.get_by_role("textbox").all(), texts, strict=True):
        field.fill(text)


# --- the verdict is the check's -------------------------------------------------------------------

# How an answer of each kind is given, by a function of JavaScript.
TYPE = """(texts) => document.querySelectorAll(".attn-widget input").forEach((field, i) => {
  field.value = texts[i];
  field.dispatchEvent(new InputEvent("input", {bubbles: true}));
})"""
CHOOSE = """(picked) => document.querySelectorAll(".attn-widget fieldset").forEach((part, i) =>
  part.querySelectorAll("input")[picked[i]].click())"""
PICK = """(picked) => document.querySelectorAll(".attn-widget input").forEach((option, i) => {
  if (option.checked !== picked.includes(i)) option.click();
})"""
# Presses "up" of the step that belongs there, place after place.
ORDER = """(steps) => steps.forEach((step, place) => {
  const up = document.querySelector(`[aria-label="Move up: ${step}"]`);
  const items = [...document.querySelectorAll("li")];
  for (let i = items.indexOf(up.closest("li")); i > place; i--) up.click();
})"""


def told_of(page, give, answers) -> list[str]:
    """Give each answer, and return what is said after "Check"."""
    return page.evaluate(
        f"""(answers) => answers.map((answer) => {{
          ({give})(answer);
          document.querySelector("[type=submit]").click();
          return document.querySelector("output").textContent;
        }})""",
        answers,
    )


DIGITS = ["0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "０１２３４５６７８９"]
MINUSES = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
POINTS = ".,\u066b\uff0c\uff0e"
AROUND = ["", " ", "\u00a0", "\u2009", "\u202f", "\u200f", "\u061c"]


def in_relation(right, rng):
    """Return numbers that remarks are made of: times, parts, units, signs, orders, off by one."""
    times = rng.choice([2, 3, 8, 64, 100, 1000, 1024, 1024**2, 1.024, 1.024**3, -1])
    shuffled = right[torch.tensor(rng.sample(range(len(right)), len(right)))]
    return times * right, right / times, shuffled, 1 / right.where(right != 0, 7), right + 1


def typed(number: float, rng: random.Random) -> str:
    """A number as one of many readers would type it."""
    text = rng.choice([repr(number), f"{number:.6f}", f"{number:.9e}", f"{number * 7:.9f}/7"])
    doubtful = re.search(r"(?<!\d)[1-9]\d{0,2}\.\d{3}$", text)  # with a comma it might be thousands
    signs = {"-": rng.choice(MINUSES), ".": "." if doubtful else rng.choice(POINTS)}
    digits = dict(zip(DIGITS[0], rng.choice(DIGITS), strict=True))
    text = text.translate(str.maketrans(signs | digits))
    return rng.choice(AROUND) + text + rng.choice(AROUND)


def read(text: str) -> float:
    """A typed number as Python reads it, to which all digits are known, but one minus and point."""
    for signs, sign in ((MINUSES, "-"), (POINTS, "."), ("\u200f\u061c", "")):
        text = text.translate(dict.fromkeys(map(ord, signs), sign))
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def as_shown(verdict: CheckResult) -> str:
    return MARKUP.sub(lambda match: match[1] or match[2], repr(verdict))


@pytest.mark.parametrize(
    "name", [name for name, found in ON_PAGES.items() if found.page.kind == "numbers"]
)
def test_typed_numbers_get_the_verdict_of_the_check(show, name):
    exercise = ON_PAGES[name]
    form = exercise.page
    right = torch.as_tensor(form.right).detach().double()
    wrong = [torch.as_tensor(mistake.answer) for mistake in exercise.mistakes]
    known = [right, *(numbers.double() for numbers in wrong if numbers.shape == right.shape)]
    near = 6 * form.tolerance if form.near is None else form.near
    rng = random.Random(name)
    offs = [0, 0.9 * form.tolerance, 1.1 * form.tolerance, 0.9 * near, 1.1 * near, 1.0, -3.0]
    answers = []
    for _ in range(400):
        rows = rng.choices(known, k=2)
        mixed = torch.cat(
            [rows[0].flatten()[: right.shape[-1]], rows[1].flatten()[right.shape[-1] :]]
        )
        start = rng.choice([rows[0].flatten(), mixed])
        start = rng.choice([start, *in_relation(right.flatten(), rng)])
        off = rng.choice(offs)
        numbers = [number + off * rng.choice([0, 1, -1]) for number in start.tolist()]
        answers.append([typed(number, rng) for number in numbers])
    shown = told_of(show(exercise.on_page()), TYPE, answers)
    handed_in = [torch.tensor([*map(read, texts)], dtype=torch.float64) for texts in answers]
    wanted = [as_shown(exercise(numbers.view_as(right))) for numbers in handed_in]
    assert shown == wanted
    assert len(set(shown)) >= len(known) + 2


@pytest.mark.parametrize(
    "name", [name for name, found in ON_PAGES.items() if found.page.kind == "choice"]
)
def test_choices_get_the_verdict_of_the_check(show, name):
    exercise = ON_PAGES[name]
    widget = exercise.on_page()
    mixes = list(itertools.product(*(range(len(labels)) for labels in widget.labels)))
    shown = told_of(show(widget), CHOOSE, mixes)
    wanted = [as_shown(exercise(answer)) for answer in exercise.page.answers(())]
    assert shown == wanted


def test_picks_orders_and_mixes_get_the_verdict_of_their_place(show):
    for pick in (1, 2, 3):
        picks = list(itertools.combinations(range(4), pick))
        shown = told_of(show(lines(pick)), PICK, picks)
        assert shown == [repr(verdict(picked[0] == 1, str(picked))) for picked in picks]
    many = list(itertools.combinations(range(12), 2))
    verdicts = [verdict(picked == (2, 11), str(picked)) for picked in many]
    listing = Answer("lines", [("", [str(i) for i in range(12)])], verdicts, pick=2)
    assert told_of(show(listing), PICK, many) == list(map(repr, verdicts))
    steps = list("edcba")
    orders = list(itertools.permutations(steps))
    verdicts = [verdict(found[0] == "a", " ".join(found)) for found in orders]
    shown = told_of(show(Answer("order", [("", steps)], verdicts)), ORDER, orders)
    assert shown == list(map(repr, verdicts))
    parts = [("First", ["a", "b"]), ("*Second*", ["c", "d", "e"])]
    mixes = list(itertools.product(*(labels for _, labels in parts)))
    verdicts = [verdict(mix == ("b", "d"), " ".join(mix)) for mix in mixes]
    page = show(Answer("choice", parts, verdicts))
    assert "First and Second" in check(page)  # still to pick
    places = list(itertools.product(range(2), range(3)))
    assert told_of(page, CHOOSE, places) == list(map(repr, verdicts))


# --- numbers --------------------------------------------------------------------------------------

# In other digits, with other signs and among spaces they are typed in the tests of verdicts.
TYPED = {
    ".5": 0.5, "7.": 7, "+2": 2, " 3 / -7 ": -3 / 7, "1,5/2,5": 0.6, "12,3456": 12.3456,
    "1234,567": 1234.567, "1 000": 1000, "1\u2009024": 1024, "1/2/3": 1 / 6, "1\u20132": -1,
    "--1": 1, "27*16": 432, "27 × 16 + 2": 434, "-ln(72/168)": -math.log(72 / 168), "-2^2": -4,
    "cos(2)+cos(.02)": math.cos(2) + math.cos(0.02), "2**-1": 0.5, "(1+2)": 3, "2^3^2": 512,
    "sqrt(2) - 3*(1 - e^-1)": math.sqrt(2) - 3 * (1 - math.exp(-1)), "2e\u20133": 0.002,
    "LOG(2)/exp(1)*sin(pi/2)": math.log(2) / math.e,
}  # fmt: skip
NO_NUMBERS = [
    "1.2.3", "1,234.5", "3/", "/7", "0/0", "1e999", "NaN", "Infinity", "0x10", "-",
    "\u20145", "1 1/2", "1'000", "1_000", "1٬000", "½", "2²", "1·5", "٣x", "1 00", "10 0000",
    "2(3)", "(2", "2)", "()", "ln 2", "ln(0)", "ln", "constructor", "3**", "2e", "log2(8)",
]  # fmt: skip
DOUBTFUL = {
    "0.25": ["25%", "25 ％", "٢٥٪"], "4096 or 4.096": ["4,096", "-1,000", "1/ 1,500 ", "１，０００"]
}  # fmt: skip


def test_a_number_may_be_typed_in_many_ways_and_other_texts_are_none(show):
    page = show(numbers())
    for text, number in TYPED.items():
        read = page.evaluate(f"attnModules['shared/calculation.js'].calculated({json.dumps(text)})")
        assert read == pytest.approx(number, abs=1e-12), text
    for text in NO_NUMBERS:
        fill(page, text, "2", "5")
        assert check(page).startswith(f"“{text}” can’t be read."), text
    for advice, texts in DOUBTFUL.items():  # what may mean two numbers is none
        for text in texts:
            fill(page, text, text, "5")
            assert check(page).startswith(f"“{text}” can’t be read.")
            assert advice in said(page)


def test_numbers_that_two_known_ones_fit_are_the_first_of_them(show):
    known = torch.tensor([[1.0], [1.5], [1.6]])
    verdicts = [verdict(i == 0, str(i)) for i in range(4)]
    page = show(Answer("numbers", [("", ["x"])], verdicts, known=[known], tolerance=0.2))
    for text, place in (("1.1", 0), ("1.55", 1), ("1.75", 2), ("1.9", 3)):
        fill(page, text)
        assert check(page).endswith(f": {place}.")


def test_what_is_missing_or_no_number_is_said_of_each_field(show):
    page = show(numbers())
    fields = page.get_by_role("textbox")
    is_focused = "field => field === document.activeElement"
    assert "Nothing" in check(page)
    assert fields.first.evaluate(is_focused)
    fill(page, "1", "2 apples", "1/0")
    assert said(page) == ""
    assert check(page).startswith("“2 apples” and “1/0” can’t be read.")
    assert fields.nth(1).evaluate(is_focused)
    notes = page.locator("label .attn-note").all_inner_texts()
    assert [bool(note) for note in notes] == [False, True, True]
    fill(page, "1", "", "5")
    assert check(page) == "Still empty: y."
    assert [f.get_attribute("aria-invalid") for f in fields.all()] == [None, "true", None]
    fill(page, "1", "2", "5")
    assert check(page) == "Correct. Yes: right right."
    verdict_shown = page.get_by_role("status")
    assert "attn-passed" in verdict_shown.get_attribute("class")
    fields.first.press("End")
    page.keyboard.type("0")  # another answer takes the verdict away
    assert said(page) == ""
    assert "attn-passed" not in verdict_shown.get_attribute("class")


def test_fields_with_one_label_are_told_apart(show):
    rows = [("Row *a*", ["x", "`y`"]), ("Row b", ["x", "z"]), ("", ["x"])]
    known = [torch.zeros(1, 5)]
    page = show(Answer("numbers", rows, [verdict(True), verdict(False)], known=known))
    fill(page, "", "", "", "0", "")
    assert check(page) == "Still empty: x (Row a), y, x (Row b) and x."


def test_a_very_long_text_is_cut_and_refused(show):
    widget = numbers()
    page = show(widget, widget, width=360)
    first = page.locator(".attn-widget").first
    field = first.get_by_role("textbox").first
    for text in ("1" * 100_000 + "x", "<b>" * 30_000, "1" * 100_000, "0." + "3" * 59):
        field.fill(text)
        answered = check(first)
        assert answered.startswith(f"“{text[:61]}” can’t be read.")
        assert answered.endswith("At most 60 characters fit.")
        assert field.input_value() == text[:61]
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert page.locator("b").count() == 0
    field.fill("0." + "3" * 58)
    assert "Still empty" in check(first)


def test_enter_hands_in_unless_an_input_method_is_composing(show):
    page = show(numbers())
    field = page.get_by_role("textbox").first
    field.fill("1")
    press = """(field, options) => field.dispatchEvent(new KeyboardEvent(
        "keydown", {key: "Enter", bubbles: true, cancelable: true, ...options}))"""
    for composing in ({"isComposing": True}, {"keyCode": 229}):
        assert field.evaluate(press, composing)  # and leaves the key to it
        assert said(page) == ""
    assert not field.evaluate(press, {})
    assert said(page) == "Still empty: y and z."


# --- what is picked or moved ----------------------------------------------------------------------


def test_what_is_still_to_pick_is_named(show):
    page = show(choice())
    page.get_by_role("group", name="One").get_by_label("a").check()
    assert check(page) == "Still to pick: Two."
    focused = "document.activeElement.closest('fieldset').querySelector('legend').textContent"
    assert page.evaluate(focused) == "Two"
    page.get_by_role("group", name="Two").get_by_label("c").check()
    assert said(page) == ""
    assert check(page) == "Correct. Yes: a c."
    assert check(show(lines())) == "Pick a line first."
    page = show(lines(pick=2))
    assert "2 lines" in check(page)
    page.get_by_role("checkbox").nth(3).check()
    assert "is 1." in check(page)
    page.get_by_text("y = x  # again").click()
    page.get_by_text("def f(x):").click()
    assert "are 3." in check(page)
    page.get_by_text("def f(x):").click()
    assert check(page) == "Not yet. No: (2, 3)."


def test_steps_are_moved_by_keys_and_by_touch(show):
    page = show(order())
    down = page.get_by_role("button", name="Move down: merge")
    down.press("Enter")
    assert page.locator("li span").all_inner_texts() == ["project", "merge", "split"]
    assert said(page) == "merge: now 2 of 3."
    page.keyboard.press("Space")  # the button has the focus still
    page.keyboard.press("Space")  # and there it ends
    assert page.locator("li span").all_inner_texts() == ["project", "split", "merge"]
    assert down.get_attribute("aria-disabled") == "true"
    assert said(page) == "merge: now 3 of 3."
    page.get_by_role("button", name="Move up: split").tap()
    assert page.locator("li span").all_inner_texts() == ["split", "project", "merge"]
    assert check(page) == "Not yet. No: split project merge."
    assert "attn-passed" not in page.get_by_role("status").get_attribute("class")


# --- each kind ------------------------------------------------------------------------------------

NOT_GIVEN = {
    numbers: [["1", "2"], ["1", "2", 5], ["1", "2", None], ["1", "2", ["5"]],
              ["1", "2", "5" * 62], "125"],
    choice: [["0", "2"], [[0], 2], ["length", 2], [0, 3], [0, -1], [0, 0.5], [0], [True, 2],
             {"0": 0, "1": 2, "length": 2}],
    lines: [["length"], ["1"], [4], [None], [2, 1]],
    order: [[0, 1], [0, 1, 1], ["0", "1", "2"], [0, 1, 3]],
}  # fmt: skip


@pytest.mark.parametrize("make", KINDS)
def test_what_no_reader_can_have_given_is_refused(show, make):
    damages = [{"given": given, "checked": True} for given in NOT_GIVEN[make]]
    page = show(*(make() for _ in damages), damage=damages)
    expect(page.get_by_role("alert")).to_have_count(len(damages))
    assert all("given should be" in text for text in page.get_by_role("alert").all_inner_texts())


@pytest.mark.parametrize("make", KINDS)
def test_each_kind_fits_says_nothing_before_it_is_asked_and_starts_over(show, make):
    page = show(make(), width=360)
    clear = page.get_by_role("button", name="Clear")
    assert said(page) == ""
    assert clear.is_hidden()
    assert page.locator("[aria-invalid]").count() == 0
    written = "form => form.innerHTML.replaceAll(' data-lm-suppress-shortcuts=\"true\"', '')"
    before = page.locator("form").evaluate(written)
    control = page.locator(".attn-widget :is(input, li [aria-disabled=false])").first
    if control.get_attribute("type") == "text":
        control.fill("1")
    else:
        control.click()
    check(page)
    assert min(target_sizes(page)) >= 24
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    clear.click()
    assert said(page) == ""
    assert clear.is_hidden()
    assert page.locator("form").evaluate(written) == before
    assert page.evaluate("document.activeElement.closest('fieldset') !== null")
    assert page.locator(":checked").count() == 0


def tops(locator):
    return [one.bounding_box()["y"] for one in locator.all()]


def test_what_is_short_stands_side_by_side_on_a_phone_and_long_code_wraps(show):
    fields = show(numbers(), width=300).get_by_role("textbox")  # as wide as an exercise's box on it
    one, two = (box.bounding_box() for box in fields.all()[:2])
    assert one["y"] == two["y"] and one["x"] + one["width"] <= two["x"]
    known = [torch.tensor([[1.0, 2.0, 3.0]])] * 2
    parts = [(title, ["to 0", "to 1", "to 2"]) for title in ("Token 0", "Token 1")]
    rows = Answer("numbers", parts, [verdict(True)] * 4, known=known, tolerance=0.1)
    found = tops(show(rows, width=320).get_by_role("textbox"))
    assert found[0] == found[1] == found[2] < found[3] == found[4] == found[5]
    for labels, side_by_side in ((["a", 16 * "b"], True), (["a", 17 * "b"], False)):
        page = show(Answer("choice", [("", labels)], [verdict(False), verdict(True)]))
        assert (len(set(tops(page.locator("label")))) == 1) == side_by_side
    code = [
        "def split(x):",
        "    q, k, v = (t.view(B, T, h, d_k).transpose(1, 2) for t in (q, k, v))",
    ]
    page = show(Answer("lines", [("", code)], [verdict(True)] * 2), width=360)
    box = page.locator(".attn-listing .attn-scroll")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert page.locator(".attn-listing code").all_inner_texts() == code  # indented as it was
