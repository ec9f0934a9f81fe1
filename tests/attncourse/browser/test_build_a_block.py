"""BuildABlock in a real browser, without a kernel: its numbers, its drawings, its manners."""

import itertools
import math
import re

import pytest
import torch
from playwright.sync_api import expect
from tools.widget_pages import asked, unfold

from attncourse.lessons.l05.figures.blocks import block_parts
from attncourse.widgets import BuildABlock
from attncourse.widgets.build_a_block import signal
from attncourse.widgets.build_a_block.signal import stops
from attnlib import FeedForward, LayerNorm, MultiHeadAttention, TransformerBlock

DEPTHS = [2, 6, 12, 24, 48]
PANELS = {"gradient norm": "size", "cosine": "cosine"}
FORMULAS = {
    (False, None): "f(x)", (False, "pre"): "f(norm(x))", (False, "post"): "norm(f(x))",
    (True, None): "x + f(x)", (True, "pre"): "x + f(norm(x))", (True, "post"): "norm(x + f(x))",
}  # fmt: skip
NOT_MEASURED = (False, "pre")
MEASURED = [wiring for wiring in FORMULAS if wiring != NOT_MEASURED]


def measurements(runs=3, seed=0, *, reach=20, wirings=MEASURED):
    """Gradients from 10^-reach to 10^reach and cosines from 0 to 1, [depths, runs] in float64."""
    generator = torch.Generator().manual_seed(seed)

    def drawn():
        return torch.rand(len(DEPTHS), runs, generator=generator, dtype=torch.float64)

    return {
        wiring: {"gradient norm": 10 ** (reach * (2 * drawn() - 1)), "cosine": drawn()}
        for wiring in wirings
    }


def block(wiring=(False, None), depth=2, *, given=None, panels=PANELS, **options):
    widget = BuildABlock(DEPTHS, given or measurements(), panels=panels, **options)
    widget.residual, widget.norm_position = wiring
    widget.depth = depth
    return widget


def example(text):
    """A block for the tests of what every widget does."""
    given = {
        wiring: {text: of["gradient norm"], "cosine": of["cosine"]}
        for wiring, of in measurements().items()
    }
    return block(given=given, panels={text: "size", "cosine": "cosine"}, origin=text)


largest = example
PLACES = {
    "div.attn-widget > p.attn-note …", "div > p.attn-panel-title",
    "div > svg.attn-chart aria-label …", "output.attn-live > span …", "table > caption",
}  # fmt: skip
KEY = ("input[type=range]", "ArrowRight")
DAMAGES = {
    "values should be 150 numbers": {"values": bytes(1192)},
    "signal should be 576 numbers": {"signal": bytes(4600)},
    "values holds a number that isn't finite": {"values": b"\xff" * 1200},
    "a should be above 0, but is 0": {"values": bytes(1200)}, "runs should be": {"runs": 0},
    "stop should be": {"stop": 15}, "has_signal should be": {"has_signal": None},
    "depth should be": {"depth": 3}, "depths should be": {"depths": [6, 2]},
    "panels should be a list": {"panels": [["a", "toString"]]},
    "norm_position should be": {"norm_position": "both"},
    "variants should be": {"variants": [None]},
}  # fmt: skip


def number(text):
    return float(text.replace("\u2212", "-"))


def assert_told(texts, values):
    """Assert that texts are numbers, rounded to two digits at least or three decimals."""
    assert [number(text) for text in texts] == pytest.approx(values, rel=0.05, abs=0.0006)


def choose(page, wiring):
    """Set both switches by keyboard."""
    residual, norm = wiring
    if page.get_by_label("Residual").is_checked() != residual:
        page.get_by_label("Residual").press("Space")
    wanted = page.get_by_role("radio").nth([None, "pre", "post"].index(norm))
    while not wanted.is_checked():
        page.get_by_role("radio", checked=True).press("ArrowRight")


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
        read, _ = asked(page, block(given=given), READ)
        read = torch.tensor(read, dtype=torch.float64)  # [variants, panels, depths, runs + median]
        expected = torch.stack([torch.stack([*given[wiring].values()]) for wiring in MEASURED])
        assert torch.equal(read[..., :-1], expected)
        assert torch.equal(read[..., -1], expected.median(dim=-1).values)


