"""TwoHeads in a real browser, without a kernel: its numbers, its fields, its manners."""

import math
import re

import torch
from tools.widget_pages import asked, swipe

from attncourse.widgets import TwoHeads

MINUS = "\u2212"


def random_heads(T=2, d=4, d_k=2, *, seed=0, scale=1.0, **options):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(T, d, generator=generator)
    return TwoHeads(x, scale * torch.randn(2, 3, d, d_k, generator=generator), **options)


def example(_text):
    """Heads for the tests of what every widget does; no text of them is given."""
    return TwoHeads(tries=TRIES)


TRIES = [(2, "W_q", 1, [0.0, 2.0]), (2, "W_q", 1, [1.0, 1.0])]


def largest(_text):
    return random_heads(T=4, d=6, d_k=3, scale=90.0)


PLACES = set()
KEY = ("input", "ArrowUp")
DAMAGES = {
    "heads should be 48 numbers": {"heads": bytes(188)},
    "x holds a number that isn't finite": {"x": b"\xff" * 32},
    "x should be 8 numbers": {"x": b""},
    "T should be": {"T": 0},
    "d_k should be": {"d_k": 9},
    "tries should be": {"tries": [[2, "W_q", 1, [0.0, 2.0], 7]]},
}


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


def results(page):
    return [shown(page, step) for step in ("scores", "weights", "output")]


def assert_written(texts, numbers):
    """Fail unless a matrix of texts says these numbers, to two decimals."""
    found = [[float(text.replace(MINUS, "-")) for text in row] for row in texts]
    torch.testing.assert_close(torch.tensor(found).double(), numbers, atol=0.0051, rtol=0)


def field(page, label):
    return page.get_by_label(label, exact=True)


def number(page, column, token=0):
    return field(page, f"X, the tokens, token {token}, column {column}")


def button(page, name):
    return page.get_by_role("button", name=name)


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
COMPUTE = """(model) => {
  const {readState, computeAll} = attnModules["two_heads/widget.js"];
  return computeAll(readState(model));
}"""


def test_the_browser_computes_what_torch_computes(show):
    page = show(TwoHeads())
    for case, widget in CASES.items():
        wanted = expected(widget.x, widget.heads)
        for head, of_head in zip(asked(page, widget, COMPUTE), wanted, strict=True):
            for name, numbers in of_head.items():
                ours = torch.tensor(head[name], dtype=torch.float64).view_as(numbers)
                relative = 0 if name == "weights" else 1e-12  # beside numbers of 1e12
                torch.testing.assert_close(
                    ours, numbers, atol=1e-6, rtol=relative, msg=f"{name} of {case}"
                )


def test_the_lessons_example_as_on_paper(show):
    page = show(TwoHeads())
    scores, weights, output = results(page)
    assert scores == [
        [["2", "0"], ["3", "2"]],
        [["1", "3"], ["1", "3"]],
        [["3\n= 2 + 1", "3\n= 0 + 3"], ["4\n= 3 + 1", "5\n= 2 + 3"]],
    ]
    assert shown(page, "scaled")[2] == [["1.5", "1.5"], ["2", "2.5"]]
    assert weights == [
        [["0.80", "0.20"], ["0.67", "0.33"]],
        [["0.20", "0.80"], ["0.20", "0.80"]],
        [["0.50", "0.50"], ["0.38", "0.62"]],
    ]
    assert output[2][0] == ["1", "2", "1", "2"]
    for axis, role in (("thead", "key"), ("tbody", "query")):
        assert page.locator(f".attn-weights {axis} th.attn-{role}").count() == 6
    glance = page.locator(".attn-glance")
    assert glance.get_attribute("aria-hidden") == "true"  # the tables say the same
    color = "swatches => swatches.map((swatch) => getComputedStyle(swatch).backgroundColor)"
    one, two, hollow = glance.locator(".attn-swatch").evaluate_all(color)
    assert [one, two, hollow] == page.locator(".attn-heads .attn-swatch").evaluate_all(color)
    assert len({one, two, hollow}) == 3
    said = page.locator("output").inner_text().split("\n")
    assert re.findall(r"\d*\.?\d+", said[0]) == "0 0 0.80 1 1 0.80 2 0.50 4".split()
    assert "both" in said[0] and "both" not in said[1]
    one = show(TwoHeads(torch.tensor([[1.0, 2, 3, 4]])))
    assert shown(one, "weights") == [[["1.00"]]] * 3
    assert "nothing to choose" in one.locator("output").inner_text()


