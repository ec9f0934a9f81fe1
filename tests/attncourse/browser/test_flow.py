"""Flow in a real browser, without a kernel: its numbers, where they come from, its steps."""

import math
import re

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.weight_pictures import arcs
from tools.widget_pages import asked, press, target_sizes
from tools.widget_pages import said as told

from attncourse.widgets import Flow
from attnlib import MultiHeadAttention, split_heads

GIVEN = ("x", "w_q", "w_k", "w_v", "w_o")
STEPS = ("tokens queries keys values scores scaled mask weights mix join output").split()


def random_flow(T=3, d=4, num_heads=2, *, tokens=None, seed=0, scale=1.0, causal=False):
    generator = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(T, d, generator=generator)
    matrices = scale * torch.randn(4, d, d, generator=generator)
    return Flow(x, *matrices, num_heads, tokens, causal=causal, origin="random")


def example(text):
    x = torch.tensor([[1.0, 0], [0, 1]])
    widget = Flow(x, *torch.eye(2).expand(4, 2, 2), 2, [text, text], origin=text)
    widget.matrix = "scores"
    return widget


def largest(text):
    widget = random_flow(T=6, d=6, num_heads=6, tokens=[text] * 6, scale=9.0, causal=True)
    widget.matrix = "weights"
    return widget


PLACES = {
    "div.attn-widget > p.attn-note …",
    *(
        place.format(role)
        for role in ("query", "key")
        for place in (
            "output.attn-live > bdi.attn-{} …",
            "th.attn-{} > bdi …",
            "tr > th.attn-{} title …",
        )
    ),
}
KEY = ("[type=range]", "ArrowRight")


