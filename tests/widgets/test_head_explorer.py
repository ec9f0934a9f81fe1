"""HeadExplorer in a real browser, without a kernel: its numbers, its controls, its manners."""

import base64
import math

import numpy as np
import pytest
import torch
from tools.widget_pages import TOKEN_MAP_PLACES, unfold

from attnlib import palette
from attnlib.widgets import HeadExplorer

SENTENCE = "The animal didn't cross the street because it was too tired".split()


def explorer(T=11, d=16, *, seed=0, scale=1.0, tokens=None, **options):
    generator = torch.Generator().manual_seed(seed)
    q, k = (scale * torch.randn(T, d, generator=generator) for _ in range(2))
    return HeadExplorer(tokens or [f"t{i}" for i in range(T)], q, k, **options)


def example(text):
    """An explorer for the tests of what every widget does."""
    return explorer(tokens=[text, *"bcdefghijk"], origin=text)


def largest(text):
    tokens = [f"token{i}" for i in range(23)] + [text]
    return explorer(T=24, d=64, num_heads=64, tokens=tokens, origin=text)


PLACES = {"div.attn-widget > p.attn-note …", *TOKEN_MAP_PLACES}
KEY = ("input[type=range]", "ArrowRight")


def expected_weights(widget, num_heads, causal):
    """Torch's weights [h, T, T] in float64 on what the widget's state holds."""
    q, k = (
        torch.from_numpy(np.frombuffer(getattr(widget, name), "<f4").astype(np.float64))
        .view(widget.T, num_heads, -1)
        .transpose(0, 1)
        for name in ("q", "k")
    )
    scores = q @ k.transpose(-2, -1) / math.sqrt(widget.d / num_heads)
    if causal:
        scores = scores.masked_fill(~torch.ones(widget.T, widget.T).tril().bool(), -math.inf)
    return scores.softmax(-1)


def table_numbers(page):
    """The numbers of the open table, without the column of sums, and that column."""
    page.locator("tbody tr").first.wait_for()
    rows = page.locator("tbody tr").all()
    numbers = [[float(cell) for cell in row.locator("td").all_text_contents()] for row in rows]
    numbers = torch.tensor(numbers, dtype=torch.float64)
    return numbers[:, :-1], numbers[:, -1]


def painted(canvas):
    """The pixels [T, T, 4] of a canvas."""
    pixels = canvas.evaluate(
        "c => Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)"
    )
    T = canvas.evaluate("c => c.width")
    return torch.tensor(pixels, dtype=torch.float64).view(T, T, 4)


def color_of(weights):
    """The palette's colors [..., 3] of weights, linear between its stops."""
    stops = [[int(hex[i : i + 2], 16) for i in (1, 3, 5)] for hex in palette.WEIGHT_SCALE]
    stops = np.array(stops)
    positions = np.linspace(0, 1, len(stops))
    return torch.from_numpy(
        np.stack([np.interp(weights.numpy(), positions, stops[:, c]) for c in range(3)], -1)
    )


STATE = ("tokens", "T", "d", "num_heads", "head")  # what the browser reads beside the bytes
EXTREMES = {
    "random": explorer(T=7, d=12, seed=1),
    "wide": explorer(T=5, d=60, seed=2),
    "prime": explorer(T=4, d=7, seed=3),
    "one token": explorer(T=1, d=6, seed=4),
    "one column": explorer(T=6, d=1, seed=5),
    "scores to +-80 and beyond": explorer(T=9, d=16, seed=6, scale=9.0),
    "exactly +-80": HeadExplorer(
        ["a", "b"],
        torch.tensor([[8.0, 0.0], [-8.0, 0.0]]),
        torch.tensor([[10.0, 0.0], [-10.0, 0.0]]),
        num_heads=2,
    ),
    "all equal": HeadExplorer(list("abc"), torch.full((3, 4), 5.0), torch.full((3, 4), 7.0)),
    "hundreds of thousands": explorer(T=5, d=4, seed=7, scale=600.0),
}