@pytest.fixture(scope="module")
def ways():
    """The way up, by wiring and depth: of each stop its block, its part, its size and cosine."""

    def measured(x):
        unit = x[0] / x[0].norm(dim=-1, keepdim=True)
        T = len(unit)
        cosine = ((unit @ unit.T).sum() - T) / (T * (T - 1))
        return x.square().mean().sqrt().item(), cosine.item()

    torch.manual_seed(signal.SEED)
    x = torch.randn(1, signal.TOKENS, signal.WIDTH, dtype=torch.float64)
    width, heads = signal.WIDTH, signal.HEADS
    parts = [(MultiHeadAttention(width, heads), FeedForward(width)) for _ in range(max(DEPTHS))]
    found = {}
    for residual, norm in FORMULAS:
        state, way = x, {}
        for number, of in enumerate(parts, 1):
            block = TransformerBlock.of_parts(*of, residual=residual, norm_position=norm).double()
            names = [name for name in block_parts(block) if name != "split"]
            states = [*stops(block, state)]
            way[number] = [
                ([str(number), name], *measured(after))
                for name, after in zip(names, states, strict=True)
            ]
            state = block(state)[0]
            assert torch.equal(states[-1], state)
            if number in DEPTHS:
                last = [(["norm"], *measured(LayerNorm(width).double()(state)))]
                end = last if norm == "pre" else []
                way_up = [([], *measured(x)), *way[1], *way[number], *end]
                found[(residual, norm), number] = way_up
    return found


def place(name):
    """Which block and part a stop's name tells, as `ways` has them; it calls "+" the sum."""
    name = name.partition(":")[0].replace("sum", "+")
    return re.findall(r"\d+|attention|feed-forward|norm|\+", name)


def test_the_signals_numbers_are_those_of_the_packages_blocks(show, ways):
    _, read = asked(show(block()), block(), READ)
    for (wiring, depth), way in zip(
        itertools.product(FORMULAS, DEPTHS), itertools.chain(*read), strict=True
    ):
        for stop, (where, *numbers) in zip(way, ways[wiring, depth], strict=True):
            assert place(stop["name"]) == where
            assert [stop["size"], stop["cosine"]] == pytest.approx(numbers, rel=1e-9)


def test_words_begin_where_they_should(show):
    meanings = """([all, kind]) =>
      all.map((one) => attnModules["build_a_block/words.js"].meaningOf(one, kind))"""
    page = show(block())
    for kind, begins, first, last in (
        ("size", [1e-6, 1e-2, 1e2, 1e6], "vanish", "explod"),
        ("cosine", [0.5, 0.99], "apart", "same"),
    ):
        sides = [value * factor for value in begins for factor in (0.9999, 1)]
        told = page.evaluate(meanings, [sides, kind])
        assert len({*told}) == len(begins) + 1
        assert told[1:-1:2] == told[2::2]
        assert first in told[0] and last in told[-1]


PARTS = """(diagram) => {
    const parts = [...diagram.querySelectorAll(".attn-part")].map((part) =>
        [+part.querySelector("text").getAttribute("y") - 4, part.textContent]);
    for (const skip of diagram.querySelectorAll(".attn-skip")) {
        const from = +skip.querySelector("path").getAttribute("d").match(/M\\d+ (\\d+)/)[1];
        parts.push([from, "split"], [+skip.querySelector("circle").getAttribute("cy"), "+"]);
    }
    return parts.sort(([a], [b]) => b - a).map(([, name]) => name); // from bottom to top
}"""