def expected(widget):
    """attnlib's numbers, in float64: of each step its matrix, with heads side by side."""
    d, h = widget.d, widget.num_heads
    state = widget.get_state()
    given = {
        name: torch.frombuffer(bytearray(state[name]), dtype=torch.float32).double()
        for name in GIVEN
    }
    x = given["x"].view(1, widget.T, d)[:, widget.sequence]
    module = MultiHeadAttention(d, h, bias=False).double()
    with torch.no_grad():
        for letter in "qkvo":
            getattr(module, f"W_{letter}").weight.copy_(given[f"w_{letter}"].view(d, d).T)
        output, weights = module(x, causal=widget.causal, need_weights=True)
        q, k, v = (getattr(module, f"W_{letter}")(x)[0] for letter in "qkv")
    q_heads, k_heads, v_heads = (split_heads(m[None], h)[0] for m in (q, k, v))
    scores = q_heads @ k_heads.mT
    scaled = scores / math.sqrt(d // h)
    future = torch.ones(widget.T, widget.T, dtype=torch.bool).triu(1) & widget.causal
    masked = scaled.masked_fill(future, -math.inf)
    maps = {"scores": scores, "scaled": scaled, "masked": masked, "weights": weights[0]}
    side_by_side = {name: torch.cat(list(m), -1) for name, m in maps.items()}
    heads = torch.cat(list(weights[0] @ v_heads), -1)
    made = {"x": x[0], "q": q, "k": k, "v": v, **side_by_side}
    return made | {"heads": heads, "joined": heads, "output": output[0]}


COMPUTE = """(model) => {
  const {readState} = attnModules["flow/widget.js"];
  const {computeAll} = attnModules["flow/numbers.js"];
  const made = Object.entries(computeAll(readState(model)));
  return Object.fromEntries(made.map(([name, {values}]) => [name, values]));
}"""


def assert_equal_to_attnlib(page, widget):
    found = asked(page, widget, COMPUTE)
    for name, numbers in expected(widget).items():
        ours = torch.tensor(found[name], dtype=torch.float64).view_as(numbers)
        torch.testing.assert_close(ours, numbers, atol=1e-9, rtol=1e-9, msg=name)


CASES = {
    "the lesson's": Flow(),
    "random": random_flow(T=3, d=4, num_heads=2, seed=1),
    "largest": random_flow(T=6, d=6, num_heads=3, seed=2),
    "one token": random_flow(T=1, d=6, num_heads=2, seed=3, causal=True),
    "width 1": random_flow(T=5, d=1, num_heads=1, seed=4),
    "prime": random_flow(T=2, d=5, num_heads=5, seed=5, causal=True),
    "scores to thousands": random_flow(T=4, d=6, num_heads=2, seed=6, scale=9.0),
    "all equal": Flow(torch.ones(3, 2), *torch.ones(4, 2, 2), 1),
    "as large as float32": Flow(torch.full((2, 2), 3e38), *torch.full((4, 2, 2), -3e38), 2),
}


@st.composite
def flows(draw):
    T, d = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    heads = draw(st.sampled_from([h for h in range(1, d + 1) if d % h == 0]))
    number = st.floats(-8, 8, width=32)

    def matrix(rows):
        row = st.lists(number, min_size=d, max_size=d)
        return torch.tensor(draw(st.lists(row, min_size=rows, max_size=rows)))

    widget = Flow(matrix(T), *(matrix(d) for _ in "qkvo"), heads, causal=draw(st.booleans()))
    widget.sequence = draw(st.lists(st.integers(0, T - 1), min_size=T, max_size=T))
    return widget


def test_the_browser_computes_what_attnlib_computes_whatever_is_given(show):
    page = show(Flow())
    for widget in CASES.values():
        assert_equal_to_attnlib(page, widget)

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(flows())
    def agree(widget):
        assert_equal_to_attnlib(page, widget)

    agree()


def step(page):
    """Return the name of the step that is shown."""
    return page.locator(".attn-heading strong").inner_text()


def go_to(page, name):
    slider = page.get_by_role("slider", name="Step")
    slider.press("Home")
    for _ in range(STEPS.index(name)):
        slider.press("ArrowRight")
    assert step(page) == name


def numbers_of(page, caption):
    """The numbers of the table with this caption, row by row, as texts."""
    rows = table(page, caption).locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def table(page, caption):
    exact = page.locator("caption").filter(has_text=re.compile(f"^{caption}$"))
    return page.locator(".attn-stage table").filter(has=exact)


def number(page, caption, row, column):
    return table(page, caption).locator("tbody tr").nth(row).locator("button").nth(column)


def framed(page):
    """What is framed as a source: a list of (caption, row, column)."""
    return page.locator("td.attn-source").evaluate_all(
        """(cells) => cells.map((cell) => [
            cell.closest("table").caption.textContent, cell.parentNode.sectionRowIndex,
            [...cell.parentNode.querySelectorAll("td")].indexOf(cell)])"""
    )


def said(page):
    return told(page).replace("\n", "")


def test_the_lessons_example_as_on_paper(show):
    page = show(Flow())
    assert page.get_by_text("Numbers: hand-built").is_visible()
    assert numbers_of(page, "X") == [list("1010"), list("0101")]
    go_to(page, "scores")
    assert numbers_of(page, "scores of head 1") == [["2", "0"], ["3", "2"]]
    assert numbers_of(page, "scores of head 2") == [["1", "3"], ["1", "3"]]
    go_to(page, "weights")
    assert numbers_of(page, "weights of head 1") == [["0.80", "0.20"], ["0.67", "0.33"]]
    assert numbers_of(page, "weights of head 2") == [["0.20", "0.80"], ["0.20", "0.80"]]
    go_to(page, "output")
    assert numbers_of(page, "output") == [
        ["3.22", "2.78", "−0.22", "0.22"],
        ["2.95", "3.05", "0.05", "−0.05"],
    ]


def test_each_step_says_how_its_first_number_is_made(show):
    page = show(Flow())
    sums = []
    for name in STEPS:
        go_to(page, name)
        sums.append(said(page))
    assert [text.rpartition(": ")[2] for text in sums] == [
        "1 is given.",
        *("1 = 1·1 + 0·0 + 1·0 + 0·1", *["2 = 1·1 + 0·0 + 1·1 + 0·0"] * 2),
        *("2 = 1·2 + 0·1", "1.41 ≈ 2 / √2", "this look is allowed."),
        "0.80 ≈ e1.41 / (e1.41 + e0)",
        "1.61 ≈ 0.80·2 + 0.20·0",
        "1.61 is number 1 of head 1's result.",
        "3.22 ≈ 1.61·1 + 1.39·0 + 1.61·1 + 1.39·0",
    ]
    head = ["in head 1" in text for text in sums]
    assert head == [name not in ("tokens", "join", "output") for name in STEPS]
    page.get_by_label("Causal").click()
    go_to(page, "mask")
    assert numbers_of(page, "masked of head 2")[0][1] == "−∞"
    number(page, "masked of head 1", 0, 1).click()
    assert re.match("token 0 looks at token 1 in head 1: −∞ .* 0: a look ahead", said(page))
    go_to(page, "weights")
    number(page, "weights of head 1", 0, 0).click()
    assert said(page).endswith("1.00 = e1.41 / (e1.41 + e−∞)")
    assert numbers_of(page, "weights of head 1")[0] == ["1.00", "0.00"]
    go_to(page, "queries")
    number(page, "Q", 1, 2).tap()
    assert said(page) == "token 1, number 1 in head 2: 1 = 0·0 + 1·1 + 0·1 + 1·0"


def value_of(text):
    return float(text.replace("−", "-").replace("∞", "inf"))


def buttons_of(page, steps):
    for name in steps:
        go_to(page, name)
        yield from page.locator(".attn-made button").all()


def test_what_is_framed_is_what_the_sum_names_and_adds_up(show):
    """For every number of a step: framed numbers, multiplied in pairs and added, make it."""
    page = show(random_flow(T=3, d=4, num_heads=2, seed=8))
    for button in buttons_of(page, ("queries", "scores", "mix", "output")):
        button.click()
        total, _, written = said(page).rpartition(": ")[2].partition(" ≈ ")
        terms = [
            [value_of(factor.strip("()")) for factor in term.split("·")]
            for term in written.split(" + ")
        ]
        assert sum(a * b for a, b in terms) == pytest.approx(value_of(total), abs=0.06)
        numbers = [*map(value_of, page.locator("td.attn-source").all_inner_texts())]
        half = len(numbers) // 2
        assert terms == [[a, b] for a, b in zip(numbers[:half], numbers[half:], strict=True)]
        assert button.get_attribute("aria-pressed") == "true"
        assert page.locator("td.attn-traced").all_inner_texts() == [total]
    assert framed(page) == [
        *[["joined", 2, c] for c in range(4)],
        *[["Wo", c, 3] for c in range(4)],
    ]
    go_to(page, "queries")
    number(page, "Q", 1, 3).click()
    for name in STEPS[2:]:  # the same token and head are followed
        press(page, "Step")
        row = page.locator("td.attn-traced").evaluate("cell => cell.parentNode.sectionRowIndex")
        assert (step(page), row) == (name, 1)
        if name in ("scores", "weights", "mix"):
            caption = page.locator("table:has(.attn-traced) caption").inner_text()
            assert caption.endswith("of head 2")
        if name == "weights":
            assert framed(page) == [["masked of head 2", 1, j] for j in range(3)]


def test_a_source_leads_to_the_step_that_made_it_and_so_to_what_is_given(show):
    page = show(random_flow(seed=10))
    go_to(page, "output")
    trail = [
        ("joined", 2, 3, "join"),
        ("result of head 2", 2, 1, "mix"),
        ("weights of head 2", 2, 0, "weights"),
        ("masked of head 2", 2, 1, "mask"),
        ("scaled of head 2", 2, 1, "scaled"),
        ("scores of head 2", 2, 1, "scores"),
        ("K", 1, 2, "keys"),
        ("X", 1, 3, "tokens"),
    ]
    for caption, row, column, at in trail:
        pressed = number(page, caption, row, column)
        text = pressed.inner_text()
        pressed.click()
        assert step(page) == at
        assert page.locator("td.attn-traced").all_inner_texts() == [text]
        assert page.evaluate("document.activeElement.ariaPressed") == "true"
    assert said(page).endswith("is given.")
    go_to(page, "values")
    number(page, "Wv", 3, 2).click()
    assert step(page) == "values"
    assert said(page).startswith("Wv, row 4, column 1 in head 2: ")
    assert said(page).endswith("is given.")
    assert framed(page) == []


def test_numbers_are_reached_and_pressed_by_keys(show):
    page = show(random_flow(T=3, d=4, num_heads=2))
    go_to(page, "scores")
    number(page, "Q", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "End", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    assert number(page, "Q", 2, 2).evaluate("button => button === document.activeElement")
    page.keyboard.press("Enter")
    assert step(page) == "queries"
    assert page.evaluate("document.activeElement.matches('.attn-traced button')")
    page.keyboard.press("PageDown")
    assert step(page) == "keys"
    assert page.evaluate("document.activeElement.matches('.attn-traced button')")
    for _ in range(3):
        page.keyboard.press("PageUp")
    assert step(page) == "tokens"


def test_buttons_and_slider_go_step_by_step_and_stop_at_the_ends(show):
    page = show(Flow())
    back, on = (page.get_by_role("button", name=name) for name in ("Back", "Step"))
    assert back.get_attribute("aria-disabled") == "true"
    back.click(force=True)
    seen = [step(page)]
    for _ in STEPS:
        on.click(force=True)
        seen.append(step(page))
    assert seen == [*STEPS, "output"]
    assert on.get_attribute("aria-disabled") == "true"
    back.click()
    assert step(page) == "join"
    slider = page.get_by_role("slider", name="Step")
    assert slider.get_attribute("aria-valuetext") == "10 of 11: join"


PAUSE = 2500  # milliseconds


def test_it_plays_to_the_end_pauses_and_starts_anew(show):
    page = show(Flow())
    page.clock.install()
    animation = "getComputedStyle(document.querySelector('.attn-made')).animationName"
    assert page.evaluate(animation) == "none"  # what a page opens with stands there at once
    press(page, "Play")
    page.clock.run_for(2 * PAUSE)
    assert step(page) == "keys"
    assert page.evaluate(animation) != "none"
    assert page.locator("output").get_attribute("aria-live") == "off"
    press(page, "Pause")
    page.clock.run_for(3 * PAUSE)
    assert step(page) == "keys"
    assert page.locator("output").get_attribute("aria-live") == "polite"
    press(page, "Play")
    page.clock.run_for(20 * PAUSE)
    assert step(page) == "output"
    press(page, "Play")  # it has stopped by itself
    assert step(page) == "tokens"
    page.clock.run_for(PAUSE)
    assert step(page) == "queries"
    number(page, "Q", 0, 0).click()  # a reader who presses a number looks at it
    page.clock.run_for(5 * PAUSE)
    assert step(page) == "queries"
    press(page, "Play")
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Pause").wait_for(state="hidden")
    assert page.get_by_role("button", name="Play").count() == 0  # nor is there anything to play
    before = step(page)
    page.clock.run_for(3 * PAUSE)
    assert step(page) == before
    press(page, "Step")
    assert step(page) != before
    assert page.evaluate(animation) == "none"


@pytest.mark.parametrize(("matrix", "width"), [("x", 1000), ("weights", 1000), ("weights", 360)])
def test_arcs_show_what_the_steps_come_to(show, matrix, width):
    widget = random_flow(T=3, num_heads=2)
    widget.matrix, widget.place = matrix, [1, 0, 0]
    page = show(widget, width=width)
    page.locator(".attn-arcs-drawing").wait_for()
    page.locator(".attn-arc").first.wait_for(state="attached")
    row = expected(widget)["weights"][1]  # token 1, both heads
    torch.testing.assert_close(arcs(page), row[row >= 0.01], atol=1e-5, rtol=0)


def test_nothing_moves_on_a_phone_from_step_to_step_nor_while_it_plays(show):
    page = show(random_flow(T=3, d=4, num_heads=2), width=360)
    below, table = page.locator(".attn-legend"), page.locator(".attn-stage")
    on = page.get_by_role("button", name="Step")
    on.click()
    places = set()
    for _ in STEPS:
        places.add((round(table.bounding_box()["y"]), round(below.bounding_box()["y"])))
        on.click(force=True)
    assert len(places) == 1
    sentence = page.locator(".attn-live")
    assert sentence.bounding_box()["y"] < table.bounding_box()["y"]
    press(page, "Back")
    page.set_viewport_size({"width": 1000, "height": 900})
    assert sentence.bounding_box()["y"] > table.bounding_box()["y"]
    page = show(random_flow(T=3, d=4, num_heads=4), width=360)
    page.clock.install()
    press(page, "Play")
    page.clock.run_for(50)  # a frame: where nothing was idle yet, the room is kept now
    places = set()
    for _ in STEPS:
        places.add(round(page.locator(".attn-legend").bounding_box()["y"]))
        page.clock.run_for(PAUSE)
    assert step(page) == "output" and len(places) == 1


def test_the_number_of_heads_cuts_the_same_matrices_anew(show):
    widget = random_flow(T=3, d=4, num_heads=1, seed=11)
    page = show(widget)
    slider = page.get_by_role("slider", name="Heads")
    go_to(page, "queries")
    queries = numbers_of(page, "Q")
    go_to(page, "scores")
    for heads in (1, 2, 4):
        assert slider.get_attribute("aria-valuetext") == f"{heads} of width {4 // heads}"
        assert page.locator(".attn-made table").count() == heads
        wanted = expected(random_flow(T=3, d=4, num_heads=heads, seed=11))["scores"]
        found = page.locator(".attn-made tbody td").all_inner_texts()  # head after head
        wanted = torch.cat(wanted.split(3, dim=-1)).flatten().tolist()
        assert [*map(value_of, found)] == pytest.approx(wanted, abs=0.0051)
        slider.press("ArrowRight")
    go_to(page, "queries")
    assert numbers_of(page, "Q") == queries


def test_tokens_change_places_and_their_rows_go_with_them(show):
    page = show(random_flow(T=3, d=4, tokens=["the", "cat", "sat"]))
    rows = numbers_of(page, "X")
    page.get_by_label("Token at place 0").select_option("sat")
    assert numbers_of(page, "X") == [rows[2], rows[1], rows[2]]
    assert table(page, "X").locator("tbody th").all_inner_texts() == ["sat (0)", "cat", "sat (2)"]
    go_to(page, "output")
    outputs = numbers_of(page, "output")
    assert outputs[0] == outputs[2] != outputs[1]  # without a mask a place means nothing


def test_every_matrix_is_a_table_with_headers(show):
    page = show(random_flow(T=3, d=4, num_heads=2, tokens=["the", "cat", "sat"]))
    for name in STEPS:
        go_to(page, name)
        for matrix in page.locator(".attn-stage table").all():
            assert matrix.locator("caption").inner_text()
            columns = matrix.locator("tbody tr").first.locator("td").count()
            assert matrix.locator("thead tr").last.locator("th[scope=col]").count() == columns
            rows = matrix.locator("tbody tr").count()
            assert matrix.locator("tbody th[scope=row]").count() == rows
    go_to(page, "weights")
    heads = table(page, "weights of head 1").locator("thead th")
    assert heads.all_inner_texts() == ["the", "cat", "sat"]


def test_hebrew_tokens_leave_the_sum_in_order(show):
    page = show(random_flow(T=2, d=2, num_heads=1, tokens=["החתול", "ישב"]))
    go_to(page, "scores")
    parts = page.locator("output > *")
    lefts = [part.bounding_box()["x"] for part in parts.all()]
    assert parts.all_inner_texts()[:2] == ["החתול", "החתול"]
    assert lefts == sorted(lefts)
    page.evaluate("document.documentElement.dir = 'rtl'")
    assert parts.last.evaluate("node => getComputedStyle(node).direction") == "ltr"


def test_on_a_phone_each_step_fits_and_can_be_read(show):
    """The largest that is taken: no box of it scrolls, and no text is smaller than 9 pixels."""
    page = show(random_flow(T=6, d=6, num_heads=3, tokens=["token"] * 6), width=360)
    for name in STEPS:
        go_to(page, name)
        assert_fits(page)


def assert_fits(page):
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    scrolling = page.locator(".attn-stage .attn-scroll").evaluate_all(
        "boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth).length"
    )
    assert scrolling == 0
    sizes = page.locator(".attn-widget *").evaluate_all(
        "nodes => nodes.map((node) => parseFloat(getComputedStyle(node).fontSize))"
    )
    assert min(sizes) >= 9
    assert min(target_sizes(page)) >= 24


def test_a_phone_shows_one_head_at_a_time(show):
    page = show(random_flow(T=3, d=4, num_heads=4, causal=True), width=360)
    go_to(page, "weights")
    tables = page.locator(".attn-stage caption:visible")
    assert tables.all_inner_texts() == ["masked of head 1", "weights of head 1"]
    number(page, "weights of head 1", 2, 1).click()
    page.get_by_role("button", name="head 3").click()
    assert tables.all_inner_texts() == ["masked of head 3", "weights of head 3"]
    assert said(page).startswith("token 2 looks at token 1 in head 3")
    wide = show(random_flow(T=3, d=4, num_heads=4))
    go_to(wide, "weights")
    assert wide.locator(".attn-made caption:visible").count() == 4
    assert wide.get_by_role("button", name="head 3").count() == 0


def test_frames_are_seen_in_forced_colors_and_weights_keep_theirs(show):
    page = show(Flow())
    page.emulate_media(forced_colors="active")
    go_to(page, "weights")
    styles = (
        "cell => [getComputedStyle(cell).borderTopStyle, getComputedStyle(cell).borderTopWidth]"
    )
    assert page.locator("td.attn-traced").first.evaluate(styles) == ["solid", "2px"]
    assert page.locator("td.attn-source").first.evaluate(styles) == ["dashed", "2px"]
    others = page.locator(".attn-stage tbody td:not([class*=attn])")
    assert {width for _, width in (c.evaluate(styles) for c in others.all())} == {"0px"}
    kept = "b => getComputedStyle(b).backgroundColor === b.style.backgroundColor"
    assert page.locator(".attn-made td button").first.evaluate(kept)
    page.emulate_media(forced_colors="none")


def test_what_python_chose_is_shown(show):
    widget = random_flow(T=3, d=4, num_heads=2)
    widget.matrix, widget.place = "weights", [2, 1, 0]
    page = show(widget)
    assert step(page) == "weights"
    assert said(page).startswith("token 2 looks at token 0 in head 2")
    widget.place = [9, 9, 9]  # the nearest there is
    assert said(show(widget)).startswith("token 2 looks at token 2 in head 2")


DAMAGES = {
    "w_o should be 4 numbers in 16 bytes, but is 12": {"w_o": bytes(12)},
    "x holds a number that isn't finite": {"x": b"\xff" * 16},
    "x should be 4 numbers in 16 bytes, but is 0": lambda _, buffers: buffers.clear(),
    "T should be": {"T": 0},
    "tokens should be": {"tokens": ["a"]},
    "num_heads should be": {"num_heads": 3},
    "matrix should be": {"matrix": "y"},
    "place should be": {"place": [0, 1]},
    "sequence should be": {"sequence": [0, 7]},
}


HEIGHTS = "['.attn-stage', '.attn-live'].map((s) => document.querySelector(s).style.minHeight)"
PRESS_AND_COUNT_TWINS = """(names) => {
  window.twins = 0;
  const watcher = new MutationObserver((records) => {
    for (const {addedNodes} of records)
      for (const node of addedNodes) twins += node.classList?.contains("attn-twin") ?? 0;
  });
  watcher.observe(document.querySelector(".attn-told-stage"), {childList: true});
  const nodes = [...document.querySelectorAll(".attn-widget :is(button, label)")];
  for (const name of names) nodes.find((node) => node.textContent === name).click();
  return watcher.takeRecords().length; // what is measured before the click is seen
}"""


def test_steps_are_measured_before_a_reader_goes_on_and_once(show):
    """All at once they would take longer than a click may."""
    page = show(Flow())
    page.evaluate(PRESS_AND_COUNT_TWINS, ["Causal"])  # other tables, to be measured anew
    page.wait_for_function(f"twins === {len(STEPS)}")
    page.get_by_role("button", name="Step").click()
    page.get_by_role("button", name="Step").click()
    assert page.evaluate("twins") == len(STEPS)
    assert page.locator(".attn-twin").count() == 0
    assert all(height.endswith("px") for height in page.evaluate(HEIGHTS))
    page = show(Flow())
    assert page.evaluate(PRESS_AND_COUNT_TWINS, ["Causal", "Step"]) == 0
    page.wait_for_function("twins > 0")
    assert page.evaluate("twins") == len(STEPS)
    assert all(height.endswith("px") for height in page.evaluate(HEIGHTS))


def test_a_step_asks_for_no_size(show):
    """For what is read after a change the page is laid out at once, and later once more."""
    page = show(Flow())
    asked_for = page.evaluate("""async () => {
      await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
      let sizes = 0;
      const {get} = Object.getOwnPropertyDescriptor(Element.prototype, "clientWidth");
      const count = {configurable: true, get() { sizes++; return get.call(this); }};
      Object.defineProperty(Element.prototype, "clientWidth", count);
      const buttons = [...document.querySelectorAll(".attn-player button")];
      buttons.find((button) => button.textContent === "Step").click();
      return sizes;
    }""")
    assert asked_for == 0
    assert step(page) == "queries"


def test_a_number_of_another_step_is_drawn_once(show):
    page = show(random_flow())
    go_to(page, "scores")
    drawn = number(page, "K", 1, 2).evaluate("""button => {
        const observer = new MutationObserver(() => {});
        observer.observe(document.querySelector("output"), {childList: true});
        button.click();
        return observer.takeRecords().length;
    }""")
    assert step(page) == "keys"
    assert drawn == 1


def test_on_a_phone_the_result_of_each_step_and_its_sentence_are_in_one_view(show):
    page = show(Flow(), width=360)
    page.set_viewport_size({"width": 360, "height": 640})
    step = page.get_by_role("button", name="Step", exact=True)
    step.click()  # all room is there from now on
    page.locator(".attn-player").evaluate("player => player.scrollIntoView()")
    for _ in range(10):
        step.click(force=True)
        numbers = page.locator(".attn-made td:visible").last.bounding_box()
        assert numbers["y"] + numbers["height"] <= 640
    page.locator(".attn-choices").evaluate("choices => choices.scrollIntoView({block: 'end'})")
    top = 0
    for part in (step, page.get_by_role("slider", name="Step"), page.locator("output")):
        box = part.bounding_box()  # below each other, in the window
        assert top <= box["y"]
        top = box["y"] + box["height"] - 1
    assert top < 200


@pytest.mark.parametrize(("origin", "claims"), [("trained (seed 0)", True), ("random", False)])
def test_numbers_that_no_training_made_are_not_called_trained(show, origin, claims):
    x, *matrices = torch.randn(5, 4, 4, generator=torch.Generator().manual_seed(0))
    page = show(Flow(x, *matrices, 2, causal=True, origin=origin))
    caveat = page.locator(".attn-note [role=status]")
    assert caveat.inner_text() == ""
    page.get_by_label("Causal").uncheck()
    assert ("mask taken off" in caveat.inner_text()) == claims
    page.get_by_label("Causal").check()
    page.get_by_role("slider", name="Heads").press("ArrowRight")
    assert ("cut anew from 2 trained heads" in caveat.inner_text().lower()) == claims
