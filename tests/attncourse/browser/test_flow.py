"""Flow in a real browser, without a kernel: its numbers, where they come from, its steps."""

import math
import re

import pytest
import torch
from playwright.sync_api import expect
from tools.weight_pictures import arcs, color_of
from tools.widget_pages import box, numbers_in, press, style

from attncourse.widgets import Flow

PARTS = ("x", "w_q", "w_k", "w_v", "w_o")
STEPS = ("tokens queries keys values scores scaled mask weights mix join output").split()
MAPS = ("scores", "scaled", "mask", "weights")
PAUSE = 2500  # milliseconds


def by_chance(T, d, seed=0, scale=1.0):
    """Tokens and matrices, by their names."""
    generator = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(T, d, generator=generator)
    return dict(zip(PARTS, (x, *scale * torch.randn(4, d, d, generator=generator)), strict=True))


def random_flow(T=3, d=4, num_heads=2, *, seed=0, scale=1.0, **options):
    return Flow(**by_chance(T, d, seed, scale), num_heads=num_heads, origin="random", **options)


def example(text):
    x = torch.tensor([[1.0, 0], [0, 1]])
    widget = Flow(x, *torch.eye(2).expand(4, 2, 2), 2, [text, text], origin=text)
    widget.matrix = "scores"
    return widget


def largest(text):
    widget = random_flow(T=6, d=6, num_heads=6, tokens=[text] * 6, scale=9.0, causal=True)
    widget.matrix = "weights"
    return widget


ROLES = ("output.attn-live > bdi.attn-{} …", "th.attn-{} > bdi …", "tr > th.attn-{} title …")
PLACES = {
    "div.attn-widget > p.attn-note …",
    *(place.format(role) for role in ("query", "key") for place in ROLES),
}
KEY = ("[type=range]", "ArrowRight")
DAMAGES = {
    "x holds a number that isn't finite": {"x": b"\xff" * 16},
    "x should be 4 numbers in 16 bytes, but is 0": lambda _, buffers: buffers.clear(),
    "tokens should be": {"tokens": ["a"]},
    "num_heads should be": {"num_heads": 3},
    "place should be": {"place": [0, 1]},
    "sequence should be": {"sequence": [0, 7]},
}


def expected(given, h, sequence, *, causal=False):
    """Each step's matrix by its formula, in float64, with heads side by side."""
    x, *matrices = (part.float().double() for part in given.values())
    x = x[sequence]
    w_q, w_k, w_v, w_o = matrices
    q, k, v = (x @ w for w in (w_q, w_k, w_v))
    q_h, k_h, v_h = (part.unflatten(-1, (h, -1)).transpose(0, 1) for part in (q, k, v))
    scores = q_h @ k_h.mT
    scaled = scores / math.sqrt(q_h.shape[-1])
    future = torch.ones_like(scaled[0]).triu(1).bool() & causal
    masked = scaled.masked_fill(future, -math.inf)
    weights = masked.softmax(-1)
    maps = (scores, scaled, masked, weights, weights @ v_h)
    *maps, heads = (torch.cat(list(each), -1) for each in maps)
    return dict(zip(STEPS, (x, q, k, v, *maps, heads, heads, heads @ w_o), strict=True))


def go_to(page, name):
    page.get_by_role("slider", name="Step").fill(str(STEPS.index(name)))
    assert step(page) == name


def step(page):
    """The name of the step that is shown."""
    return page.locator(".attn-heading strong").inner_text()


def told(page):
    return page.locator("output").text_content()


def numbers_of(cells):
    return numbers_in(" ".join(cells.all_inner_texts()))


def assert_shows(page, name, numbers, h):
    """Fail unless a step's tables have these numbers, heads side by side or apart."""
    parts = h if name in (*MAPS, "mix") else 1
    tables = page.locator(".attn-made table").all()
    for part, matrix in zip(numbers.chunk(parts, -1), tables, strict=True):
        found = torch.tensor(numbers_of(matrix.locator("td")), dtype=torch.float64).view_as(part)
        torch.testing.assert_close(found, part, atol=0.0051, rtol=0.05)  # two digits of large ones