@pytest.mark.parametrize("case", EXTREMES)
def test_the_browser_computes_what_torch_computes(show, case):
    widget = EXTREMES[case]
    page = show(widget)
    computed = page.evaluate(
        """({state, q, k}) => {
            const {readState} = attnModules["head_explorer.js"];
            const {attentionWeights, divisors} = attnModules["shared/attention.js"];
            const decode = (text) =>
                new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
            const model = new Map(Object.entries({...state, q: decode(q), k: decode(k)}));
            const {T, d, ...tensors} = readState(model);
            return [false, true].flatMap((causal) => divisors(d).map((numHeads) => ({
                causal, numHeads,
                weights: Array.from({length: numHeads}, (_, head) => Array.from(attentionWeights(
                    tensors.q, tensors.k, {T, d, numHeads, head, causal}))),
            })));
        }""",
        {
            "state": {name: getattr(widget, name) for name in STATE},
            "q": base64.b64encode(widget.q).decode(),
            "k": base64.b64encode(widget.k).decode(),
        },
    )
    counts = [h for h in range(1, widget.d + 1) if widget.d % h == 0]
    assert [(c["causal"], c["numHeads"]) for c in computed] == [
        (causal, h) for causal in (False, True) for h in counts
    ]
    for result in computed:
        expected = expected_weights(widget, result["numHeads"], result["causal"])
        weights = torch.tensor(result["weights"], dtype=torch.float64).view_as(expected)
        torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_maps_and_table_show_those_numbers_for_every_head_count(show, causal):
    widget = explorer(T=5, d=12, scale=2.0, num_heads=1, causal=causal)
    page = show(widget)
    unfold(page)
    slider = page.get_by_role("slider")
    slider.focus()
    for step, num_heads in enumerate([1, 2, 3, 4, 6, 12]):
        if step:
            slider.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == (
            f"{num_heads} head{'s' * (num_heads > 1)} of width {12 // num_heads}"
        )
        tiles = page.locator(".attn-tile")
        assert tiles.count() == num_heads
        expected = expected_weights(widget, num_heads, causal)
        may_look = torch.ones(5, 5).tril().bool() if causal else torch.ones(5, 5).bool()
        for head in range(num_heads):
            pixels = painted(tiles.nth(head).locator("canvas"))
            difference = (pixels[..., :3] - color_of(expected[head])).abs()
            assert difference[may_look].max() <= 1  # a color is a whole number
            assert torch.equal(pixels[..., 3] == 255, may_look)
        tiles.nth(num_heads - 1).click()
        numbers, sums = table_numbers(page)
        torch.testing.assert_close(numbers, expected[-1], atol=0.0005001, rtol=0)
        assert torch.equal(sums, torch.ones(5, dtype=torch.float64))
        assert torch.equal(
            painted(page.locator(".attn-plot canvas")), painted(tiles.last.locator("canvas"))
        )


def test_the_slider_is_moved_by_mouse_and_by_touch(show):
    page = show(explorer(d=16, num_heads=1))
    box = page.get_by_role("slider").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.click(box["x"] + box["width"] - 2, y)
    assert page.locator(".attn-tile").count() == 16
    page.touchscreen.tap(box["x"] + box["width"] / 2, y)
    assert page.locator(".attn-tile").count() == 4
    assert page.locator(".attn-reading").inner_text() == "4 heads of width 4"


def test_the_frame_of_the_focus_leaves_the_numbers_below_the_slider_free(show):
    page = show(explorer())
    slider = page.locator("input[type=range]")
    page.keyboard.press("Tab")
    assert slider.evaluate("slider => slider.matches(':focus-visible')")
    frame = slider.evaluate("""slider => {
        const { outlineOffset, outlineWidth } = getComputedStyle(slider);
        return parseFloat(outlineOffset) + parseFloat(outlineWidth);
    }""")
    assert frame >= 2
    box, numbers = slider.bounding_box(), page.locator(".attn-ticks").bounding_box()
    assert box["y"] + box["height"] + frame <= numbers["y"]


def test_causal_is_one_click(show):
    page = show(explorer(T=3))
    assert page.get_by_text("may not look").is_hidden()
    page.get_by_label("Causal").check()
    unfold(page)
    numbers, _ = table_numbers(page)
    assert torch.equal(numbers, numbers.tril())
    assert page.get_by_text("may not look").is_visible()


def test_a_click_enlarges_a_head(show):
    page = show(explorer(d=16, num_heads=4))
    page.get_by_role("button", name="head 3").click()
    assert page.locator(".attn-heading").inner_text() == "Head 3 of 4 reads q[:, 8:12], k[:, 8:12]"
    assert page.get_by_role("button", name="head 3", pressed=True).count() == 1
    assert page.locator(".attn-tile[aria-pressed=true]").count() == 1


def test_the_grid_is_one_tab_stop_walked_by_arrow_keys(show):
    page = show(explorer(d=16, num_heads=4))  # two rows of two
    focused = "document.activeElement.getAttribute('aria-label')"
    page.get_by_label("Causal").focus()
    page.keyboard.press("Tab")
    visited = [page.evaluate(focused)]
    for key in "ArrowRight ArrowDown ArrowDown ArrowUp ArrowLeft ArrowLeft End".split():
        page.keyboard.press(key)
        visited.append(page.evaluate(focused))
    assert visited == [f"head {n}" for n in (1, 2, 4, 4, 2, 1, 1, 4)]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    # JupyterLab leaves a focused element's keys alone where it finds this mark.
    assert page.evaluate("document.activeElement.hasAttribute('data-lm-suppress-shortcuts')")
    assert page.locator(".attn-heading strong").inner_text() == "Head 1"
    page.keyboard.press("Enter")
    assert page.locator(".attn-heading strong").inner_text() == "Head 4"
    page.keyboard.press("Tab")
    assert page.evaluate(focused).startswith("Weights of head 4")


