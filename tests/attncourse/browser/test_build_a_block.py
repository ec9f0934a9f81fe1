"""BuildABlock in a real browser, without a kernel: its numbers, its drawings, its manners."""

import itertools
import re

import numpy as np
import pytest
import torch
from numpy.polynomial import Polynomial
from tools.head_labs import CELLS
from tools.widget_pages import box, unfold

from attncourse.lessons.l05.figures.blocks import block_parts
from attncourse.widgets import BuildABlock
from attncourse.widgets.build_a_block import signal
from attnlib import FeedForward, LayerNorm, MultiHeadAttention, TransformerBlock

DEPTHS = [2, 12, 48]
PANELS = {"gradient norm": "size", "cosine": "cosine"}
FORMULAS = {
    (False, None): "f(x)", (False, "pre"): "f(norm(x))", (False, "post"): "norm(f(x))",
    (True, None): "x + f(x)", (True, "pre"): "x + f(norm(x))", (True, "post"): "norm(x + f(x))",
}  # fmt: skip
MEASURED = [wiring for wiring in FORMULAS if wiring != (False, "pre")]
# What the numbers of both panels are called, from where and up to where.
MEANINGS = [
    {"vanish": (0, 0.01), "healthy": (0.01, 100), "explod": (100, 1e300)},
    {"apart": (-1, 0.99), "same": (0.99, 2)},
]


def measurements(runs=3, *, reach=20, wirings=MEASURED):
    """Gradients from 10^-reach to 10^reach and cosines from 0 to 1, [depths, runs] in float64."""
    generator = torch.Generator().manual_seed(0)

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
    "values should be 90 numbers": {"values": bytes(712)},
    "signal should be 384 numbers": {"signal": bytes(3064)},
    "should be above 0, but is 0": {"values": bytes(720)},
    "depth should be": {"depth": 3},
    "panels should be a list": {"panels": [["a", "toString"]]},
    "norm_position should be": {"norm_position": "both"},
}


def numbers_of(texts):
    return [float(text.replace("\u2212", "-")) for text in texts]


def assert_told(texts, values):
    """Assert that texts are numbers, rounded to two digits at least or three decimals."""
    assert numbers_of(texts) == pytest.approx(values, rel=0.05, abs=0.0006)


def way_up(residual, norm, depth):
    """The stops of a signal in torch: of each its block and part, its size and its cosine."""
    torch.manual_seed(signal.SEED)
    x = torch.randn(1, signal.TOKENS, signal.WIDTH, dtype=torch.float64)
    states = [([], x)]
    for number in range(1, depth + 1):
        parts = MultiHeadAttention(signal.WIDTH, signal.HEADS), FeedForward(signal.WIDTH)
        block = TransformerBlock.of_parts(*parts, residual=residual, norm_position=norm).double()
        after_parts, x = [*signal.stops(block, x)], block(x)[0]
        assert torch.equal(after_parts[-1], x)
        if number in (1, depth):
            names = [name for name in block_parts(block) if name != "split"]
            places = [[str(number), name] for name in names]
            states += zip(places, after_parts, strict=True)
    if norm == "pre":
        states.append((["norm"], LayerNorm(signal.WIDTH).double()(x)))
    way = []
    for where, state in states:
        unit = state[0] / state[0].norm(dim=-1, keepdim=True)
        T = len(unit)
        cosine = ((unit @ unit.T).sum() - T) / (T * (T - 1))
        way.append((where, state.square().mean().sqrt().item(), cosine.item()))
    return way


def place(name):
    """Which block and part a stop's name tells, as `way_up` has them; it calls "+" the sum."""
    name = name.partition(":")[0].replace("sum", "+")
    return re.findall(r"\d+|attention|feed-forward|norm|\+", name)


PARTS = """(diagram) => {
    const parts = [...diagram.querySelectorAll(".attn-part")].map((part) =>
        [+part.querySelector("text").getAttribute("y") - 4, part.textContent]);
    for (const skip of diagram.querySelectorAll(".attn-skip")) {
        const from = +skip.querySelector("path").getAttribute("d").match(/M\\d+ (\\d+)/)[1];
        parts.push([from, "split"], [+skip.querySelector("circle").getAttribute("cy"), "+"]);
    }
    return parts.sort(([a], [b]) => b - a).map(([, name]) => name); // from bottom to top
}"""