def test_by_keys_all_wirings_are_drawn_and_say_what_was_measured(show):
    given = measurements()
    page = show(block(given=given))
    live, diagram = page.locator("output[aria-live=polite]"), page.locator(".attn-diagram")
    slider, names = page.get_by_role("slider"), set()
    keys = ["Home", *["ArrowRight"] * (len(DEPTHS) - 1)]
    for wiring, (key, depth) in itertools.product(FORMULAS, zip(keys, DEPTHS, strict=True)):
        choose(page, wiring)
        slider.press(key)
        assert slider.get_attribute("aria-valuetext").split()[0] == str(depth)
        assert live.locator("code").inner_text() == FORMULAS[wiring]
        assert f", {depth} " in live.inner_text()
        assert f"× {depth}" in diagram.evaluate("node => node.textContent")
        name, *numbers = live.locator("strong").all_inner_texts()
        measured = given.get(wiring, {}).values()
        medians = [values[DEPTHS.index(depth)].median().item() for values in measured]
        assert_told(numbers, medians)
        assert page.locator(".attn-ring").count() == len(medians)
        assert page.locator(".attn-curve.attn-chosen").count() == len(medians)
        chosen = page.locator(".attn-legend .attn-chosen").all_inner_texts()
        assert chosen == ([name] if medians else [])
        names.add(name)
        parts = block_parts(TransformerBlock(4, 2, residual=wiring[0], norm_position=wiring[1]))
        last = ["norm"] if wiring[1] == "pre" else []
        assert diagram.evaluate(PARTS) == parts + last
        _, way, stack = re.split(r": |\. ", diagram.get_attribute("aria-label"))
        own = ("attention", "feed-forward", "norm")
        spoken = [part if part in own else None for part in way.split(", ")]
        assert spoken == [part if part in own else None for part in parts]
        assert place(stack) == [str(depth), *last]
    assert len(names) == len(FORMULAS)
    box = slider.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator(".attn-reading").inner_text().startswith("12 ")


SWITCHES = """widget => [...widget.querySelectorAll(":is([type=checkbox], [type=radio])")]
    .map((input) => input.disabled ? "-" : "+").join("")"""  # residual, none, pre, post


def test_without_a_signal_each_switch_leads_to_what_was_measured_and_cosines_are_not_told(show):
    def opened(*wirings):
        given = measurements(wirings=wirings)
        widget = block(given=given, panels={"gradient norm": "size"}, signal=False)
        assert len(widget.signal) == 0
        return show(widget)

    page = opened((False, None), (True, None), (True, "pre"))
    widget = page.locator(".attn-widget")
    unfold(page)
    for label, switches in (("none", "++--"), ("Residual", "+++-"), ("before", "-++-")):
        widget.get_by_label(label).click()
        assert widget.evaluate(SWITCHES) == switches
        assert not re.search("cosine|signal", widget.inner_text(), re.IGNORECASE)
    assert not page.locator(".attn-send, circle.attn-signal").first.is_visible()
    assert page.locator(".attn-chart").count() == 1  # the rest is there
    # Where single switches don't lead to all that was measured, none is gray.
    page = opened((False, None), (True, "pre"))
    assert page.locator(".attn-widget").evaluate(SWITCHES) == "++++"


