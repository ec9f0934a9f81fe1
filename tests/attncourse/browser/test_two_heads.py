"""TwoHeads in a real browser, without a kernel: its numbers, its fields, its manners."""

import base64
import math
from fractions import Fraction

import pytest
import torch
from tools.widget_pages import swipe, target_sizes

from attncourse.widgets import TwoHeads


def random_heads(T=2, d=4, d_k=2, *, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(T, d, generator=generator)
    return TwoHeads(x, scale * torch.randn(2, 3, d, d_k, generator=generator))


def example(_text):
    """Heads for the tests of what every widget does; no text of them is given."""
    return TwoHeads(tries=TRIES)


TRIES = [(2, "W_q", 1, [0.0, 2.0]), (2, "W_q", 1, [1.0, 1.0])]


def largest(_text):
    return random_heads(T=4, d=6, d_k=3, scale=90.0)


PLACES = set()
KEY = ("input", "ArrowUp")


def expected(x, heads):
    """Torch's scores, weights and output, in float64, of head 1, head 2 and both as one head."""
    results = []
    x, heads = x.double(), heads.double()
    big = torch.cat([heads[0], heads[1]], -1)  # columns side by side
    for W_q, W_k, W_v in (*heads, big):
        q, k, v = x @ W_q, x @ W_k, x @ W_v
        scores = q @ k.T
        scaled = scores / math.sqrt(W_q.shape[1])
        weights = scaled.softmax(-1)
        parts = {"q": q, "k": k, "v": v, "scores": scores, "scaled": scaled}
        results.append(parts | {"weights": weights, "output": weights @ v})
    return results


def shown(page, step):
    """What the three columns write at a step: a list of matrices of text."""
    return [
        [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
        for table in page.locator(f".attn-{step}").all()
    ]


def field(page, label):
    return page.get_by_label(label, exact=True)


SIZES = ("T", "d", "d_k", "largest", "tries")
CASES = {
    "the lesson's": TwoHeads(),
    "random": random_heads(T=3, d=5, d_k=3, seed=1),
    "largest": random_heads(T=4, d=6, d_k=3, seed=2),
    "one token": random_heads(T=1, d=4, d_k=2, seed=3),
    "width 1": random_heads(T=4, d=1, d_k=1, seed=4),
    "scores to +-80 and beyond": random_heads(T=4, d=6, d_k=2, seed=5, scale=4.0),
    "all equal": TwoHeads(torch.full((3, 2), 2.0), torch.full((2, 3, 2, 2), 3.0)),
    "exactly +-80": TwoHeads(
        torch.tensor([[8.0], [-8.0]]), torch.tensor([1.0, 1.25, 1.0] * 2).view(2, 3, 1, 1)
    ),
    "as large as it gets": TwoHeads(
        torch.tensor([[1000.0, -1000.0], [999.0, 1.0]]), torch.full((2, 3, 2, 2), 1000.0)
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_browser_computes_what_torch_computes(show, case):
    widget = CASES[case]
    names = ("x", "heads", "start_x", "start_heads")
    state = widget.get_state()
    computed = show(widget).evaluate(
        """({sizes, bytes}) => {
            const {readState, computeAll} = attnModules["two_heads/widget.js"];
            const decode = (text) =>
                new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
            const decoded = Object.entries(bytes).map(([name, text]) => [name, decode(text)]);
            const model = new Map([...Object.entries(sizes), ...decoded]);
            return computeAll(readState(model)).map((head) =>
                Object.fromEntries(Object.entries(head).map(([k, v]) => [k, Array.from(v)])));
        }""",
        {
            "sizes": {name: getattr(widget, name) for name in SIZES},
            "bytes": {name: base64.b64encode(state[name]).decode() for name in names},
        },
    )
    for head, wanted in zip(computed, expected(widget.x, widget.heads), strict=True):
        for name, numbers in wanted.items():
            ours = torch.tensor(head[name], dtype=torch.float64).view_as(numbers)
            relative = 0 if name == "weights" else 1e-12  # beside numbers of 1e12
            torch.testing.assert_close(ours, numbers, atol=1e-6, rtol=relative)


def test_the_lessons_example_as_on_paper(show):
    page = show(TwoHeads())
    assert shown(page, "scores") == [
        [["2", "0"], ["3", "2"]],
        [["1", "3"], ["1", "3"]],
        [["3\n= 2 + 1", "3\n= 0 + 3"], ["4\n= 3 + 1", "5\n= 2 + 3"]],
    ]
    assert shown(page, "scaled")[2] == [["1.5", "1.5"], ["2", "2.5"]]
    assert shown(page, "weights") == [
        [[".80", ".20"], [".67", ".33"]],
        [[".20", ".80"], [".20", ".80"]],
        [[".50", ".50"], [".38", ".62"]],
    ]
    assert shown(page, "output")[2][0] == ["1", "2", "1", "2"]
    said = page.locator("output").inner_text().split("\n")
    assert said[0] == (
        "Token 0 looks at token 0 (.80) in head 1, token 1 (.80) in head 2, "
        "both alike (.50) in one head of width 4."
    )


def test_a_typed_number_is_computed_at_once_everywhere(show):
    widget = random_heads(T=3, d=4, d_k=2, seed=7)
    page = show(widget)
    page.locator("summary").click()
    x, heads = widget.x.clone(), widget.heads.clone()
    edits = {  # label: what is typed, and where it goes
        "X, the tokens, token 2, column 4": ("-1.25", x[2], 3),
        "Wq of Head 1, row 1, column 2": ("2", heads[0, 0, 0], 1),
        "Wk of Head 1, row 4, column 1": ("\u22120,5", heads[0, 1, 3], 0),
        "Wq of Head 2, row 2, column 1": (".75", heads[1, 0, 1], 0),
        "Wv of Head 2, row 3, column 2": ("1e1", heads[1, 2, 2], 1),
        "Wv of Head 2, row 4, column 2": ("1/4", heads[1, 2, 3], 1),
    }
    for label, (text, row, column) in edits.items():
        field(page, label).fill(text)
        row[column] = float(Fraction(text.replace("\u2212", "-").replace(",", ".")))
        wanted = expected(x, heads)
        for step in ("scaled", "output", "weights"):
            for matrix, result in zip(shown(page, step), wanted, strict=True):
                numbers = [[float(t.replace("\u2212", "-")) for t in row] for row in matrix]
                numbers = torch.tensor(numbers, dtype=torch.float64)
                torch.testing.assert_close(numbers, result[step], atol=0.0051, rtol=0)
    made = page.locator(".attn-projections").nth(1).locator(".attn-scroll").nth(1)
    assert made.locator("caption").inner_text() == "Q"
    numbers = [float(t.replace("\u2212", "-")) for t in made.locator("td").all_inner_texts()]
    torch.testing.assert_close(
        torch.tensor(numbers).double(), wanted[1]["q"].flatten(), atol=0.0051, rtol=0
    )


NO_NUMBERS = {
    "abc": "“abc” is not a number; it is still 0.",
    "1 2": "“1 2” is not a number; it is still 0.",
    "NaN": "“NaN” is not a number; it is still 0.",
    "Infinity": "“Infinity” is not a number; it is still 0.",
    "0x10": "“0x10” is not a number; it is still 0.",
    "1/0": "“1/0” is not a number; it is still 0.",
    "1,234": "in “1,234” the comma may mean thousands or the point; it is still 0.",
    "7" * 10_000 + "x": "“777777777777777777777777…” is not a number; it is still 0.",
    "1e999": "only −1000 to 1000 is possible; it is still 0.",
    "-1000.1": "only −1000 to 1000 is possible; it is still 0.",
    "<img src=x onerror=\"document.title='run'\">": "is not a number; it is still 0.",
}


def test_what_is_no_number_is_refused_in_words_beside_the_field(show):
    page = show(TwoHeads())
    before = [shown(page, step) for step in ("scores", "weights", "output")]
    place = field(page, "X, the tokens, token 0, column 2")
    refusal = page.locator(".attn-tokens .attn-refusal")
    for text, reason in NO_NUMBERS.items():
        place.fill(text)
        assert refusal.inner_text().startswith("Token 0, column 2: ")
        assert refusal.inner_text().endswith(reason)
        assert place.get_attribute("aria-invalid") == "true"
    assert [shown(page, step) for step in ("scores", "weights", "output")] == before
    assert page.locator("img").count() == 0
    place.fill("3")
    assert refusal.inner_text() == ""
    assert place.get_attribute("aria-invalid") is None
    assert shown(page, "scores")[0] != before[0][0]


def test_half_a_number_is_waited_for_until_the_field_is_left(show):
    page = show(TwoHeads())
    place = field(page, "X, the tokens, token 0, column 1")
    for unfinished in (".", "-", "1/", "1/-", ""):
        place.fill(unfinished)
        assert page.locator(".attn-tokens .attn-refusal").inner_text() == ""
    place.press("Tab")
    assert "no number; it is still 1" in page.locator(".attn-tokens .attn-refusal").inner_text()
    place.fill("1.")  # a number already, and stays as it is typed
    assert place.input_value() == "1."


def test_two_refused_fields_are_mended_one_by_one(show):
    page = show(TwoHeads())
    one, two = (field(page, f"X, the tokens, token 0, column {j}") for j in (1, 2))
    one.fill("a")
    two.fill("b")
    refusal = page.locator(".attn-tokens .attn-refusal")
    assert "column 2" in refusal.inner_text()
    two.fill("1")
    assert "column 1: \u201ca\u201d" in refusal.inner_text()


def test_arrow_keys_count_up_and_down_and_stop_at_the_limit(show):
    page = show(TwoHeads(torch.tensor([[0.1, 999.5, 0, 0]])))
    place = field(page, "X, the tokens, token 0, column 1")
    assert place.input_value() == "0.1"  # and not 0.10000000149
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    place.press("ArrowUp")
    assert page.evaluate("lastKey.defaultPrevented")
    assert page.evaluate("document.activeElement.hasAttribute('data-lm-suppress-shortcuts')")
    assert place.input_value() == "1.1"
    place.press("ArrowDown")
    place.press("ArrowDown")
    assert place.input_value() == "-0.9"
    place.press("Shift+ArrowUp")
    assert place.input_value() == "-0.8"
    largest = field(page, "X, the tokens, token 0, column 2")
    largest.press("ArrowUp")
    assert largest.input_value() == "999.5"


def test_reset_brings_back_every_number_and_clears_what_was_refused(show):
    page = show(TwoHeads())
    page.locator("summary").click()
    before = [shown(page, step) for step in ("scores", "weights", "output")]
    field(page, "X, the tokens, token 0, column 1").fill("5")
    field(page, "Wv of Head 2, row 1, column 1").fill("5")
    field(page, "X, the tokens, token 1, column 1").fill("?")
    page.get_by_role("button", name="Back to the start").click()
    assert [shown(page, step) for step in ("scores", "weights", "output")] == before
    values = [f.input_value() for f in page.locator(".attn-tokens input").all()]
    assert values == list("10100101")
    assert page.locator("[aria-invalid]").count() == 0
    assert page.locator(".attn-refusal").all_inner_texts() == [""] * 7


def test_ctrl_z_takes_back_a_change_but_leaves_what_is_being_typed_to_the_browser(show):
    page = show(TwoHeads())
    one, two = (field(page, f"X, the tokens, token 0, column {j}") for j in (1, 2))
    one.press("ArrowUp")
    one.press("Control+z")
    assert one.input_value() == "1"
    two.press("End")
    two.press_sequentially("25")
    before = shown(page, "scores")
    two.press("Control+z")  # the browser's: it may take a letter back, or all of them
    assert page.get_by_role("button", name="Undo").get_attribute("aria-disabled") == "false"
    assert two.input_value() != "025"
    assert shown(page, "scores") != before
    page.get_by_role("button", name="Back to the start").focus()
    page.keyboard.press("Control+z")
    assert page.get_by_role("button", name="Undo").get_attribute("aria-disabled") == "true"


def drag(page, box, pixels):
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 20, y)
    page.mouse.down()
    for step in range(1, 5):
        page.mouse.move(box["x"] + 20 + pixels * step / 4, y)
    page.mouse.up()


def test_a_number_is_dragged_by_mouse_and_a_click_marks_it(show):
    page = show(TwoHeads())
    place = field(page, "X, the tokens, token 0, column 1")
    drag(page, place.bounding_box(), 40)
    assert place.input_value() == "2"
    assert page.evaluate("getSelection().toString()") in ("", "2")
    drag(page, place.bounding_box(), -56)
    assert place.input_value() == "0.6"
    box = place.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 25, box["y"] + 22)  # down, not to the side
    page.mouse.up()
    assert place.input_value() == "0.6"
    wanted = TwoHeads().x
    wanted[0, 0] = 0.6
    first = expected(wanted, TwoHeads().heads)[0]["weights"][0, 0]
    assert shown(page, "weights")[0][0][0] == f"{first:.2f}".lstrip("0")
    place.evaluate("place => place.blur()")
    place.click()
    page.keyboard.type("7")
    assert place.input_value() == "7"


def test_a_finger_drags_a_number_and_scrolls_the_page(show):
    page = show(TwoHeads(), width=360)
    page.evaluate("document.body.style.height = '3000px'")
    place = field(page, "X, the tokens, token 0, column 1")
    box = place.bounding_box()
    x, y = box["x"] + 20, box["y"] + box["height"] / 2
    swipe(page, (x, y), (x + 40, y + 5))
    assert place.input_value() == "2"
    swipe(page, (x, y), (x + 5, y - 120))
    page.wait_for_function("scrollY > 40")
    assert place.input_value() == "2"


def test_undo_takes_back_what_was_typed_dragged_tried_and_reset(show):
    page = show(TwoHeads(tries=TRIES))
    undo = page.get_by_role("button", name="Undo")
    assert undo.get_attribute("aria-disabled") == "true"
    first = field(page, "X, the tokens, token 0, column 1")
    second = field(page, "X, the tokens, token 0, column 2")
    states = []

    def note():
        states.append([shown(page, "scores"), first.input_value(), second.input_value()])

    note()
    first.press("ArrowUp")
    first.press("ArrowUp")
    note()
    second.fill("1")
    second.fill("12")
    note()
    for _ in range(3):  # of the same number, one after the other
        drag(page, first.bounding_box(), -40)
        note()
    first.evaluate("field => field.blur()")
    first.fill("8")
    note()
    page.get_by_role("button", name="[1, 1]").click()
    note()
    page.get_by_role("button", name="Back to the start").click()
    assert shown(page, "scores") == states[0][0]
    second.fill("?")
    while states:
        undo.click()
        state = states.pop()
        assert [shown(page, "scores"), first.input_value(), second.input_value()] == state
    assert undo.get_attribute("aria-disabled") == "true"
    assert page.locator("[aria-invalid]").count() == 0


def test_rows_to_try_answer_the_lessons_question(show):
    page = show(TwoHeads(tries=TRIES))
    longer, other = (page.get_by_role("button", name=name) for name in ("[0, 2]", "[1, 1]"))
    assert longer.inner_text() == "Wq of head 2, row 1: [0, 2]"
    longer.click()
    assert [longer.get_attribute("aria-pressed"), other.get_attribute("aria-pressed")] == [
        "true",
        "false",
    ]
    assert shown(page, "weights")[2][0] == [".50", ".50"]
    other.click()
    assert shown(page, "weights")[2][0] != [".50", ".50"]
    page.locator("summary").click()
    values = [field(page, f"Wq of Head 2, row 1, column {j}").input_value() for j in (1, 2)]
    assert values == ["1", "1"]


def test_weights_stay_in_view_while_matrices_are_edited_on_a_phone(show):
    page = show(TwoHeads(), width=360)
    page.set_viewport_size({"width": 360, "height": 640})
    page.locator("summary").click()
    place = field(page, "Wv of Head 2, row 4, column 2")
    place.scroll_into_view_if_needed()
    glance = page.locator(".attn-glance").bounding_box()
    assert 0 <= glance["y"] < glance["y"] + glance["height"] < place.bounding_box()["y"]
    field(page, "Wq of Head 2, row 1, column 1").fill("1")
    little = page.locator(".attn-little").nth(2).locator("span").all_inner_texts()
    assert little == [text for row in shown(page, "weights")[2] for text in row]


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_cells_that_changed_flash_unless_motion_is_unwanted(show, motion):
    page = show(TwoHeads())
    page.emulate_media(reduced_motion=motion)
    flashing = """() => [...document.querySelectorAll(".attn-column td")]
        .map((cell, i) => cell.getAnimations().length ? i : -1).filter((i) => i >= 0)"""
    texts = "() => [...document.querySelectorAll('.attn-column td')].map((td) => td.textContent)"
    assert page.evaluate(flashing) == []
    before = page.evaluate(texts)
    field(page, "X, the tokens, token 0, column 1").fill("2")
    after = page.evaluate(texts)
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert 0 < len(changed) < len(after)
    assert page.evaluate(flashing) == (changed if motion == "no-preference" else [])


def test_everything_is_reached_by_tab_with_a_visible_focus(show):
    page = show(TwoHeads())
    reached = []
    for _ in range(11):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached == ["INPUT"] * 8 + ["BUTTON"] * 2 + ["SUMMARY"]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "Wq of Head 1, row 1, column 1"


def test_one_token_teaches_nothing(show):
    page = show(TwoHeads(torch.tensor([[1.0, 2, 3, 4]])))
    assert shown(page, "weights") == [[["1.00"]]] * 3
    assert page.locator("output").inner_text() == (
        "With one token there is nothing to choose: every weight is 1."
    )


def test_weights_have_the_palettes_colors(show):
    page = show(CASES["exactly +-80"])
    colors = (
        page.locator(".attn-weights")
        .first.locator("tbody td")
        .evaluate_all("cells => cells.map((cell) => [cell.style.background, cell.style.color])")
    )
    yellow, violet = (
        ["rgb(253, 231, 37)", "rgb(0, 0, 0)"],
        ["rgb(68, 1, 84)", "rgb(255, 255, 255)"],
    )
    assert colors == [yellow, violet, violet, yellow]


@pytest.mark.parametrize("width", [360, 760])
@pytest.mark.parametrize("widget", [TwoHeads(), random_heads(T=4, d=6, d_k=3, seed=9, scale=90.0)])
def test_what_scrolls_is_reached_by_tab_and_columns_are_level(show, widget, width):
    page = show(widget, width=width)
    page.locator("summary").click()
    field(page, "X, the tokens, token 0, column 1").fill("a" * 200)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert min(target_sizes(page)) >= 24
    page.wait_for_function(
        """() => [...document.querySelectorAll(".attn-scroll:not(.attn-editor *)")].every((box) =>
            (box.scrollWidth > box.clientWidth) === (box.tabIndex === 0))"""
    )
    if width > 600:  # the three columns stay level, so that 2 + 1 = 3 reads across
        for step in ("scores", "weights", "output"):
            tops = {round(t.bounding_box()["y"]) for t in page.locator(f".attn-{step} tbody").all()}
            assert len(tops) == 1


def test_two_widgets_do_not_disturb_each_other_and_views_of_one_stay_together(show):
    shared = TwoHeads()
    one, again, other = show(shared, shared, TwoHeads()).locator(".attn-widget").all()
    label = "X, the tokens, token 0, column 1"
    field(one, label).fill("7")
    assert field(again, label).input_value() == "7"
    assert field(other, label).input_value() == "1"
    assert shown(one, "output") == shown(again, "output") != shown(other, "output")
    assert one.page.locator("[id]").count() == 0


def shorten(state, buffers):
    for entry in buffers:
        if entry["path"] == ["heads"]:
            entry["data"] = base64.b64encode(base64.b64decode(entry["data"])[:-4]).decode()


def poison(state, buffers):
    for entry in buffers:
        if entry["path"] == ["x"]:
            entry["data"] = base64.b64encode(b"\xff" * 32).decode()


DAMAGES = {
    "heads should be 48 numbers in 192 bytes, but is 188": shorten,
    "x holds a number that isn't finite": poison,
    "x should be 8 numbers in 32 bytes, but is 0": lambda _, buffers: buffers.clear(),
    "T should be a whole number from 1 to 6, but is 0": lambda state, _: state.update(T=0),
    "tries should be a list of rows": lambda state, _: state["tries"][0].append(7),
    "d_k should be a whole number from 1 to 6, but is 9": lambda state, _: state.update(d_k=9),
}


def test_weights_keep_their_colors_in_forced_colors(show):
    page = show(TwoHeads(), width=360)
    page.emulate_media(forced_colors="active")
    kept = (
        "cells => cells.map((c) => getComputedStyle(c).backgroundColor === c.style.backgroundColor)"
    )
    try:
        for cells in (".attn-weights tbody td", ".attn-little span"):
            assert all(page.locator(cells).evaluate_all(kept))
    finally:
        page.emulate_media(forced_colors="none")