def test_hover_and_arrow_keys_read_the_enlarged_map(show):
    widget = explorer(tokens=SENTENCE, num_heads=1)
    weights = expected_weights(widget, 1, causal=False)[0]
    page = show(widget)
    live = page.locator("[aria-live=polite]")
    plot = page.locator(".attn-plot")
    cell = plot.bounding_box()["width"] / 11
    plot.hover(position={"x": 1.5 * cell, "y": 7.5 * cell})
    assert live.inner_text() == f"it → animal {weights[7, 1]:.2f}".replace("0.", ".")
    plot.focus()
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    plot.press("ArrowRight")
    plot.press("ArrowUp")
    assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
    assert live.inner_text() == f"because → didn't {weights[6, 2]:.2f}".replace("0.", ".")
    plot.press("Home")
    assert live.inner_text() == f"because → The {weights[6, 0]:.2f}".replace("0.", ".")
    page.get_by_label("Causal").check()
    plot.tap(position={"x": 10.5 * cell, "y": 0.5 * cell})
    assert live.inner_text() == "The → tired 0 (may not look: it comes later)"


def test_equal_tokens_are_told_apart(show):
    page = show(explorer(T=3, tokens=["so", "and", "so"]))
    plot = page.locator(".attn-plot")
    plot.focus()
    plot.press("End")
    assert page.locator("[aria-live]").inner_text().startswith("so (1) → so (3) ")


@pytest.mark.parametrize("width", [360, 1000])
def test_each_label_stands_beside_its_row(show, width):
    page = show(largest("Donaudampfschifffahrtsgesellschaftskapitän" * 3), width=width)
    rows, drawn = (
        page.locator(part).bounding_box() for part in (".attn-rows", ".attn-plot canvas")
    )
    assert abs(rows["height"] - drawn["height"]) < 1


@pytest.mark.parametrize("width", [360, 1280])
def test_long_labels_are_cut_and_can_still_be_read_whole(show, width):
    long = [f"{i}Donaudampfschifffahrtsgesellschaftskapitän" for i in range(4)]
    page = show(explorer(T=4, tokens=long), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for part in (".attn-rows", ".attn-columns"):
        side = "width" if part == ".attn-rows" else "height"
        labels = page.locator(f"{part} span").all()
        assert len(labels) == 4
        for label, token in zip(labels, long, strict=True):
            assert label.bounding_box()[side] <= 5.5 * 16 + 1
            assert label.get_attribute("title") == token
            cut = label.evaluate(
                """node => [
                    node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight,
                    getComputedStyle(node).overflow,
                    getComputedStyle(node).textOverflow,
                ]"""
            )
            assert cut == [True, "hidden", "ellipsis"]
    plot = page.locator(".attn-plot")
    plot.focus()
    plot.press("End")
    assert page.locator("[aria-live]").inner_text().startswith(f"{long[0]} → {long[3]} ")
    unfold(page)
    assert page.locator("tbody th").all_inner_texts() == long


def test_two_widgets_do_not_disturb_each_other(show):
    first, second = explorer(T=3, seed=1, num_heads=2), explorer(T=3, seed=2, num_heads=2)
    page = show(first, second)
    one, two = page.locator(".attn-widget").all()
    two.get_by_role("slider").press("End")
    two.get_by_label("Causal").check()
    assert one.locator(".attn-tile").count() == 2
    assert two.locator(".attn-tile").count() == 16
    assert not one.get_by_label("Causal").is_checked()
    assert page.locator("[id]").count() == 0


def test_views_of_one_widget_stay_together(show):
    widget = explorer(T=3, num_heads=2)
    one, two = show(widget, widget).locator(".attn-widget").all()
    one.get_by_role("slider").press("End")
    assert two.locator(".attn-tile").count() == 16
    assert two.get_by_role("slider").get_attribute("aria-valuetext") == "16 heads of width 1"


def test_the_weights_origin_is_told_in_words(show):
    page = show(explorer(T=2, origin="random (seed 0)"), explorer(T=2, origin="trained (seed 3)"))
    one, two = (
        w.locator(".attn-note").first.inner_text() for w in page.locator(".attn-widget").all()
    )
    assert one == "Weights: random (seed 0). No head means anything yet."
    assert two == "Weights: trained (seed 3)."


def shorten(state, buffers):
    buffers[0]["data"] = base64.b64encode(base64.b64decode(buffers[0]["data"])[:-4]).decode()


DAMAGES = {
    "should be 176 numbers in 704 bytes, but is 700": shorten,
    "should be 176 numbers in 704 bytes, but is 0": lambda state, buffers: buffers.clear(),
    "head should be one of 0 to 3, but is 4": lambda state, _: state.update(head=4),
    "num_heads should be a divisor of d = 16, but is 5": lambda state, _: state.update(num_heads=5),
    "tokens should be 11 strings, but there are 10": lambda state, _: state["tokens"].pop(),
    "T and d should be at least 1, but are 0 and 16": lambda state, _: state.update(T=0),
}