def test_a_signal_steps_up_the_line_and_says_what_it_measures(show, ways):
    page = show(block((True, "pre"), 12))
    page.emulate_media(reduced_motion="reduce")  # else it is on its way for half a second
    step, back = (page.get_by_role("button", name=name) for name in ("Step", "Back"))
    said, dot = page.locator("p.attn-signal[role=status]"), page.locator("circle.attn-signal")
    line = page.locator(".attn-spine").bounding_box()
    heights, sizes, radii = [], [], []
    for where, size, cosine in ways[(True, "pre"), 12]:
        assert place(said.inner_text()) == where
        assert_told(said.locator("strong").all_inner_texts(), [size, cosine])
        box = dot.bounding_box()
        heights.append(box["y"] + box["height"] / 2)
        assert line["x"] <= box["x"] + box["width"] / 2 <= line["x"] + line["width"]
        assert line["y"] <= heights[-1] <= line["y"] + line["height"]
        sizes.append(size)
        radii.append(float(dot.get_attribute("r")))
        step.click(force=True)  # at the end it does nothing
    assert step.get_attribute("aria-disabled") == "true"
    assert heights[1:7] == pytest.approx(heights[7:13])  # of block 1 and of block 12
    assert heights[:7] == sorted(heights[:7], reverse=True) and heights[-1] < min(heights[:-1])
    assert sorted(range(14), key=radii.__getitem__) == sorted(range(14), key=sizes.__getitem__)
    page.get_by_label("Residual").uncheck()  # a shorter way
    assert place(said.inner_text()) == ["norm"]
    back.click()
    assert place(said.inner_text()) == []
    assert back.get_attribute("aria-disabled") == "true"
    step.click()
    assert back.get_attribute("aria-disabled") == step.get_attribute("aria-disabled") == "false"


def test_a_signal_plays_until_its_end_and_is_held(show):
    page = show(block())
    page.clock.install()
    play = page.locator(".attn-send button").nth(1)
    for milliseconds, where, is_playing in (
        (1000, ["1", "attention"], True),
        (5000, ["1", "attention"], False),  # it was pressed again
        (5000, ["2", "feed-forward"], False),  # to the end
        (1000, ["1", "attention"], True),  # from the start again
    ):
        play.click()
        page.clock.run_for(milliseconds)
        assert place(page.locator("p.attn-signal").inner_text()) == where
        assert (play.inner_text() == "Pause") == is_playing


NUMBERS = """(nodes, name) => nodes.map((node) =>
  (node.getAttribute(name).match(/-?[\\d.]+(e-\\d+)?/g) ?? []).map(Number))"""
SUPERSCRIPTS = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")


def line_through(points):
    """The straight line y(x) through the first and last of points; the others must lie on it."""
    (x0, y0), (x1, y1) = points[0], points[-1]

    def line(x):
        return y0 + (x - x0) * (y1 - y0) / (x1 - x0)

    assert all(math.isclose(line(x), y, abs_tol=1e-6) for x, y in points)
    return line


