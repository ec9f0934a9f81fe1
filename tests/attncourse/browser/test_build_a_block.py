"""BuildABlock in a real browser, without a kernel: its numbers, its drawings, its manners."""

import math

import pytest
import torch
from tools.widget_pages import asked, unfold

from attncourse.lessons.l05.figures.blocks import block_parts
from attncourse.widgets import BuildABlock
from attncourse.widgets.build_a_block import signal
from attncourse.widgets.build_a_block.signal import stops
from attnlib import FeedForward, LayerNorm, MultiHeadAttention, TransformerBlock

DEPTHS = [2, 6, 12, 24, 48]
PANELS = {"gradient norm": "size", "cosine": "cosine"}
WIRINGS = [(residual, norm) for residual in (False, True) for norm in (None, "pre", "post")]
NOT_MEASURED = (False, "pre")
MEASURED = [wiring for wiring in WIRINGS if wiring != NOT_MEASURED]
NAMES = {
    (False, None): ("neither", "f(x)"),
    (False, "pre"): ("norm only, before", "f(norm(x))"),
    (False, "post"): ("norm only", "norm(f(x))"),
    (True, None): ("residual only", "x + f(x)"),
    (True, "pre"): ("pre-norm", "x + f(norm(x))"),
    (True, "post"): ("post-norm", "norm(x + f(x))"),
}


