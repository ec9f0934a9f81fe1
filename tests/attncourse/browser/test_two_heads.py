"""TwoHeads in a real browser, without a kernel: its numbers, its fields, its manners."""

import math

import pytest
import torch
from tools.widget_pages import box, numbers_in, swipe

from attncourse.widgets import TwoHeads


def random_heads(T=2, d=4, d_k=2, *, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(T, d, generator=generator)
    return TwoHeads(x, scale * torch.randn(2, 3, d, d_k, generator=generator))


TRIES = [(2, "W_q", 1, [0.0, 2.0]), (2, "W_q", 1, [1.0, 1.0])]


def example(_text):
    return TwoHeads(tries=TRIES)


def largest(_text):
    return random_heads(T=4, d=6, d_k=3, scale=90.0)


PLACES = set()
KEY = ("input", "ArrowUp")
DAMAGES = {
    "heads should be 48 numbers": {"heads": bytes(188)},
    "x holds a number that isn't finite": {"x": b"\xff" * 32},
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


TEXTS = """tables => tables.map((table) => [...table.querySelectorAll("tbody tr")].map((row) =>
  [...row.querySelectorAll("td")].map((cell) => cell.textContent)))"""
MADE = ".attn-projections .attn-scroll:not(.attn-editor *)"  # queries, keys and values


def shown(page, selector):
    """What tables write: a list of matrices of text."""
    return page.locator(selector).evaluate_all(TEXTS)


def assert_written(texts, numbers):
    """Fail unless a matrix of texts says these numbers, to two decimals."""
    found = [[numbers_in(text)[0] for text in row] for row in texts]
    slack = 0.05 if numbers.abs().max() >= 1e5 else 0  # which are written as 1.4e12
    torch.testing.assert_close(torch.tensor(found).double(), numbers, atol=0.0051, rtol=slack)


def preferences(results, i):
    """The numbers of what is said of a token: where each head looks most, and its weight."""
    told = [i]
    for head, name in zip(results, (1, 2, results[2]["q"].shape[1]), strict=True):
        most, *others = head["weights"][i].sort(descending=True).values.tolist()
        is_tie = most - others[0] < 0.005
        told += [*([] if is_tie else [head["weights"][i].argmax().item()]), most, name]
    return told


def assert_shows(page, x, heads, *, half_typed=False):
    """Fail unless fields have these numbers, and tables, glance and words torch's results."""
    if not half_typed:
        fields = page.locator(".attn-number-field")
        values = numbers_in(" ".join(fields.evaluate_all("all => all.map((one) => one.value)")))
        torch.testing.assert_close(torch.tensor(values), torch.cat([x.flatten(), heads.flatten()]))
    wanted = expected(x, heads)
    for step in ("scores", "scaled", "weights", "output"):
        for matrix, result in zip(shown(page, f".attn-{step}"), wanted, strict=True):
            assert_written(matrix, result[step])
    one, two, big = shown(page, ".attn-scores")
    for of_token in zip(big, one, two, strict=True):
        for total, *summands in zip(*of_token, strict=True):
            assert numbers_in(total)[1:] == numbers_in(" ".join(summands))
    made = [result[name] for result in wanted for name in "qkv"]
    for matrix, numbers in zip(shown(page, MADE), made, strict=True):
        assert_written(matrix, numbers)
    little = numbers_in(" ".join(page.locator(".attn-little span").all_text_contents()))
    weights = torch.cat([result["weights"].flatten() for result in wanted])
    torch.testing.assert_close(torch.tensor(little).double(), weights, atol=0.0051, rtol=0)
    if len(x) > 1:
        for i, sentence in enumerate(page.locator("output p").all_inner_texts()):
            assert numbers_in(sentence) == pytest.approx(preferences(wanted, i), abs=0.0051)


def field(page, label):
    return page.get_by_label(label, exact=True)


def number(page, column, token=0):
    return field(page, f"X, the tokens, token {token}, column {column}")


def button(page, name):
    return page.get_by_role("button", name=name)


COLORS = "cells => cells.map((cell) => [cell.style.background, cell.style.color])"


def test_the_browser_computes_what_torch_computes(show):
    x, heads = torch.tensor([[8.0], [-8.0]]), torch.tensor([1.0, 1.25, 1.0] * 2)
    cases = [
        TwoHeads(x, heads.view(2, 3, 1, 1)),  # scores of +-80
        random_heads(T=4, d=6, d_k=3, seed=5, scale=4.0),  # and beyond
        TwoHeads(torch.tensor([[1.0], [1.001]]), torch.ones(2, 3, 1, 1)),  # alike to two decimals
        TwoHeads(torch.tensor([[1.0], [1.05]]), torch.ones(2, 3, 1, 1)),
        TwoHeads(torch.tensor([[1e3, -1e3], [999.0, 1.0]]), torch.full((2, 3, 2, 2), 1e3)),
    ]
    page = show(*cases, width=760)
    for root, widget in zip(page.locator(".attn-widget").all(), cases, strict=True):
        assert_shows(root, widget.x, widget.heads)
        for step in ("scores", "weights", "output"):  # so that 2 + 1 = 3 reads across
            tops = {round(t.bounding_box()["y"]) for t in root.locator(f".attn-{step} tbody").all()}
            assert len(tops) == 1
    yellow = ["rgb(253, 231, 37)", "rgb(0, 0, 0)"]  # the palette's ends
    violet = ["rgb(68, 1, 84)", "rgb(255, 255, 255)"]
    weights = page.locator(".attn-weights").first.locator("tbody td")  # of scores of +-80
    assert weights.evaluate_all(COLORS) == [yellow, violet, violet, yellow]


def test_what_is_no_number_is_refused_in_words_beside_the_field(show):
    page = show(TwoHeads())
    x, heads = TwoHeads().x.clone(), TwoHeads().heads
    place, other = number(page, 2), number(page, 1)
    refusal = page.locator(".attn-tokens .attn-refusal")
    for text, words in (("7" * 10_000 + "x", "7777"), ("1,234", "comma"), ("-1000.1", "1000")):
        place.fill(text)
        told = refusal.inner_text()
        assert told.startswith("Token 0, column 2: ") and numbers_in(told)[-1] == 0
        assert words in told and len(told) < 100
        assert place.get_attribute("aria-invalid") == "true"
    assert_shows(page, x, heads, half_typed=True)
    other.fill("-")  # may become a number
    assert "column 2" in refusal.inner_text()
    other.press("Tab")
    assert "column 1" in refusal.inner_text()
    other.fill("1.")  # a number already, and stays as it is typed
    assert other.input_value() == "1."
    assert "column 2" in refusal.inner_text()  # two refused ones are mended one by one
    place.fill("3")
    assert refusal.inner_text() == "" and place.get_attribute("aria-invalid") is None
    x[0, 1] = 3
    assert_shows(page, x, heads)
    other.fill("?")
    button(page, "Back to the start").click()
    assert refusal.inner_text() == "" and page.locator("[aria-invalid]").count() == 0
    assert_shows(page, TwoHeads().x, heads)


def drag(page, place, x, y=0):
    left, top, _, height = place.bounding_box().values()
    page.mouse.move(left + 20, top + height / 2)
    page.mouse.down()
    page.mouse.move(left + 20 + x, top + height / 2 + y, steps=4)
    page.mouse.up()


EDITS = {  # label: what is typed into it, what that means, and where it goes
    "X, the tokens, token 0, column 4": ("-1.25", -1.25, "x", (0, 3)),
    "Wk of Head 1, row 4, column 1": ("\u22120,5", -0.5, "heads", (0, 1, 3, 0)),
    "Wv of Head 2, row 4, column 2": ("1/4", 0.25, "heads", (1, 2, 3, 1)),
}


def test_each_change_by_typing_keys_mouse_and_buttons_is_computed_and_taken_back(show):
    widget = TwoHeads(torch.tensor([[0.1, 99.5, 0, 0]]), tries=TRIES)
    page = show(widget)
    page.locator("summary").click()
    first, second, undo = number(page, 1), number(page, 2), button(page, "Undo")
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    now = {"x": widget.x.clone(), "heads": widget.heads.clone()}
    states = []

    def note(name, place, value, half_typed=False):
        now[name][place] = value
        states.append([numbers.clone() for numbers in now.values()])
        assert_shows(page, *now.values(), half_typed=half_typed)

    note("x", (0, 0), 0.1)
    for key, value in (("ArrowUp", "1.1"), ("ArrowDown", "0.1"), ("Shift+ArrowUp", "0.2")):
        first.press(key)  # one after the other: all of it is one change
        assert page.evaluate("lastKey.defaultPrevented")
        assert first.input_value() == value  # and not 0.10000000149
    note("x", (0, 0), 0.2)
    second.fill("999.5")
    second.press("ArrowUp")  # over the edge
    note("x", (0, 1), 999.5)
    for right, value in ((40, 1.2), (-56, -0.2)):  # of the same number: each is a change
        drag(page, first, right)
        note("x", (0, 0), value)
    drag(page, first, 5, 17)  # which scrolls
    first.evaluate("field => field.blur()")
    first.click()  # marks it
    page.keyboard.type("7")
    note("x", (0, 0), 7)
    for label, (text, value, *where) in EDITS.items():
        field(page, label).fill(text)
        note(*where, value, half_typed=True)
    button(page, "[1, 1]").click()
    note("heads", (1, 0, 0), torch.tensor([1.0, 1.0]), half_typed=True)
    button(page, "Back to the start").click()
    assert_shows(page, widget.x, widget.heads)
    second.fill("?")
    undo.focus()
    while states:
        page.keyboard.press("Control+z" if len(states) % 2 else "Enter")
        assert_shows(page, *states.pop())
    assert undo.get_attribute("aria-disabled") == "true"
    assert page.locator("[aria-invalid]").count() == 0


# How many cells are framed for a moment.
FLASHING = "cells => cells.filter((cell) => cell.getAnimations().length > 0).length"


def test_by_touch_rows_are_tried_a_number_is_dragged_and_weights_stay_in_view(show):
    page = show(TwoHeads(tries=TRIES), width=360)
    page.set_viewport_size({"width": 360, "height": 640})
    x, heads = TwoHeads().x, TwoHeads().heads.clone()
    buttons = page.get_by_role("group", name="Rows to try").get_by_role("button")
    assert buttons.first.inner_text() == "Wq of head 2, row 1: [0, 2]"
    for i, (*_, numbers) in enumerate(TRIES):
        page.emulate_media(reduced_motion=["reduce", "no-preference"][i])
        buttons.nth(i).tap()
        cells = page.locator(".attn-column td")
        assert (0 < cells.evaluate_all(FLASHING) < cells.count()) == (i == 1)
        heads[1, 0, 0] = torch.tensor(numbers)
        assert_shows(page, x, heads)
        pressed = [one.get_attribute("aria-pressed") == "true" for one in buttons.all()]
        assert pressed == [i == 0, i == 1]
    place = number(page, 1)
    place.scroll_into_view_if_needed()
    left, top, _, height = place.bounding_box().values()
    start, scrolled = (left + 20, top + height / 2), page.evaluate("scrollY")
    swipe(page, start, (start[0] + 40, start[1] + 5))
    assert place.input_value() == "2"
    swipe(page, start, (start[0] + 5, start[1] - 120))
    page.wait_for_function(f"scrollY > {scrolled} + 40")
    assert place.input_value() == "2"
    page.locator("summary").click()
    place = field(page, "Wv of Head 2, row 4, column 2")
    place.scroll_into_view_if_needed()
    glance = box(page, ".attn-glance")
    assert 0 <= glance["top"] and glance["bottom"] < place.bounding_box()["y"]