@pytest.mark.parametrize("reach", [0, 1, 20, 300])
def test_dots_stand_where_the_axes_say(show, reach):
    chosen, at = (True, None), DEPTHS.index(12)
    given = measurements(reach=reach)
    if reach == 1:
        given[True, "pre"]["cosine"][0, 0] = -0.3
    page = show(block(chosen, 12, given=given))
    for (panel, kind), chart in zip(PANELS.items(), page.locator(".attn-chart").all(), strict=True):

        def numbers(selector, name, chart=chart):
            return chart.locator(selector).evaluate_all(NUMBERS, name)

        texts = [
            (text == "1" and kind == "size" and "0") or text.removeprefix("10")
            for text in chart.locator(".attn-tick-y").all_text_contents()
        ]
        exponents = [float(text.translate(SUPERSCRIPTS)) for text in texts]
        assert 2 <= len(exponents) <= 8
        heights = [y for _, y, *_ in numbers(".attn-axes path", "d")]
        y_of = line_through([*zip(exponents, heights, strict=True)])
        depths = chart.locator(".attn-tick-x").all_text_contents()[:-1]
        places = [x for (x,) in numbers(".attn-tick-x", "x")[:-1]]
        x_of = line_through([(math.log(int(n)), x) for n, x in zip(depths, places, strict=True)])
        curves = [wiring for wiring in MEASURED if wiring != chosen] + [chosen]  # on top
        values = torch.stack([given[wiring][panel] for wiring in curves])
        values = torch.cat([values, values.median(dim=2, keepdim=True).values], 2)
        y = y_of(values.log10() if kind == "size" else values).float()  # [curves, depths, runs + 1]
        assert 10 <= y.min() <= y.max() <= 152  # inside the axes
        x = torch.tensor([x_of(math.log(depth)) for depth in DEPTHS])[:, None].expand_as(y)
        dots = torch.tensor(numbers(".attn-curve path", "transform")).view(*y.shape[:2], -1, 2)
        lines = torch.tensor(numbers(".attn-curve polyline", "points")).view(*y.shape[:2], 1, 2)
        drawn = torch.cat([dots, lines], 2)
        torch.testing.assert_close(drawn, torch.stack([x, y], -1), atol=1e-3, rtol=0)
        assert chart.locator(".attn-curve:not(.attn-chosen)").count() == 4
        assert chart.locator(".attn-chosen ~ .attn-curve").count() == 0
        shapes = "all => all.map((one) => one.querySelector('path').getAttribute('d'))"
        marks = chart.locator(".attn-curve").evaluate_all(shapes)
        assert {*marks} == {*page.locator(".attn-legend svg").evaluate_all(shapes)}
        assert len({*marks}) == 5
        assert numbers(".attn-here", "d")[0][0] == pytest.approx(x[0, at, 0].item())
        ring = [numbers(".attn-ring", name)[0][0] for name in ("cx", "cy")]
        assert ring == pytest.approx(lines[-1, at, 0].tolist())
        if kind == "size":
            top, height = (numbers(".attn-band", name)[0][0] for name in ("y", "height"))
            expected = [min(152, max(10, y_of(power))) for power in (2, -2)]
            assert [top, top + height] == pytest.approx(expected, abs=1e-6)


def test_the_tables_hold_every_run(show):
    given = measurements()
    page = show(block(given=given))
    unfold(page)
    texts = "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    for i, (panel, kind) in enumerate(PANELS.items()):
        rows = page.locator("table").nth(i).locator("tbody tr").evaluate_all(texts)
        names, *columns = zip(*rows, strict=True)
        assert [name.split(", ")[-1] for name in names] == ["1", "2", "3"] * len(MEASURED)
        expected = torch.cat([given[wiring][panel].T for wiring in MEASURED])  # [runs, depths]
        near = {"rel": 0.0051} if kind == "size" else {"abs": 0.000051}
        for column, wanted in zip(columns, expected.T.tolist(), strict=True):
            assert [number(text) for text in column] == pytest.approx(wanted, **near)


def test_on_a_phone_the_switches_their_numbers_and_each_drawing_are_in_one_view(show):
    page = show(block((True, "post"), 48), width=360)
    page.set_viewport_size({"width": 360, "height": 584})  # as below a page's bar
    for drawing in page.locator(".attn-chart, .attn-diagram").all():
        drawing.evaluate("drawing => drawing.scrollIntoView({block: 'end'})")
        switches, box = page.locator(".attn-switches").bounding_box(), drawing.bounding_box()
        top = switches["y"] + switches["height"]
        assert 0 <= switches["y"] and top <= box["y"] and box["y"] + box["height"] < 585
    page.locator("summary").last.click()  # of the signal's stops: a table that tells names whole
    cells = page.locator(".attn-table :is(th, td):visible")
    expect(cells.nth(9)).to_be_visible()
    cut = "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length"
    assert cells.evaluate_all(cut) == 0


def test_the_legend_stands_in_line(show):
    page = show(block())
    tops = [page.locator(one).first.bounding_box()["y"] for one in ("legend", "fieldset label")]
    assert abs(tops[0] - tops[1]) < 10
    page.add_style_tag(content="legend {float: left; width: 100%; font-size: 30px}")  # as the theme
    assert page.locator("legend").bounding_box()["width"] < 60
    assert page.locator("legend").evaluate("node => getComputedStyle(node).fontSize") == "14.4px"