def test_a_typed_number_is_computed_at_once_everywhere(show):
    widget = random_heads(T=3, d=4, d_k=2, seed=7)
    page = show(widget)
    page.locator("summary").click()
    x, heads = widget.x.clone(), widget.heads.clone()
    edits = {  # label: what is typed, what it means, and where it goes
        "X, the tokens, token 2, column 4": ("-1.25", -1.25, x[2], 3),
        "Wq of Head 1, row 1, column 2": ("2", 2, heads[0, 0, 0], 1),
        "Wk of Head 1, row 4, column 1": (f"{MINUS}0,5", -0.5, heads[0, 1, 3], 0),
        "Wq of Head 2, row 2, column 1": (".75", 0.75, heads[1, 0, 1], 0),
        "Wv of Head 2, row 3, column 2": ("1e1", 10, heads[1, 2, 2], 1),
        "Wv of Head 2, row 4, column 2": ("1/4", 0.25, heads[1, 2, 3], 1),
    }
    for label, (text, value, row, column) in edits.items():
        field(page, label).fill(text)
        row[column] = value
        wanted = expected(x, heads)
        for step in ("scaled", "output", "weights"):
            for matrix, result in zip(shown(page, step), wanted, strict=True):
                assert_written(matrix, result[step])
    for which, result in enumerate(wanted):
        made = page.locator(".attn-projections").nth(which).locator(".attn-scroll")
        for name in "qkv":
            table = made.filter(has=page.locator("caption", has_text=re.compile(f"^{name}$", re.I)))
            rows = [row.locator("td").all_inner_texts() for row in table.locator("tr").all()]
            assert_written(rows, result[name])
    little = page.locator(".attn-little").nth(2).locator("span").all_inner_texts()
    assert little == [text for row in shown(page, "weights")[2] for text in row]


REFUSED = [
    *("abc", "1 2", "NaN", "Infinity", "0x10", "1/0", "1,234", "<img src=x>"),
    *("7" * 10_000 + "x", "1e999", "-1000.1"),
]  # fmt: skip


def test_what_is_no_number_is_refused_in_words_beside_the_field(show):
    page = show(TwoHeads())
    before = results(page)
    place, other = number(page, 2), number(page, 1)
    refusal = page.locator(".attn-tokens .attn-refusal")
    for text in REFUSED:
        place.fill(text)
        told = refusal.inner_text()
        assert told.startswith("Token 0, column 2: ") and told.endswith("it is still 0.")
        assert text[:24] in told or "1000" in told
        assert len(told) < 100
        assert place.get_attribute("aria-invalid") == "true"
    assert results(page) == before
    for unfinished in (".", "-", "1/", "1/-", ""):  # may become a number
        other.fill(unfinished)
        assert "column 2" in refusal.inner_text()
        assert other.get_attribute("aria-invalid") is None
    other.press("Tab")
    assert "column 1: no number; it is still 1" in refusal.inner_text()
    other.fill("1.")  # a number already, and stays as it is typed
    assert other.input_value() == "1."
    assert "column 2" in refusal.inner_text()  # two refused ones are mended one by one
    place.fill("3")
    assert refusal.inner_text() == ""
    assert place.get_attribute("aria-invalid") is None
    assert results(page)[0][0] != before[0][0]
    page.locator("summary").click()
    field(page, "Wv of Head 2, row 1, column 1").fill("5")
    number(page, 1, token=1).fill("?")
    button(page, "Back to the start").click()
    assert results(page) == before
    assert [f.input_value() for f in page.locator(".attn-tokens input").all()] == list("10100101")
    assert page.locator("[aria-invalid]").count() == 0
    assert set(page.locator(".attn-refusal").all_inner_texts()) == {""}


def drag(page, place, x, y=0):
    box = place.bounding_box()
    start = box["x"] + 20, box["y"] + box["height"] / 2
    page.mouse.move(*start)
    page.mouse.down()
    for step in range(1, 5):
        page.mouse.move(start[0] + x * step / 4, start[1] + y * step / 4)
    page.mouse.up()


def test_each_change_by_keys_mouse_and_buttons_is_taken_back(show):
    page = show(TwoHeads(torch.tensor([[0.1, 99.5, 0, 0]]), tries=TRIES))
    first, second = number(page, 1), number(page, 2)
    undo = button(page, "Undo")
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    states = []

    def note(*values):
        states.append([results(page), first.input_value(), second.input_value()])
        assert tuple(states[-1][1:]) == values

    note("0.1", "99.5")  # and not 0.10000000149
    for key, value in (("ArrowUp", "1.1"), ("ArrowDown", "0.1"), ("Shift+ArrowUp", "0.2")):
        first.press(key)  # one after the other: all of it is one change
        assert page.evaluate("lastKey.defaultPrevented")
        assert first.input_value() == value
    note("0.2", "99.5")
    second.fill("1")
    second.fill("12")
    note("0.2", "12")
    for x, y, value in ((40, 0, "1.2"), (-56, 0, "−0.2"), (5, 17, "−0.2")):  # the last goes down
        drag(page, first, x, y)
        if y == 0:  # of the same number, one after the other: each is a change
            note(value, "12")
        assert first.input_value() == value
    first.evaluate("field => field.blur()")
    first.click()  # marks it
    page.keyboard.type("7")
    note("7", "12")
    button(page, "[1, 1]").click()
    note("7", "12")
    button(page, "Back to the start").click()
    assert [results(page)[0], first.input_value()] == [states[0][0][0], "0.1"]
    second.fill("?")
    undo.focus()
    while states:
        page.keyboard.press("Control+z" if len(states) % 2 else "Enter")
        assert [results(page), first.input_value(), second.input_value()] == states.pop()
    assert undo.get_attribute("aria-disabled") == "true"
    assert page.locator("[aria-invalid]").count() == 0
    for limit in ("999.5", "−999.5"):
        second.fill(limit)
        second.press("ArrowUp" if limit == "999.5" else "ArrowDown")
        assert second.input_value() == limit