def measurements(runs=3, seed=0, *, reach=20, wirings=MEASURED):
    """Gradients from 10^-reach to 10^reach and cosines from 0 to 1, [depths, runs] in float64."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(DEPTHS), runs)
    uniform = [
        [torch.rand(shape, generator=generator, dtype=torch.float64) for _ in PANELS]
        for _ in wirings
    ]
    return {
        wiring: {"gradient norm": 10 ** (reach * (2 * a - 1)), "cosine": b}
        for wiring, (a, b) in zip(wirings, uniform, strict=True)
    }


def widget_of(given, *, residual=False, norm_position=None, depth=2, **options):
    widget = BuildABlock(DEPTHS, given, panels=options.pop("panels", PANELS), **options)
    widget.residual, widget.norm_position, widget.depth = residual, norm_position, depth
    return widget


def block(**options):
    return widget_of(measurements(), **options)


def example(text):
    """A block for the tests of what every widget does."""
    given = {
        wiring: {text: of["gradient norm"], "cosine": of["cosine"]}
        for wiring, of in measurements().items()
    }
    return widget_of(given, panels={text: "size", "cosine": "cosine"}, origin=text)


largest = example
PLACES = {
    "div.attn-widget > p.attn-note …",
    "div > p.attn-panel-title",
    "div > svg.attn-chart aria-label …",
    "output.attn-live > span …",
    "table > caption",
}
KEY = ("input[type=range]", "ArrowRight")
DAMAGES = {
    "values should be 150 numbers": {"values": bytes(1192)},
    "signal should be 576 numbers": {"signal": bytes(4600)},
    "values should be 150 numbers in": lambda _, buffers: buffers.clear(),
    "values holds a number that isn't finite": {"values": b"\xff" * 1200},
    "a should be above 0, but is 0": {"values": bytes(1200)},
    "runs should be": {"runs": 0},
    "stop should be": {"stop": 15},
    "has_signal should be": {"has_signal": None},
    "depth should be": {"depth": 3},
    "depths should be": {"depths": [6, 2]},
    "panels should be": {"panels": None},
    "panels should be a list": {"panels": [["a", "toString"]]},
    "norm_position should be": {"norm_position": "both"},
    "variants should be": {"variants": [None]},
}


def number_text(value, kind):
    """A number as the widget is to write it."""
    if kind == "cosine":
        text = f"{value:.3f}"
    elif 0.01 <= value < 1000:
        text = f"{float(f'{value:.3g}'):g}"
    else:
        mantissa, exponent = f"{value:.1e}".split("e")
        text = f"{mantissa}e{int(exponent):+d}"
    return text.replace("-", "\u2212")


def in_words(value, kind):
    if kind == "cosine":
        together = ("the tokens are well apart", "the tokens drift together, but are still apart")
        return "all tokens point the same way" if value >= 0.99 else together[value >= 0.5]
    for limit, word in ((1e6, "exploded"), (1e2, "exploding"), (1e-2, "healthy")):
        if value >= limit:
            return word
    return "vanishing" if value >= 1e-6 else "vanished"


READ = """(model) => {
  const {readState} = attnModules["build_a_block/widget.js"];
  const {median} = attnModules["build_a_block/words.js"];
  const {wayUp} = attnModules["build_a_block/signal.js"];
  const {variants, panels, depths, runsAt, signal: ways} = readState(model);
  const all = variants.map((_, v) => panels.map((_, p) => depths.map((_, d) =>
    [...runsAt(v, p, d), median(runsAt(v, p, d))])));
  const wirings = [false, true].flatMap((r) => [null, "pre", "post"].map((n) => [r, n]));
  return [all, wirings.map(([r, n]) => depths.map((depth) => wayUp(ways, r, n, depth)))];
}"""


def test_the_browser_reads_every_number_to_the_last_bit(show):
    page = show(block())
    for runs, reach in ((3, 20), (4, 300), (1, 0)):
        given = measurements(runs, seed=runs, reach=reach)
        read, _ = asked(page, widget_of(given), READ)
        read = torch.tensor(read, dtype=torch.float64)  # [variants, panels, depths, runs + median]
        rows = [torch.stack([given[wiring][panel] for panel in PANELS]) for wiring in MEASURED]
        expected = torch.stack(rows)
        assert torch.equal(read[..., :-1], expected)
        assert torch.equal(read[..., -1], expected.median(dim=-1).values)


@pytest.fixture(scope="module")
def ways():
    """The states on the way up, by wiring and depth: what each stop is called, and the tokens."""
    torch.manual_seed(signal.SEED)
    x = torch.randn(1, signal.TOKENS, signal.WIDTH, dtype=torch.float64)
    width, heads = signal.WIDTH, signal.HEADS
    parts = [(MultiHeadAttention(width, heads), FeedForward(width)) for _ in range(max(DEPTHS))]
    found = {}
    for residual, norm in WIRINGS:
        state, way = x, {}
        for number, (attention, feed_forward) in enumerate(parts, 1):
            block = TransformerBlock.of_parts(
                attention, feed_forward, residual=residual, norm_position=norm
            ).double()
            names = [
                f"block {number}, after {'the sum' if name == '+' else name}"
                for name in block_parts(block)
                if name != "split"
            ]
            way[number] = list(zip(names, stops(block, state), strict=True))
            state = block(state)[0]
            assert torch.equal(way[number][-1][1], state)
            if number in DEPTHS:
                last = [("after the last norm", LayerNorm(width).double()(state))]
                end = last if norm == "pre" else []
                middle = way[1] + (way[number] if number > 1 else [])
                found[(residual, norm), number] = [("tokens in", x), *middle, *end]
    return found


def measure(x):
    unit = x[0] / x[0].norm(dim=-1, keepdim=True)
    T = len(unit)
    cosine = ((unit @ unit.T).sum() - T) / (T * (T - 1))
    return [x.square().mean().sqrt().item(), cosine.item()]


def test_the_signals_numbers_are_those_of_the_packages_blocks(show, ways):
    _, read = asked(show(block()), block(), READ)
    for wiring, by_depth in zip(WIRINGS, read, strict=True):
        for depth, way in zip(DEPTHS, by_depth, strict=True):
            expected = ways[wiring, depth]
            assert [stop["name"] for stop in way] == [name for name, _ in expected]
            for stop, (_, tokens) in zip(way, expected, strict=True):
                assert [stop["size"], stop["cosine"]] == pytest.approx(measure(tokens), rel=1e-9)


def test_a_signal_steps_up_the_stack_and_says_what_it_measures(show, ways):
    page = show(block(residual=True, norm_position="pre", depth=12))
    step, back = (page.get_by_role("button", name=name) for name in ("Step", "Back to the start"))
    said, dot = page.locator("p.attn-signal"), page.locator("circle.attn-signal")
    way = ways[(True, "pre"), 12]
    heights = []
    for name, tokens in way:
        size, cosine = measure(tokens)
        numbers = number_text(size, "size"), number_text(cosine, "cosine")
        assert said.inner_text() == (
            f"Signal, {name}: size {numbers[0]}, cosine between tokens {numbers[1]}"
        )
        heights.append(float(dot.evaluate("d => new DOMMatrix(d.style.transform).f")))
        step.click(force=True)  # at the end it does nothing
    assert step.get_attribute("aria-disabled") == "true"
    assert said.inner_text().startswith("Signal, after the last norm")
    block_1, block_12 = heights[1:7], heights[7:13]
    assert block_1 == block_12 == sorted(block_1, reverse=True)
    page.get_by_label("Residual").uncheck()  # a shorter way
    assert said.inner_text().startswith("Signal, after the last norm")
    back.click()
    assert said.inner_text().startswith("Signal, tokens in")
    assert back.get_attribute("aria-disabled") == "true"


def test_a_signal_plays_until_its_end_and_is_held(show):
    page = show(block(depth=2))
    page.clock.install()
    play = page.locator(".attn-send button").nth(1)
    said = page.locator("p.attn-signal")
    play.click()
    assert play.inner_text() == "Pause"
    page.clock.run_for(1000)
    assert "block 1, after attention" in said.inner_text()
    play.click()
    page.clock.run_for(5000)
    assert "block 1, after attention" in said.inner_text()
    play.click()
    page.clock.run_for(5000)
    assert "block 2, after feed-forward" in said.inner_text()
    assert play.inner_text() == "Play"
    play.click()  # from the start again
    page.clock.run_for(1000)
    assert "block 1, after attention" in said.inner_text()


def test_without_a_signal_nothing_tells_how_alike_tokens_become(show):
    gradients = {
        wiring: {"gradient norm": of["gradient norm"]} for wiring, of in measurements().items()
    }
    widget = widget_of(gradients, panels={"gradient norm": "size"}, signal=False)
    assert len(widget.signal) == 0
    page = show(widget)
    unfold(page)
    for wiring in MEASURED:
        choose(page, wiring)
        page.get_by_role("slider").press("End")
    words = page.locator(".attn-widget").inner_text()
    assert "cosine" not in words and "Signal" not in words
    assert page.get_by_role("button", name="Step").count() == 0
    assert not page.locator("circle.attn-signal").is_visible()
    assert page.locator(".attn-chart").count() == 1  # the rest is there


SWITCHES = """widget => [...widget.querySelectorAll(":is([type=checkbox], [type=radio]):enabled")]
    .map((input) => input.closest("label").textContent)"""


def without_signal(*wirings):
    return widget_of(measurements(wirings=wirings), signal=False)


def test_without_a_signal_each_switch_leads_to_what_was_measured(show):
    page = show(without_signal((False, None), (True, None), (True, "pre")))
    widget = page.locator(".attn-widget")
    residual, none, pre = "Residual connection", "none", "before (pre)"
    assert widget.evaluate(SWITCHES) == [residual, none]
    page.get_by_label("Residual").check()
    assert widget.evaluate(SWITCHES) == [residual, none, pre]
    page.get_by_label("before").check()
    assert widget.evaluate(SWITCHES) == [none, pre]
    assert widget.locator(".attn-legend .attn-chosen").inner_text() == "pre-norm"
    # Where single switches don't lead to all that was measured, none is gray.
    page = show(without_signal((False, None), (True, "pre")))
    assert len(page.locator(".attn-widget").evaluate(SWITCHES)) == 4


def test_on_a_phone_the_switches_their_numbers_and_each_drawing_are_in_one_view(show):
    page = show(block(residual=True, norm_position="post", depth=48), width=360)
    page.set_viewport_size({"width": 360, "height": 584})  # as below a page's bar
    for drawing in page.locator(".attn-chart, .attn-diagram").all():
        drawing.evaluate("drawing => drawing.scrollIntoView({block: 'end'})")
        switches = page.locator(".attn-switches").bounding_box()
        top = switches["y"] + switches["height"]
        for part in ("[type=checkbox]", "[type=range]", "output"):
            box = page.locator(part).bounding_box()
            assert 0 <= box["y"] and box["y"] + box["height"] <= top
        box = drawing.bounding_box()
        assert top <= box["y"] and box["y"] + box["height"] < 585


def test_the_signal_travels_on_the_line(show):
    page = show(block(residual=True, norm_position="pre", depth=2))
    page.emulate_media(reduced_motion="reduce")  # else it is on its way for half a second
    dot, diagram = page.locator("circle.attn-signal"), page.locator(".attn-diagram")
    line = diagram.locator(".attn-spine").bounding_box()
    for _ in range(4):
        box = dot.bounding_box()
        middle = box["x"] + box["width"] / 2
        assert line["x"] <= middle <= line["x"] + line["width"]
        assert line["y"] <= box["y"] and box["y"] + box["height"] <= line["y"] + line["height"]
        page.get_by_role("button", name="Step").click()


def choose(page, wiring):
    """Set both switches by keyboard."""
    residual, norm = wiring
    if page.get_by_label("Residual").is_checked() != residual:
        page.get_by_label("Residual").press("Space")
    norms = page.get_by_role("radio").all()
    wanted = [None, "pre", "post"].index(norm)
    while not norms[wanted].is_checked():
        page.get_by_role("radio", checked=True).press("ArrowRight")


def test_switches_and_slider_say_what_was_measured(show):
    given = measurements()
    page = show(widget_of(given))
    slider = page.get_by_role("slider")
    live = page.locator("[aria-live=polite]")
    for wiring in WIRINGS:
        choose(page, wiring)
        slider.press("Home")
        for i, depth in enumerate(DEPTHS):
            if i:
                slider.press("ArrowRight")
            assert slider.get_attribute("aria-valuetext") == f"{depth} blocks"
            name, formula = NAMES[wiring]
            lines = [f"{name} {formula}, {depth} blocks"]
            if wiring == NOT_MEASURED:
                lines.append("No stack wired like this was measured here.")
            else:
                for panel, kind in PANELS.items():
                    value = given[wiring][panel][i].median().item()
                    number = number_text(value, kind)
                    lines.append(f"{panel}: {number} ({in_words(value, kind)})")
            assert live.locator("> span").all_inner_texts() == lines


def test_words_begin_where_they_should(show):
    sizes = [9.9e-7, 1e-6, 1e-2, 1e2, 1e6]
    cosines = [-0.2, 0.499, 0.5, 0.9899, 0.99]
    columns = [torch.tensor(x, dtype=torch.float64)[:, None] for x in (sizes, cosines)]
    page = show(widget_of({(False, None): dict(zip(PANELS, columns, strict=True))}))
    for pair in zip(sizes, cosines, strict=True):
        told = page.locator("[aria-live] > span").all_inner_texts()[1:]
        for line, number, (panel, kind) in zip(told, pair, PANELS.items(), strict=True):
            assert line == f"{panel}: {number_text(number, kind)} ({in_words(number, kind)})"
        page.get_by_role("slider").press("ArrowRight")


def test_the_table_of_stops_tells_names_whole(show):
    page = show(block(depth=6), width=360)
    page.get_by_text("The signal, stop by stop").click()
    cells = page.locator(".attn-table :is(th, td):visible")
    cells.first.wait_for()
    cut = "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length"
    assert cells.count() > 9
    assert cells.evaluate_all(cut) == 0


def test_the_tables_hold_every_run(show):
    given = measurements()
    page = show(widget_of(given))
    unfold(page)
    for table, (panel, kind) in zip(page.locator("table").all(), PANELS.items(), strict=True):
        assert table.locator("caption").inner_text() == panel
        rows = table.locator("tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
        )
        names = [f"{NAMES[wiring][0]}, {run}" for wiring in MEASURED for run in (1, 2, 3)]
        assert [row[0] for row in rows] == names
        shown = torch.tensor([[float(cell) for cell in row[1:]] for row in rows])
        expected = torch.cat([given[wiring][panel].T for wiring in MEASURED])  # [runs, depths]
        error = (shown.double() - expected).abs()
        assert (error <= (expected * 0.0051 if kind == "size" else 0.000051)).all()


MARKS = """(chart) => ({
    ticks: [...chart.querySelectorAll(".attn-axes text.attn-tick-y")].map((text) =>
        [text.textContent, +text.previousElementSibling.getAttribute("d").split(/[ H]/)[1]]),
    depths: [...chart.querySelectorAll(".attn-axes text.attn-tick-x")].map((text) =>
        [text.textContent, +text.getAttribute("x")]),
    band: chart.querySelector(".attn-band") && ["y", "height"].map((name) =>
        +chart.querySelector(".attn-band").getAttribute(name)),
    here: +(chart.querySelector(".attn-here").getAttribute("d").match(/M([\\d.]+)/)[1]),
    ring: chart.querySelector(".attn-ring") && ["cx", "cy"].map((name) =>
        +chart.querySelector(".attn-ring").getAttribute(name)),
    curves: [...chart.querySelectorAll(".attn-curve")].map((curve) => ({
        chosen: curve.classList.contains("attn-chosen"),
        line: curve.querySelector("polyline").getAttribute("points").split(" ")
            .map((point) => point.split(",").map(Number)),
        dots: [...curve.querySelectorAll("path")].map((dot) =>
            dot.getAttribute("transform").match(/\\((.*)\\)/)[1].split(" ").map(Number)),
    })),
})"""
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def line_through(points):
    """The straight line y(x) through the first and last of points; the others must lie on it."""
    (x0, y0), (x1, y1) = points[0], points[-1]

    def line(x):
        return y0 + (x - x0) * (y1 - y0) / (x1 - x0)

    assert all(math.isclose(line(x), y, abs_tol=1e-6) for x, y in points)
    return line


def tick_value(text, kind):
    """What a tick stands for; on a logarithmic axis its power of ten."""
    if kind == "cosine":
        return float(text)
    return 0.0 if text == "1" else float(text.removeprefix("10").translate(SUPERSCRIPTS))


def test_dots_stand_where_the_axes_say(show):
    chosen, at = (True, "post"), DEPTHS.index(12)
    options = {"residual": True, "norm_position": "post", "depth": 12}
    all_given = [measurements(reach=reach) for reach in (0, 1, 20, 300)]
    all_given[1][(True, "pre")]["cosine"][0, 0] = -0.3
    page = show(*(widget_of(given, **options) for given in all_given))
    shown = [(given, panel) for given in all_given for panel in PANELS]
    for (given, panel), chart in zip(shown, page.locator(".attn-chart").all(), strict=True):
        marks, kind = chart.evaluate(MARKS), PANELS[panel]
        ticks = [(tick_value(text, kind), y) for text, y in marks["ticks"]]
        assert 2 <= len(ticks) <= 8
        y_of = line_through(ticks)
        x_of = line_through([(math.log(int(text)), x) for text, x in marks["depths"][:-1]])
        x = torch.tensor([x_of(math.log(depth)) for depth in DEPTHS])

        curves = [wiring for wiring in MEASURED if wiring != chosen] + [chosen]  # on top
        assert [curve["chosen"] for curve in marks["curves"]] == [False] * 4 + [True]
        for wiring, curve in zip(curves, marks["curves"], strict=True):
            values = given[wiring][panel]
            y = y_of(values.log10() if kind == "size" else values).float()  # [depths, runs]
            dots = torch.tensor(curve["dots"]).view(*y.shape, 2)
            torch.testing.assert_close(dots[..., 0], x[:, None].expand_as(y))
            torch.testing.assert_close(dots[..., 1], y, atol=1e-3, rtol=0)
            assert 10 <= y.min() <= y.max() <= 152  # inside the axes
            heights = y_of(median_height(values, kind)).float()
            line = torch.tensor(curve["line"])
            torch.testing.assert_close(line, torch.stack([x, heights], -1), atol=1e-3, rtol=0)
        assert math.isclose(marks["here"], x[at], abs_tol=1e-3)
        assert marks["ring"] == marks["curves"][-1]["line"][at]
        if kind == "size":
            top, height = marks["band"]
            expected = [min(152, max(10, y_of(power))) for power in (2, -2)]
            assert [top, top + height] == pytest.approx(expected, abs=1e-6)


def median_height(values, kind):
    medians = values.median(dim=1).values
    return medians.log10() if kind == "size" else medians


def test_what_was_not_measured_has_no_curve_and_no_ring(show):
    page = show(block(residual=False, norm_position="pre"))
    for chart in page.locator(".attn-chart").all():
        marks = chart.evaluate(MARKS)
        assert [curve["chosen"] for curve in marks["curves"]] == [False] * 5
        assert marks["ring"] is None
    assert page.locator(".attn-legend .attn-chosen").count() == 0
    page.get_by_label("Residual").check()
    assert page.locator(".attn-legend .attn-chosen").inner_text() == "pre-norm"
    assert page.locator(".attn-ring").count() == 2


PARTS = """(diagram) => {
    const parts = [...diagram.querySelectorAll(".attn-part")].map((part) =>
        [+part.querySelector("text").getAttribute("y") - 4, part.textContent]);
    for (const skip of diagram.querySelectorAll(".attn-skip")) {
        const from = +skip.querySelector("path").getAttribute("d").match(/M\\d+ (\\d+)/)[1];
        parts.push([from, "split"], [+skip.querySelector("circle").getAttribute("cy"), "+"]);
    }
    return parts.sort(([a], [b]) => b - a).map(([, name]) => name); // from bottom to top
}"""


def test_the_diagram_is_wired_like_the_block_of_the_package(show):
    page = show(block(depth=24))
    diagram = page.locator(".attn-diagram")
    for residual, norm in WIRINGS:
        choose(page, (residual, norm))
        expected = block_parts(TransformerBlock(4, 2, residual=residual, norm_position=norm))
        last = ["norm"] if norm == "pre" else []
        assert diagram.evaluate(PARTS) == expected + last
        label = diagram.get_attribute("aria-label")
        spoken = label.replace("a copy of x steps aside", "split").replace("x is added", "+")
        way, stack = spoken.removesuffix(".").split(". ")
        assert way.removeprefix("On a token's way up a block: ").split(", ") == expected
        assert stack == "24 blocks" + (" and one last norm" if last else "")
        assert "× 24" in diagram.evaluate("node => node.textContent")


def test_the_slider_is_moved_by_mouse_and_by_touch(show):
    page = show(block())
    box = page.get_by_role("slider").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.click(box["x"] + box["width"] - 2, y)
    assert page.locator(".attn-reading").inner_text() == "48 blocks"
    page.touchscreen.tap(box["x"] + box["width"] / 2, y)
    assert page.locator(".attn-reading").inner_text() == "12 blocks"


def test_the_legend_stands_in_line(show):
    page = show(block())
    page.add_style_tag(content="legend {float: left; width: 100%; font-size: 30px}")  # as the theme
    legend = page.locator("legend")
    assert legend.bounding_box()["width"] < 60
    assert legend.evaluate("node => getComputedStyle(node).fontSize") == "14.4px"
