"""Flow in a real browser, without a kernel: its numbers, where they come from, its steps."""

import math
import re

import pytest
import torch
from tools.weight_pictures import arcs, color_of
from tools.widget_pages import box, press, style, target_sizes
from tools.widget_pages import said as told

from attncourse.widgets import Flow
from attnlib import MultiHeadAttention, split_heads

PARTS = ("x", "w_q", "w_k", "w_v", "w_o")
STEPS = ("tokens queries keys values scores scaled mask weights mix join output").split()
MAPS = ("scores", "scaled", "mask", "weights")
PAUSE = 2500  # milliseconds


def by_chance(T, d, seed=0, scale=1.0):
    """Tokens and matrices, by their names."""
    generator = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(T, d, generator=generator)
    return dict(zip(PARTS, (x, *scale * torch.randn(4, d, d, generator=generator)), strict=True))


def random_flow(T=3, d=4, num_heads=2, *, tokens=None, seed=0, scale=1.0, **options):
    options = {"origin": "random"} | options
    return Flow(**by_chance(T, d, seed, scale), num_heads=num_heads, tokens=tokens, **options)


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


def expected(given, h, *, causal=False, sequence=None):
    """attnlib's numbers, in float64: of each step its matrix, with heads side by side."""
    x, *matrices = (part.detach().float().double() for part in given.values())
    T, d = x.shape
    x = x[None, range(T) if sequence is None else sequence]
    module = MultiHeadAttention(d, h, bias=False).double()
    with torch.no_grad():
        for letter, matrix in zip("qkvo", matrices, strict=True):
            getattr(module, f"W_{letter}").weight.copy_(matrix.T)
        output, weights = module(x, causal=causal, need_weights=True)
        q, k, v = (getattr(module, f"W_{letter}")(x) for letter in "qkv")
    scores = split_heads(q, h)[0] @ split_heads(k, h)[0].mT
    scaled = scores / math.sqrt(d // h)
    future = torch.ones(T, T, dtype=torch.bool).triu(1) & causal
    masked = scaled.masked_fill(future, -math.inf)
    maps = [torch.cat(list(m), -1) for m in (scores, scaled, masked, weights[0])]
    heads = torch.cat(list(weights[0] @ split_heads(v, h)[0]), -1)
    return dict(zip(STEPS, (x[0], q[0], k[0], v[0], *maps, heads, heads, output[0]), strict=True))


def step(page):
    """Return the name of the step that is shown."""
    return page.locator(".attn-heading strong").inner_text()


def go_to(page, name):
    slider = page.get_by_role("slider", name="Step")
    slider.fill(str(STEPS.index(name)))
    assert step(page) == name


def assert_shows(page, name, numbers, h):
    """Fail unless a step's tables have these numbers, heads side by side or apart."""
    tables = page.locator(".attn-made table")
    parts = h if name in (*MAPS, "mix") else 1
    for part, matrix in zip(numbers.chunk(parts, -1), tables.all(), strict=True):
        found = [value_of(text) for text in matrix.locator("td button").all_inner_texts()]
        found = torch.tensor(found, dtype=torch.float64).view_as(part)
        torch.testing.assert_close(found, part, atol=0.0051, rtol=0.05)  # two digits of large ones


@pytest.fixture
def stop_the_clock(show):
    """Have a page's clock stand still, which would outlive the page: other tests share its tab."""
    stopped = []

    def stop(page):
        page.clock.install(time=0)
        page.clock.pause_at(60_000)
        stopped.append(page)

    yield stop
    for page in stopped:
        page.clock.resume()


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
def test_each_step_shows_attnlibs_numbers_in_tables_with_headers_for_every_head_count(show, causal):
    tokens, origin = ["the", "cat", "sat"], "trained (seed 0)"
    page = show(random_flow(num_heads=1, tokens=tokens, causal=causal, origin=origin))
    caveat, mask = page.locator(".attn-note [role=status]"), page.get_by_label("Causal")
    assert page.locator(".attn-widget > .attn-note").inner_text().startswith(f"Numbers: {origin}.")
    mask.click()
    assert f"mask {'taken off' if causal else 'put on'}" in caveat.inner_text()
    mask.click()
    slider, tables = page.get_by_role("slider", name="Heads"), page.locator(".attn-made table")
    for heads in (1, 2, 4):
        told_heads = re.findall(r"\d", slider.get_attribute("aria-valuetext"))
        assert told_heads == [f"{heads}", f"{4 // heads}"]
        assert ("cut anew from 1 trained head" in caveat.inner_text().lower()) == (heads > 1)
        for name, numbers in expected(by_chance(3, 4), heads, causal=causal).items():
            go_to(page, name)
            assert_shows(page, name, numbers, heads)
            maps = name in MAPS
            for matrix in tables.all():
                columns = matrix.locator("thead tr").last.locator("th").all_inner_texts()
                assert columns == tokens or not maps
                assert matrix.locator("tbody th[scope=row]").all_inner_texts() == tokens
            if name == "weights":
                color = style(tables.locator("td button").first, "backgroundColor")
                channels = torch.tensor([int(n) for n in re.findall(r"\d+", color)])
                assert (channels - color_of(numbers[0, 0])).abs().max() <= 1
        slider.press("ArrowRight")


@pytest.mark.parametrize(
    ("T", "d", "h", "scale", "dtype"),
    [
        (1, 1, 1, 1, torch.float64), (2, 6, 6, 1, torch.bfloat16), (4, 3, 1, 9, torch.float32),
        (6, 4, 2, 1, torch.float64), (5, 6, 3, 9, torch.bfloat16), (2, 2, 2, 1e38, torch.float32),
    ],
)  # fmt: skip
def test_each_step_shows_attnlibs_numbers_whatever_is_given(show, T, d, h, scale, dtype):
    given = by_chance(T, d, seed=T, scale=scale)
    given = {name: part.to(dtype).T.contiguous().T for name, part in given.items()}
    widget = Flow(**given, num_heads=h, causal=T > 4)
    widget.sequence = [(3 * place + 1) % T for place in range(T)]
    page = show(widget)
    for name, numbers in expected(given, h, causal=T > 4, sequence=widget.sequence).items():
        go_to(page, name)
        assert_shows(page, name, numbers, h)


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
    """For some numbers of a step: framed numbers, multiplied in pairs and added, make it."""
    page = show(random_flow(seed=8))
    for name in ("queries", "scores", "mix", "output"):
        go_to(page, name)
        for button in page.locator(".attn-made button").all()[1::5]:
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
        assert page.locator("td.attn-traced").all_inner_texts() == [text]
        assert page.evaluate("document.activeElement.ariaPressed") == "true"
        if at == "weights":
            assert framed(page) == [["masked of head 2", 2, j] for j in range(3)]
    assert framed(page) == []  # it is given
    go_to(page, "values")
    number(page, "Wv", 3, 2).click()
    assert step(page) == "values" and framed(page) == []
    assert [int(n) for n in re.findall(r"\b\d\b(?!\.)", said(page))][:3] == [4, 1, 2]


def test_one_way_by_keys_and_buttons_from_number_to_number_and_step_to_step(show):
    page = show(random_flow())
    press_key = page.keyboard.press
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    go_to(page, "scores")
    number(page, "Q", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "End", "ArrowDown", "ArrowDown", "ArrowLeft"):
        press_key(key)
        assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
    assert is_focused(number(page, "Q", 2, 2))
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
    way, scale = page.locator(".attn-way .attn-now"), page.locator(".attn-legend > :first-child")
    back, on = (page.get_by_role("button", name=name) for name in ("Back", "Step"))
    assert back.is_disabled()
    on.click()
    number(page, "Q", 1, 3).click()
    traced = page.locator("table:has(.attn-traced)")
    for name in STEPS[2:]:  # the same token and head are followed
        on.click()
        row = traced.locator(".attn-traced").evaluate("cell => cell.parentNode.sectionRowIndex")
        assert (step(page), row) == (name, 1) and way.inner_text().startswith(name)
        assert scale.is_visible() == (name in ("weights", "mix"))
        if name in ("scores", "weights", "mix"):
            assert traced.locator("caption").inner_text().endswith("head 2")
    assert on.is_disabled()
    on.click(force=True)
    back.click()
    slider = page.get_by_role("slider", name="Step")
    assert slider.get_attribute("aria-valuetext") == "10 of 11: join"


def test_it_plays_to_the_end_pauses_and_starts_anew(show, stop_the_clock):
    page = show(Flow())
    stop_the_clock(page)
    made, spoken = page.locator(".attn-made"), page.locator("output")

    def plays(pauses, to):
        page.clock.run_for(pauses * PAUSE)
        assert step(page) == to

    press(page, "Play")
    plays(2, "keys")
    assert style(made, "animationName") != "none"
    assert spoken.get_attribute("aria-live") == "off"
    press(page, "Pause")
    plays(3, "keys")
    assert spoken.get_attribute("aria-live") == "polite"
    for stop, at in (  # a reader who looks at something stays there
        (lambda: go_to(page, "mask"), "mask"),
        (lambda: number(page, "scaled of head 1", 0, 0).click(), "scaled"),
    ):
        press(page, "Play")
        stop()
        plays(3, at)
    press(page, "Play")
    plays(20, "output")
    press(page, "Play")  # it has stopped by itself
    plays(0, "tokens")
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Pause").wait_for(state="hidden")
    plays(3, "tokens")  # nor is there anything to play
    assert page.get_by_role("button", name="Play").count() == 0


@pytest.mark.parametrize(("matrix", "width"), [("x", 1000), ("weights", 360)])
def test_arcs_and_rows_go_with_the_tokens_that_change_places(show, matrix, width):
    widget = random_flow(tokens=["the", "cat", "sat"])
    widget.matrix, widget.place = matrix, [1, 0, 0]
    page = show(widget, width=width)
    page.get_by_label("Token at place 0").select_option("sat")
    made = expected(by_chance(3, 4), 2, sequence=[2, 1, 2])
    row = made["weights"][1]  # token 1, both heads
    torch.testing.assert_close(arcs(page), row[row >= 0.01], atol=1e-5, rtol=0)
    chosen = page.locator("select").evaluate_all("all => all.map(({value}) => Number(value))")
    assert chosen == [2, 1, 2]
    go_to(page, "output")
    assert_shows(page, "output", made["output"], 2)
    named = table(page, "output").locator("tbody th").all_inner_texts()
    assert named == ["sat (0)", "cat", "sat (2)"]


def test_what_python_chose_is_shown_and_hebrew_tokens_leave_the_sum_in_order(show):
    widget = random_flow(T=2, d=2, num_heads=2, tokens=["החתול", "ישב"])
    widget.matrix, widget.place = "scores", [9, 9, 0]  # the nearest there is
    page = show(widget)
    parts = page.locator("output > *")
    lefts = [part.bounding_box()["x"] for part in parts.all()]
    assert parts.all_inner_texts()[:2] == ["ישב", "החתול"]
    assert step(page) == "scores" and "head 2" in said(page)
    assert lefts == sorted(lefts)


def test_a_phone_shows_one_head_at_a_time(show):
    page = show(random_flow(num_heads=4, causal=True), width=360)
    go_to(page, "weights")
    tables = page.locator(".attn-stage caption:visible")
    third = page.get_by_role("button", name="head 3")
    number(page, "weights of head 1", 2, 1).tap()
    assert tables.all_inner_texts() == ["masked of head 1", "weights of head 1"]
    third.tap()
    assert tables.all_inner_texts() == ["masked of head 3", "weights of head 3"]
    assert third.get_attribute("aria-pressed") == "true"
    assert re.match("token 2 .* token 1 in head 3: ", said(page))
    page.set_viewport_size({"width": 1000, "height": 900})
    assert page.locator(".attn-made caption:visible").count() == 4
    assert third.is_hidden()


SMALLEST = """nodes => Math.min(
  ...nodes.map((node) => parseFloat(getComputedStyle(node).fontSize)))"""
SCROLLS = "boxes => boxes.some((box) => box.scrollWidth > box.clientWidth)"


def test_on_a_phone_each_step_of_the_largest_fits_and_nothing_moves_while_it_plays(
    show, stop_the_clock
):
    page = show(random_flow(T=6, d=6, num_heads=3, tokens=["token"] * 6), width=360)
    stop_the_clock(page)
    press(page, "Play")
    page.clock.run_for(50)  # a frame: where nothing was idle yet, the room is kept now
    places = set()
    for name in STEPS:
        assert step(page) == name
        places.add(tuple(round(box(page, at)["top"]) for at in (".attn-stage", ".attn-legend")))
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert not page.locator(".attn-stage .attn-scroll").evaluate_all(SCROLLS)
        assert page.locator(".attn-widget *").evaluate_all(SMALLEST) >= 9
        assert min(target_sizes(page)) >= 24
        page.clock.run_for(PAUSE)
    assert len(places) == 1
    rows = table(page, "Wo").locator("tbody th").all_inner_texts()
    assert rows == [f"head {1 + i // 2}" for i in range(6)]  # it is of all heads