def test_by_keys_all_wirings_are_drawn_and_say_what_was_measured_and_what_a_signal_measures(show):
    given = measurements(runs=4)
    for norm, sizes, cosines in (  # on both sides of where a word begins
        ("post", [0.0099, 0.0101, 99], [0.989, 0.991, 1]),
        (None, [101, 1, 2], [0, 0.5, -1]),
    ):
        for panel, values in zip(PANELS, (sizes, cosines), strict=True):
            given[True, norm][panel] = torch.tensor(values).double()[:, None].repeat(1, 4)
    page = show(block(given=given))
    page.locator("summary").last.click()  # the signal's stops
    stops = page.locator("details").last.locator("tbody tr")
    stops.first.wait_for()
    live, diagram = page.locator("output[aria-live=polite]"), page.locator(".attn-diagram")
    slider, names = page.get_by_role("slider"), set()
    for wiring, (at, depth) in itertools.product(FORMULAS, enumerate(DEPTHS)):
        residual, norm = wiring
        page.get_by_label("Residual").set_checked(residual)
        if at == 0 and wiring != (False, None):
            page.get_by_role("radio", checked=True).press("ArrowRight")
        slider.press("ArrowRight" if at else "Home")
        assert slider.get_attribute("aria-valuetext").split()[0] == str(depth)
        assert live.locator("code").inner_text() == FORMULAS[wiring]
        assert f", {depth} " in live.inner_text()
        assert f"× {depth}" in diagram.evaluate("node => node.textContent")
        name, *numbers = live.locator("strong").all_inner_texts()
        names.add(name)
        measured = given.get(wiring, {}).values()
        medians = [runs[at].median().item() for runs in measured]
        assert_told(numbers, medians)
        for median, meanings in zip(medians, MEANINGS, strict=False):
            for word, (low, high) in meanings.items():
                assert (word in live.inner_text()) == (low <= median < high)
        for mark in (".attn-ring", ".attn-curve.attn-chosen"):
            assert page.locator(mark).count() == len(measured)
        chosen = page.locator(".attn-legend .attn-chosen").all_inner_texts()
        assert chosen == ([name] if measured else [])
        parts = block_parts(TransformerBlock(4, 2, residual=residual, norm_position=norm))
        last = ["norm"] if norm == "pre" else []
        assert diagram.evaluate(PARTS) == parts + last
        _, way, stack = re.split(r": |\. ", diagram.get_attribute("aria-label"))
        assert place(way) == [part for part in parts if part not in ("split", "+")]
        assert place(stack) == [str(depth), *last]
        names_of_stops, *numbers = zip(*stops.evaluate_all(CELLS), strict=True)
        places, *expected = zip(*way_up(*wiring, depth), strict=True)
        assert [*map(place, names_of_stops)] == [*places]
        for texts, values in zip(numbers, expected, strict=True):
            assert_told(texts, values)
    assert len(names) == len(FORMULAS)
    page.locator("summary").first.click()  # every run that was measured
    for table, (panel, kind) in zip(page.locator("table").all(), PANELS.items(), strict=False):
        table.locator("tbody tr").first.wait_for()
        names, *columns = zip(*table.locator("tbody tr").evaluate_all(CELLS), strict=True)
        assert [name.split(", ")[-1] for name in names] == [*"1234"] * len(MEASURED)
        expected = torch.cat([given[wiring][panel].T for wiring in MEASURED])  # [runs, depths]
        near = {"rel": 0.0051, "abs": 0} if kind == "size" else {"abs": 0.000051}
        for column, wanted in zip(columns, expected.T.tolist(), strict=True):
            assert numbers_of(column) == pytest.approx(wanted, **near)


SWITCHES = """widget => [...widget.querySelectorAll(":is([type=checkbox], [type=radio])")]
    .map((input) => input.disabled ? "-" : "+").join("")"""  # residual, none, pre, post


def test_without_a_signal_each_switch_leads_to_what_was_measured_and_cosines_are_not_told(show):
    wirings = [(False, None), (True, None), (True, "pre")]
    given = [measurements(wirings=some) for some in (wirings, wirings[::2])]
    page = show(
        *(block(given=one, panels={"gradient norm": "size"}, signal=False) for one in given)
    )
    widget, other = page.locator(".attn-widget").all()
    assert other.evaluate(SWITCHES) == "++++"  # whose single switches don't lead everywhere
    unfold(page)
    for label, switches in (("none", "++--"), ("Residual", "+++-"), ("before", "-++-")):
        widget.get_by_label(label).click()
        assert widget.evaluate(SWITCHES) == switches
        assert not re.search("cosine|signal", widget.inner_text(), re.IGNORECASE)