def test_ctrl_z_leaves_what_is_being_typed_to_the_browser(show):
    page = show(TwoHeads())
    typed = number(page, 2)
    typed.press("End")
    typed.press_sequentially("25")
    before = shown(page, "scores")
    typed.press("Control+z")  # it may take a letter back, or all of them
    assert button(page, "Undo").get_attribute("aria-disabled") == "false"
    assert typed.input_value() != "025"
    assert shown(page, "scores") != before


def test_a_finger_drags_a_number_and_scrolls_the_page_where_weights_stay_in_view(show):
    page = show(TwoHeads(), width=360)
    page.set_viewport_size({"width": 360, "height": 640})
    place = number(page, 1)
    box = place.bounding_box()
    x, y = box["x"] + 20, box["y"] + box["height"] / 2
    swipe(page, (x, y), (x + 40, y + 5))
    assert place.input_value() == "2"
    swipe(page, (x, y), (x + 5, y - 120))
    page.wait_for_function("scrollY > 40")
    assert place.input_value() == "2"
    page.locator("summary").click()
    place = field(page, "Wv of Head 2, row 4, column 2")
    place.scroll_into_view_if_needed()
    glance = page.locator(".attn-glance").bounding_box()
    assert 0 <= glance["y"] < glance["y"] + glance["height"] < place.bounding_box()["y"]


def test_rows_to_try_answer_the_lessons_question(show):
    page = show(TwoHeads(tries=TRIES))
    tries = [button(page, name) for name in ("[0, 2]", "[1, 1]")]
    assert tries[0].inner_text() == "Wq of head 2, row 1: [0, 2]"
    page.locator("summary").click()
    for pressed, (tried, row) in enumerate(zip(tries, ("02", "11"), strict=True)):
        tried.click()
        found = [one.get_attribute("aria-pressed") == "true" for one in tries]
        assert found == [i == pressed for i in range(2)]
        assert (shown(page, "weights")[2][0] == ["0.50", "0.50"]) == (pressed == 0)
        values = [field(page, f"Wq of Head 2, row 1, column {j}").input_value() for j in (1, 2)]
        assert values == list(row)


def test_cells_that_changed_flash_unless_motion_is_unwanted(show):
    page = show(TwoHeads())
    cells = "[...document.querySelectorAll('.attn-column td')]"
    flashing = f"{cells}.map((cell) => cell.getAnimations().length > 0)"
    for motion, typed in (("no-preference", "2"), ("reduce", "3")):
        page.emulate_media(reduced_motion=motion)
        before = page.evaluate(f"{cells}.map((cell) => cell.textContent)")
        page.evaluate(f"{cells}.forEach((cell) => cell.getAnimations().forEach((a) => a.finish()))")
        number(page, 1).fill(typed)
        after = page.evaluate(f"{cells}.map((cell) => cell.textContent)")
        changed = [a != b for a, b in zip(before, after, strict=True)]
        assert 0 < sum(changed) < len(after)
        wanted = changed if motion == "no-preference" else [False] * len(after)
        assert page.evaluate(flashing) == wanted


def test_weights_have_the_palettes_colors_and_columns_are_level(show):
    page = show(CASES["exactly +-80"])
    weights = page.locator(".attn-weights").first.locator("tbody td")
    colors = weights.evaluate_all(
        "cells => cells.map((cell) => [cell.style.background, cell.style.color])"
    )
    yellow, violet = (
        ["rgb(253, 231, 37)", "rgb(0, 0, 0)"],
        ["rgb(68, 1, 84)", "rgb(255, 255, 255)"],
    )
    assert colors == [yellow, violet, violet, yellow]
    page = show(largest(""), width=760)
    for step in ("scores", "weights", "output"):  # so that 2 + 1 = 3 reads across
        tops = {round(t.bounding_box()["y"]) for t in page.locator(f".attn-{step} tbody").all()}
        assert len(tops) == 1