def table(page, caption):
    exact = page.locator("caption").filter(has_text=re.compile(f"^{caption}$"))
    return page.locator(".attn-stage table").filter(has=exact)


def number(page, caption, row, column):
    return table(page, caption).locator("tbody tr").nth(row).locator("button").nth(column)


def test_each_step_shows_the_formulas_numbers_for_every_head_count(show):
    given = by_chance(3, 4, scale=9)
    given = {name: part.bfloat16().T.contiguous().T for name, part in given.items()}
    origin, tokens, order = "trained (seed 0)", [*"abc"], [1, 2, 0]
    widget = Flow(**given, num_heads=1, causal=True, tokens=tokens, origin=origin)
    widget.sequence = order
    page = show(widget)
    note = page.locator(".attn-widget > .attn-note")
    slider, tables = page.get_by_role("slider", name="Heads"), page.locator(".attn-made table")
    for heads, causal in ((1, True), (2, False), (4, True)):
        page.get_by_label("Causal").set_checked(causal)
        assert numbers_in(slider.get_attribute("aria-valuetext")) == [heads, 4 // heads]
        assert origin in note.inner_text()
        assert ("from 1 trained head" in note.inner_text()) == (heads > 1)
        for name, numbers in expected(given, heads, order, causal=causal).items():
            go_to(page, name)
            assert_shows(page, name, numbers, heads)
            named = tables.first.locator("tbody th[scope=row]").all_inner_texts()
            assert named == [tokens[i] for i in order]
            if name == "weights":
                columns = tables.first.locator("thead tr").last.locator("th").all_inner_texts()
                assert columns == named
                color = style(tables.locator("td button").first, "backgroundColor")
                channels = torch.tensor([int(n) for n in re.findall(r"\d+", color)])
                assert (channels - color_of(numbers[0, 0])).abs().max() <= 1
        slider.press("ArrowRight")


def test_a_number_is_the_sum_of_what_is_framed_and_each_leads_to_the_step_that_made_it(show):
    page = show(Flow())  # the lesson's example, by hand
    for name, made in (("scaled", "1.41 ≈ 2 / √2"), ("weights", "0.80 ≈ e1.41 / (e1.41 + e0)")):
        go_to(page, name)
        assert told(page).endswith(f": {made}")
    page = show(random_flow(seed=8))
    traced, sources = page.locator("td.attn-traced"), page.locator("td.attn-source")
    for name in ("queries", "scores", "mix", "output"):
        go_to(page, name)
        for button in page.locator(".attn-made button").all()[1::5]:
            button.click()
            total, _, written = told(page).rpartition(": ")[2].partition(" ≈ ")
            assert "·−" not in written  # such a factor stands in parentheses
            left, right = numbers_in(written)[::2], numbers_in(written)[1::2]
            products = sum(a * b for a, b in zip(left, right, strict=True))
            assert numbers_in(total) == pytest.approx([products], abs=0.06)
            assert numbers_of(sources) == [*left, *right]
            assert traced.all_inner_texts() == [total]
            assert button.get_attribute("aria-pressed") == "true"
    for caption, row, column, at in (
        ("joined", 2, 3, "join"), ("result of head 2", 2, 1, "mix"),
        ("weights of head 2", 2, 0, "weights"), ("masked of head 2", 2, 1, "mask"),
        ("scaled of head 2", 2, 1, "scaled"), ("scores of head 2", 2, 1, "scores"),
        ("K", 1, 2, "keys"), ("X", 1, 3, "tokens"),
    ):  # fmt: skip
        pressed = number(page, caption, row, column)
        text = pressed.inner_text()
        pressed.click()
        assert step(page) == at
        assert traced.all_inner_texts() == [text]
        if at == "weights":
            assert table(page, "masked of head 2").locator(sources).count() == 3
    assert sources.count() == 0  # it is given


def test_one_way_by_keys_and_buttons_from_number_to_number_and_step_to_step(show):
    page = show(random_flow())
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    go_to(page, "scores")
    number(page, "Q", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "End", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")  # a table is one stop, where one was
    expect(number(page, "Q", 2, 2)).to_be_focused()
    moves = [("Enter", "queries"), ("PageDown", "keys"), ("PageUp", "queries")]
    for key, at in [*moves, ("PageUp", "tokens"), ("PageUp", "tokens")]:
        page.keyboard.press(key)
        assert step(page) == at
        expect(page.locator(".attn-traced button")).to_be_focused()
    back, on = (page.get_by_role("button", name=name) for name in ("Back", "Step"))
    assert back.is_disabled()
    on.click()
    number(page, "Q", 1, 3).click()
    traced, now = page.locator("table:has(.attn-traced)"), page.locator(".attn-way .attn-now")
    for name in STEPS[2:]:  # the same token and head are followed
        on.click()
        row = traced.locator(".attn-traced").evaluate("cell => cell.parentNode.sectionRowIndex")
        assert (step(page), row) == (name, 1) and now.inner_text().startswith(name)
        if name in ("scores", "weights", "mix"):
            assert traced.locator("caption").inner_text().endswith("head 2")
    assert on.is_disabled()
    back.click()
    assert step(page) == "join"


def test_tokens_take_rows_and_arcs_along_and_hebrew_ones_leave_the_sum_in_order(show):
    tokens = ["החתול", "ישב", "שם"]
    widget = random_flow(tokens=tokens)
    widget.matrix, widget.place = "weights", [1, 9, 9]  # the nearest there is
    page = show(widget)
    parts = page.locator("output > *")
    lefts = [part.bounding_box()["x"] for part in parts.all()]
    assert parts.all_inner_texts()[:2] == tokens[1:] and lefts == sorted(lefts)
    assert "head 2" in told(page)
    page.get_by_label("Token at place 0").select_option("שם")
    made = expected(by_chance(3, 4), 2, [2, 1, 2])
    row = made["weights"][1]  # token 1, both heads
    torch.testing.assert_close(arcs(page), row[row >= 0.01], atol=1e-5, rtol=0)
    go_to(page, "output")
    assert_shows(page, "output", made["output"], 2)
    named = table(page, "output").locator("tbody th").all_inner_texts()
    assert named == ["שם (0)", "ישב", "שם (2)"]


SCROLLS = "boxes => boxes.some((box) => box.scrollWidth > box.clientWidth)"


@pytest.fixture
def still_page(show):
    """A phone's page with a still clock, which would outlive it: other tests share its tab."""
    page = show(random_flow(T=6, d=6, num_heads=3, tokens=["token"] * 6), width=360)
    page.clock.install(time=0)
    page.clock.pause_at(60_000)
    yield page
    page.clock.resume()


def test_a_phone_shows_one_head_at_a_time_and_plays_steps_that_fit_and_move_nothing(still_page):
    page = still_page
    go_to(page, "weights")
    tables = page.locator(".attn-stage caption:visible")
    number(page, "weights of head 1", 2, 1).tap()
    assert tables.all_inner_texts() == ["masked of head 1", "weights of head 1"]
    third = page.get_by_role("button", name="head 3")
    third.tap()
    assert third.get_attribute("aria-pressed") == "true"
    assert tables.all_inner_texts() == ["masked of head 3", "weights of head 3"]
    assert "in head 3: " in told(page)
    go_to(page, "tokens")
    press(page, "Play")
    page.clock.run_for(50)  # a frame: where nothing was idle yet, the room is kept now
    assert page.locator("output").get_attribute("aria-live") == "off"
    places = set()
    for name in STEPS:
        assert step(page) == name
        places.add(tuple(round(box(page, at)["top"]) for at in (".attn-stage", ".attn-legend")))
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert not page.locator(".attn-stage .attn-scroll").evaluate_all(SCROLLS)
        page.clock.run_for(PAUSE)
    assert len(places) == 1
    assert page.locator("output").get_attribute("aria-live") == "polite"
    press(page, "Play")  # it has stopped by itself, and begins anew
    assert step(page) == "tokens"
    go_to(page, "mask")
    page.clock.run_for(3 * PAUSE)
    assert step(page) == "mask"  # a reader who looks at something stays there
    press(page, "Play")
    number(page, "scaled of head 3", 0, 0).click()
    page.clock.run_for(3 * PAUSE)
    assert step(page) == "scaled"