def test_a_signal_is_stepped_upwards_played_and_held(show):
    page = show(block((True, "pre"), 12))
    page.emulate_media(reduced_motion="reduce")  # else it is on its way for half a second
    step, play, back = page.locator(".attn-send button").all()
    said, heights, sizes, radii = page.locator("p.attn-signal[role=status]"), [], [], []
    for where, size, cosine in way_up(True, "pre", 12):
        assert place(said.inner_text()) == where
        assert_told(said.locator("strong").all_inner_texts(), [size, cosine])
        dot = box(page, "circle.attn-signal")
        heights.append((dot["top"] + dot["bottom"]) / 2)
        sizes.append(size)
        radii.append(float(page.locator("circle.attn-signal").get_attribute("r")))
        step.click(force=True)  # at the end it does nothing
    assert step.get_attribute("aria-disabled") == "true"
    assert heights[1:7] == pytest.approx(heights[7:13])  # of block 1 and of block 12
    assert heights[:7] == sorted(heights[:7], reverse=True) and heights[-1] < min(heights[:-1])
    assert sorted(range(14), key=radii.__getitem__) == sorted(range(14), key=sizes.__getitem__)
    page.get_by_label("Residual").uncheck()  # a shorter way
    assert place(said.inner_text()) == ["norm"]
    back.click()
    assert back.get_attribute("aria-disabled") == "true"
    page.clock.install()
    for milliseconds, where, is_playing in (
        (1000, ["1", "norm"], True),
        (9000, ["1", "norm"], False),  # it was pressed again
        (9000, ["norm"], False),  # to the end
        (1000, ["1", "norm"], True),  # from the start again
    ):
        play.click()
        page.clock.run_for(milliseconds)
        assert place(said.inner_text()) == where
        assert (play.inner_text() == "Pause") == is_playing


NUMBERS = """(nodes, name) => nodes.map((node) =>
  (node.getAttribute(name).match(/-?[\\d.]+(e-\\d+)?/g) ?? []).map(Number))"""
SUPERSCRIPTS = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")


def height_told(tick, kind):
    """What a tick says of its height: a cosine, or of a size the power of ten."""
    if kind == "size":
        tick = "0" if tick == "1" else tick.removeprefix("10")
    return float(tick.translate(SUPERSCRIPTS))


@pytest.mark.parametrize("reach", [0, 300])
def test_dots_stand_where_the_axes_say(show, reach):
    chosen, at = (True, None), DEPTHS.index(12)
    given = measurements(reach=reach)
    if reach:
        given[True, "pre"]["cosine"][0, 0] = -0.3
    page = show(block(chosen, 12, given=given))
    curves = [wiring for wiring in MEASURED if wiring != chosen] + [chosen]  # on top
    for (panel, kind), chart in zip(PANELS.items(), page.locator(".attn-chart").all(), strict=True):

        def numbers(selector, name, chart=chart):
            return chart.locator(selector).evaluate_all(NUMBERS, name)

        ticks = chart.locator(".attn-tick-y").all_text_contents()
        heights = [y for _, y, *_ in numbers(".attn-axes path", "d")]
        y_of = Polynomial.fit([height_told(tick, kind) for tick in ticks], heights, 1)
        depths = [int(text) for text in chart.locator(".attn-tick-x").all_text_contents()[:-1]]
        places = [x for (x,) in numbers(".attn-tick-x", "x")[:-1]]
        x = Polynomial.fit(np.log(depths), places, 1)(np.log(DEPTHS))
        values = torch.stack([given[wiring][panel] for wiring in curves])
        values = torch.cat([values, values.median(dim=2, keepdim=True).values], 2).numpy()
        y = y_of(np.log10(values) if kind == "size" else values)  # [curves, depths, runs + 1]
        assert 10 <= y.min() <= y.max() <= 152  # inside the axes
        dots = np.reshape(numbers(".attn-curve path", "transform"), (*y.shape[:2], -1, 2))
        lines = np.reshape(numbers(".attn-curve polyline", "points"), (*y.shape[:2], 1, 2))
        expected = np.stack(np.broadcast_arrays(x[:, None], y), -1)
        assert np.concatenate([dots, lines], 2) == pytest.approx(expected, abs=1e-3)
        ring = [numbers(".attn-ring", name)[0][0] for name in ("cx", "cy")]
        assert ring == pytest.approx(lines[-1, at, 0])
        if kind == "size":
            top, height = (numbers(".attn-band", name)[0][0] for name in ("y", "height"))
            expected = [min(152, max(10, y_of(power))) for power in (2, -2)]
            assert [top, top + height] == pytest.approx(expected, abs=1e-6)


def test_on_a_phone_the_switches_and_each_drawing_are_in_one_view(show):
    page = show(block((True, "post"), 48), width=360)
    page.set_viewport_size({"width": 360, "height": 584})  # as below a page's bar
    slider = box(page, "[type=range]")
    page.touchscreen.tap((slider["left"] + slider["right"]) / 2, slider["top"] + 9)
    assert page.locator(".attn-reading").inner_text().startswith("12 ")
    for drawing in page.locator(".attn-chart, .attn-diagram").all():
        drawing.evaluate("drawing => drawing.scrollIntoView({block: 'end'})")
        switches, drawn = box(page, ".attn-switches"), drawing.bounding_box()
        assert 0 <= switches["top"] and switches["bottom"] <= drawn["y"]
        assert drawn["y"] + drawn["height"] < 585
