"""Flow in a real browser, without a kernel: its numbers, where they come from, its steps."""

import math
import random
import re

import pytest
import torch
from tools.weight_pictures import arcs, color_of
from tools.widget_pages import asked, box, press, style, target_sizes
from tools.widget_pages import said as told

from attncourse.widgets import Flow
from attnlib import MultiHeadAttention, split_heads

GIVEN = ("x", "w_q", "w_k", "w_v", "w_o")
STEPS = ("tokens queries keys values scores scaled mask weights mix join output").split()
PAUSE = 2500  # milliseconds


def random_flow(T=3, d=4, num_heads=2, *, tokens=None, seed=0, scale=1.0, **options):
    generator = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(T, d, generator=generator)
    matrices = scale * torch.randn(4, d, d, generator=generator)
    return Flow(x, *matrices, num_heads, tokens, **{"origin": "random"} | options)


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


def expected(widget):
    """attnlib's numbers, in float64: of each step its matrix, with heads side by side."""
    d, h, T = widget.d, widget.num_heads, widget.T
    given = {
        name: torch.frombuffer(bytearray(getattr(widget, name)), dtype=torch.float32).double()
        for name in GIVEN
    }
    x = given["x"].view(1, T, d)[:, widget.sequence]
    module = MultiHeadAttention(d, h, bias=False).double()
    with torch.no_grad():
        for letter in "qkvo":
            getattr(module, f"W_{letter}").weight.copy_(given[f"w_{letter}"].view(d, d).T)
        output, weights = module(x, causal=widget.causal, need_weights=True)
        q, k, v = (getattr(module, f"W_{letter}")(x) for letter in "qkv")
    scores = split_heads(q, h)[0] @ split_heads(k, h)[0].mT
    scaled = scores / math.sqrt(d // h)
    future = torch.ones(T, T, dtype=torch.bool).triu(1) & widget.causal
    masked = scaled.masked_fill(future, -math.inf)
    maps = [torch.cat(list(m), -1) for m in (scores, scaled, masked, weights[0])]
    heads = torch.cat(list(weights[0] @ split_heads(v, h)[0]), -1)
    return dict(zip(STEPS, (x[0], q[0], k[0], v[0], *maps, heads, heads, output[0]), strict=True))


COMPUTE = """(model) => {
  const {readState} = attnModules["flow/widget.js"];
  const {computeAll} = attnModules["flow/numbers.js"];
  const {STEPS} = attnModules["flow/words.js"];
  const made = computeAll(readState(model));
  return STEPS.map(({makes}) => made[makes].values);
}"""


def test_the_browser_computes_what_attnlib_computes_whatever_is_given(show):
    page = show(Flow())
    chance = random.Random(0)
    widgets = [Flow(), Flow(torch.ones(3, 2), *torch.ones(4, 2, 2), 1)]
    widgets += [Flow(torch.full((2, 2), 3e38), *torch.full((4, 2, 2), -3e38), 2)]  # float32's end
    for seed in range(40):
        T, d = chance.randint(1, 6), chance.randint(1, 6)
        h = chance.choice([h for h in range(1, d + 1) if d % h == 0])
        widgets += [random_flow(T, d, h, seed=seed, scale=9.0 if seed % 4 == 0 else 1.0)]
        widgets[-1].causal = chance.random() < 0.5
        widgets[-1].sequence = chance.choices(range(T), k=T)
    for widget in widgets:
        made = asked(page, widget, COMPUTE)
        for found, numbers in zip(made, expected(widget).values(), strict=True):
            found = torch.tensor(found, dtype=torch.float64).view_as(numbers)
            torch.testing.assert_close(found, numbers, atol=1e-9, rtol=1e-9)


def step(page):
    """Return the name of the step that is shown."""
    return page.locator(".attn-heading strong").inner_text()


def go_to(page, name):
    slider = page.get_by_role("slider", name="Step")
    slider.fill(str(STEPS.index(name)))
    assert step(page) == name


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


def value_of(text):
    return float(text.replace("−", "-").replace("∞", "inf"))


def is_focused(button):
    return button.evaluate("button => button === document.activeElement")


@pytest.mark.parametrize("causal", [False, True])
def test_each_step_shows_its_numbers_in_tables_with_headers_for_every_head_count(show, causal):
    tokens = ["the", "cat", "sat"]
    widget = random_flow(T=3, d=4, num_heads=1, tokens=tokens, seed=11, causal=causal)
    page = show(widget)
    slider, tables = page.get_by_role("slider", name="Heads"), page.locator(".attn-made table")
    for heads in (1, 2, 4):
        widget.num_heads = heads
        told_heads = re.findall(r"\d", slider.get_attribute("aria-valuetext"))
        assert told_heads == [f"{heads}", f"{4 // heads}"]
        for name, numbers in expected(widget).items():
            go_to(page, name)
            maps = name in ("scores", "scaled", "mask", "weights")
            parts = heads if maps or name == "mix" else 1
            assert tables.count() == parts
            for part, matrix in zip(numbers.chunk(parts, -1), tables.all(), strict=True):
                found = [value_of(text) for text in matrix.locator("td button").all_inner_texts()]
                assert found == pytest.approx(part.flatten().tolist(), abs=0.0051)
                columns = matrix.locator("thead tr").last.locator("th").all_inner_texts()
                assert len(columns) == part.shape[1] and (columns == tokens or not maps)
                assert matrix.locator("tbody th[scope=row]").all_inner_texts() == tokens
                if name == "weights":
                    color = style(matrix.locator("td button").first, "backgroundColor")
                    numbers = torch.tensor([int(n) for n in re.findall(r"\d+", color)])
                    assert (numbers - color_of(part[0, 0])).abs().max() <= 1
        slider.press("ArrowRight")


def test_each_step_says_how_its_number_is_made(show):
    page = show(Flow())  # the lesson's example, by hand
    for name, made in (
        ("scores", "2 = 1·2 + 0·1"), ("scaled", "1.41 ≈ 2 / √2"),
        ("weights", "0.80 ≈ e1.41 / (e1.41 + e0)"), ("mix", "1.61 ≈ 0.80·2 + 0.20·0"),
    ):  # fmt: skip
        go_to(page, name)
        assert said(page).rpartition(": ")[2] == made
    go_to(page, "join")
    assert re.findall(r"[\d.]*\d", said(page)) == ["0", "1", "1.61", "1", "1"]
    page.get_by_label("Causal").click()
    go_to(page, "mask")
    number(page, "masked of head 1", 0, 1).click()
    assert re.match("token 0 .* token 1 .* head 1: −∞ .* 0: ", said(page))
    go_to(page, "weights")
    number(page, "weights of head 1", 0, 0).click()
    assert said(page).endswith("1.00 = e1.41 / (e1.41 + e−∞)")


def test_what_is_framed_is_what_the_sum_names_and_adds_up(show):
    """For every number of a step: framed numbers, multiplied in pairs and added, make it."""
    page = show(random_flow(T=3, d=4, num_heads=2, seed=8))
    for name in ("queries", "scores", "mix", "output"):
        go_to(page, name)
        for button in page.locator(".attn-made button").all():
            button.click()
            total, _, written = said(page).rpartition(": ")[2].partition(" ≈ ")
            terms = [
                [value_of(re.sub(r"^\((−.*)\)$", r"\1", factor)) for factor in term.split("·")]
                for term in written.split(" + ")
            ]
            assert sum(a * b for a, b in terms) == pytest.approx(value_of(total), abs=0.06)
            numbers = [*map(value_of, page.locator("td.attn-source").all_inner_texts())]
            half = len(numbers) // 2
            assert terms == [[a, b] for a, b in zip(numbers[:half], numbers[half:], strict=True)]
            assert ("·−" in written, "(−" in written) == (False, min(map(min, terms)) < 0)
            assert button.get_attribute("aria-pressed") == "true"
            assert page.locator("td.attn-traced").all_inner_texts() == [total]
    assert framed(page) == [["joined", 2, c] for c in range(4)] + [["Wo", c, 3] for c in range(4)]


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
        if at == "weights":
            assert framed(page) == [["masked of head 2", 2, j] for j in range(3)]
    assert framed(page) == []  # it is given
    go_to(page, "values")
    number(page, "Wv", 3, 2).click()
    assert step(page) == "values" and framed(page) == []
    assert [int(n) for n in re.findall(r"\b\d\b(?!\.)", said(page))][:3] == [4, 1, 2]


def test_one_way_by_keys_from_number_to_number_and_step_to_step(show):
    page = show(random_flow(T=3, d=4, num_heads=2))
    press_key = page.keyboard.press
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    go_to(page, "scores")
    number(page, "Q", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "End", "ArrowDown", "ArrowDown", "ArrowLeft"):
        press_key(key)
        assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
    assert is_focused(number(page, "Q", 2, 2))
    assert table(page, "Q").locator("[tabindex='0']").count() == 1
    press_key("Tab")
    press_key("Shift+Tab")  # a table is one stop, where one was
    assert is_focused(number(page, "Q", 2, 2))
    for key, at in (
        *(("Enter", "queries"), ("PageDown", "keys")),
        *(("PageUp", "queries"), ("PageUp", "tokens"), ("PageUp", "tokens")),
    ):
        press_key(key)
        assert step(page) == at
        assert page.evaluate("document.activeElement.matches('.attn-traced button')")


def test_buttons_go_step_by_step_stop_at_the_ends_and_follow_a_number(show):
    page = show(random_flow(T=3, d=4, num_heads=2))
    way, scale = page.locator(".attn-way .attn-now"), page.locator(".attn-legend > :first-child")
    back, on = (page.get_by_role("button", name=name) for name in ("Back", "Step"))
    assert back.get_attribute("aria-disabled") == "true"
    back.click(force=True)
    assert step(page) == "tokens"
    press(page, "Step")
    number(page, "Q", 1, 3).click()
    for name in STEPS[2:]:  # the same token and head are followed
        on.click()
        traced = page.locator("td.attn-traced")
        row = traced.evaluate("cell => cell.parentNode.sectionRowIndex")
        assert (step(page), row) == (name, 1)
        assert way.inner_text().startswith(name)
        assert scale.is_visible() == (name in ("weights", "mix"))
        if name in ("scores", "weights", "mix"):
            assert page.locator("table:has(.attn-traced) caption").inner_text().endswith("head 2")
    on.click(force=True)
    assert step(page) == "output" and on.get_attribute("aria-disabled") == "true"
    back.click()
    slider = page.get_by_role("slider", name="Step")
    assert slider.get_attribute("aria-valuetext") == "10 of 11: join"


def test_it_plays_to_the_end_pauses_and_starts_anew(show):
    page = show(Flow())
    page.clock.install()
    made, spoken = page.locator(".attn-made"), page.locator("output")

    def plays(pauses, to):
        page.clock.run_for(pauses * PAUSE)
        assert step(page) == to

    assert style(made, "animationName") == "none"  # what a page opens with stands there at once
    press(page, "Play")
    plays(2, "keys")
    assert style(made, "animationName") != "none"
    assert spoken.get_attribute("aria-live") == "off"
    press(page, "Pause")
    plays(3, "keys")
    assert spoken.get_attribute("aria-live") == "polite"
    press(page, "Play")
    go_to(page, "mask")  # a reader who goes there stays there
    plays(3, "mask")
    press(page, "Play")
    plays(20, "output")
    press(page, "Play")  # it has stopped by itself
    plays(0, "tokens")
    plays(1, "queries")
    number(page, "Q", 0, 0).click()  # a reader who presses a number looks at it
    plays(5, "queries")
    press(page, "Play")
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Pause").wait_for(state="hidden")
    assert page.get_by_role("button", name="Play").count() == 0  # nor is there anything to play
    plays(3, "queries")
    press(page, "Step")
    plays(0, "keys")
    assert style(made, "animationName") == "none"


@pytest.mark.parametrize(("matrix", "width"), [("x", 1000), ("weights", 1000), ("weights", 360)])
def test_arcs_show_what_the_steps_come_to(show, matrix, width):
    widget = random_flow(T=3, num_heads=2)
    widget.matrix, widget.place = matrix, [1, 0, 0]
    page = show(widget, width=width)
    page.locator(".attn-arc").first.wait_for(state="attached")
    row = expected(widget)["weights"][1]  # token 1, both heads
    torch.testing.assert_close(arcs(page), row[row >= 0.01], atol=1e-5, rtol=0)


def test_tokens_change_places_and_their_rows_go_with_them(show):
    page = show(random_flow(T=3, d=4, tokens=["the", "cat", "sat"]))

    def rows(caption):
        texts = table(page, caption).locator("tbody tr").all_inner_texts()
        return [text.split("\t", 1) for text in texts]

    before = rows("X")
    page.get_by_label("Token at place 0").select_option("sat")
    chosen = page.locator("select").evaluate_all("all => all.map(({value}) => Number(value))")
    assert chosen == [2, 1, 2]
    names = ["sat (0)", "cat", "sat (2)"]
    assert rows("X") == [[name, before[i][1]] for name, i in zip(names, chosen, strict=True)]
    go_to(page, "output")
    outputs = [numbers for _, numbers in rows("output")]
    assert outputs[0] == outputs[2] != outputs[1]  # without a mask a place means nothing


def test_what_python_chose_is_shown_and_hebrew_tokens_leave_the_sum_in_order(show):
    widget = random_flow(T=2, d=2, num_heads=2, tokens=["החתול", "ישב"])
    widget.matrix, widget.place = "scores", [9, 9, 0]  # the nearest there is
    page = show(widget)
    parts = page.locator("output > *")
    lefts = [part.bounding_box()["x"] for part in parts.all()]
    assert parts.all_inner_texts()[:2] == ["ישב", "החתול"]
    assert step(page) == "scores" and "head 2" in said(page)
    assert lefts == sorted(lefts)
    page.evaluate("document.documentElement.dir = 'rtl'")
    assert style(parts.last, "direction") == "ltr"


@pytest.mark.parametrize(("origin", "claims"), [("trained (seed 0)", True), ("random", False)])
def test_numbers_that_no_training_made_are_not_called_trained(show, origin, claims):
    page = show(random_flow(causal=True, origin=origin))
    caveat, mask = page.locator(".attn-note [role=status]"), page.get_by_label("Causal")
    assert origin in page.locator(".attn-widget > .attn-note").inner_text()
    assert caveat.inner_text() == ""
    mask.uncheck()
    assert ("mask taken off" in caveat.inner_text()) == claims
    mask.check()
    page.get_by_role("slider", name="Heads").press("ArrowRight")
    assert ("cut anew from 2 trained heads" in caveat.inner_text().lower()) == claims


def test_on_a_phone_each_step_fits_and_can_be_read_and_w_o_is_of_all_heads(show):
    """The largest that is taken: no box of it scrolls, and no text is smaller than 9 pixels."""
    page = show(random_flow(T=6, d=6, num_heads=3, tokens=["token"] * 6), width=360)
    sizes = """nodes => Math.min(
        ...nodes.map((node) => parseFloat(getComputedStyle(node).fontSize)))"""
    scrolls = "boxes => boxes.some((box) => box.scrollWidth > box.clientWidth)"
    for name in STEPS:
        go_to(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert not page.locator(".attn-stage .attn-scroll").evaluate_all(scrolls)
        assert page.locator(".attn-widget *").evaluate_all(sizes) >= 9
        assert min(target_sizes(page)) >= 24
    rows = table(page, "Wo").locator("tbody th").all_inner_texts()
    assert rows == [f"head {1 + i // 2}" for i in range(6)]


def test_a_phone_shows_one_head_at_a_time(show):
    page = show(random_flow(T=3, d=4, num_heads=4, causal=True), width=360)
    go_to(page, "weights")
    tables, third = (
        page.locator(".attn-stage caption:visible"),
        page.get_by_role("button", name="head 3"),
    )
    number(page, "weights of head 1", 2, 1).tap()
    assert tables.all_inner_texts() == ["masked of head 1", "weights of head 1"]
    third.tap()
    assert tables.all_inner_texts() == ["masked of head 3", "weights of head 3"]
    assert third.get_attribute("aria-pressed") == "true"
    assert re.match("token 2 .* token 1 in head 3: ", said(page))
    page.set_viewport_size({"width": 1000, "height": 900})
    assert page.locator(".attn-made caption:visible").count() == 4
    assert third.is_hidden()


def test_frames_are_seen_in_forced_colors_and_weights_keep_theirs(show):
    page = show(Flow())
    page.emulate_media(forced_colors="active")
    go_to(page, "weights")
    frame = "cells => cells.map((cell) => getComputedStyle(cell).border.split(' rgb')[0])"
    for which, seen in ((".attn-traced", "2px solid"), (".attn-source", "2px dashed"),
                        (":not([class*=attn])", "0px none")):  # fmt: skip
        assert {*page.locator(f".attn-stage tbody td{which}").evaluate_all(frame)} == {seen}
    weight = page.locator(".attn-made td button").first
    assert style(weight, "forcedColorAdjust") == "none"
    page.emulate_media(forced_colors="none")


def test_nothing_moves_on_a_phone_from_step_to_step_nor_while_it_plays(show):
    def stays(page, go_on):
        found = set()
        for _ in STEPS:
            found.add(tuple(round(box(page, at)["top"]) for at in (".attn-stage", ".attn-legend")))
            go_on()
        return len(found) == 1

    page = show(random_flow(T=3, d=4, num_heads=2), width=360)
    back, on = (page.get_by_role("button", name=name) for name in ("Back", "Step"))
    on.click()
    assert stays(page, lambda: on.click(force=True))
    page.get_by_role("slider", name="Heads").press("ArrowRight")  # more tables: more room
    back.click()
    assert stays(page, lambda: back.click(force=True))
    page = show(random_flow(T=3, d=4, num_heads=4), width=360)
    page.clock.install()
    press(page, "Play")
    page.clock.run_for(50)  # a frame: where nothing was idle yet, the room is kept now
    assert stays(page, lambda: page.clock.run_for(PAUSE)) and step(page) == "output"


def test_on_a_phone_the_result_of_each_step_and_its_sentence_are_in_one_view(show):
    page = show(Flow(), width=360)
    page.set_viewport_size({"width": 360, "height": 640})
    on = page.get_by_role("button", name="Step", exact=True)
    on.click()  # all room is there from now on
    page.locator(".attn-player").evaluate("player => player.scrollIntoView()")
    for _ in range(10):
        on.click(force=True)
        numbers = page.locator(".attn-made td:visible").last.bounding_box()
        assert numbers["y"] + numbers["height"] <= 640
    page.locator(".attn-choices").evaluate("choices => choices.scrollIntoView({block: 'end'})")
    parts = [box(page, part) for part in (".attn-player", "output", ".attn-stage .attn-operands")]
    assert 0 <= parts[0]["top"] < parts[0]["bottom"] <= parts[1]["top"] + 1 < 200  # they stay


WATCH = """(names) => {
  window.twins = window.sizes = 0;
  const {get} = Object.getOwnPropertyDescriptor(Element.prototype, "clientWidth");
  const count = {configurable: true, get() { sizes++; return get.call(this); }};
  const watcher = new MutationObserver((records) => {
    for (const {addedNodes} of records)
      for (const node of addedNodes) twins += node.classList?.contains("attn-twin") ?? 0;
  });
  watcher.observe(document.querySelector(".attn-told-stage"), {childList: true});
  const sentence = new MutationObserver(() => {});
  sentence.observe(document.querySelector("output"), {childList: true});
  Object.defineProperty(Element.prototype, "clientWidth", count);
  const nodes = [...document.querySelectorAll(".attn-widget :is(button, label)")];
  for (const name of names) nodes.find((node) => node.textContent === name).click();
  return [watcher, sentence].map((one) => one.takeRecords().length).concat(sizes);
}"""


@pytest.mark.parametrize("names", [["Causal"], ["Causal", "Step"]])  # other tables, measured anew
def test_a_click_measures_nothing_and_draws_once_and_steps_are_measured_once(show, names):
    """All at once they would take longer than a click may; sizes would lay the page out twice."""
    page = show(Flow())
    page.evaluate("() => new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)))")
    assert page.evaluate(WATCH, names) == [0, len(names), 0]
    page.wait_for_function(f"twins === {len(STEPS)}")
    press(page, "Step", "Step")
    assert page.evaluate("twins") == len(STEPS)
    assert page.locator(".attn-twin").count() == 0
    go_to(page, "scores")
    drawn = number(page, "K", 1, 2).evaluate("""button => {  // of another step
        const observer = new MutationObserver(() => {});
        observer.observe(document.querySelector("output"), {childList: true});
        button.click();
        return observer.takeRecords().length;
    }""")
    assert drawn == 1 and step(page) == "keys"
