"""HeadExplorer in a real browser, without a kernel: its numbers, its controls, its manners."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from tools.weight_pictures import arcs, color_of, painted, short, tiny
from tools.widget_pages import TOKEN_MAP_PLACES, asked, press, swipe, unfold
from tools.widget_pages import said as live

from attncourse.widgets import HeadExplorer
from attncourse.widgets.head_explorer.sources import HeadSource

SENTENCE = "The animal didn't cross the street because it was too tired".split()


def explorer(T=11, d=16, *, seed=0, scale=1.0, tokens=None, **options):
    generator = torch.Generator().manual_seed(seed)
    q, k = (scale * torch.randn(T, d, generator=generator) for _ in range(2))
    return HeadExplorer(tokens or [f"t{i}" for i in range(T)], q, k, **options)


def example(text):
    """An explorer for the tests of what every widget does."""
    q, k = torch.randn(2, 11, 16, generator=torch.Generator().manual_seed(0))
    tokens = [text, *"bcdefghijk"]
    named = HeadSource(text, q, k, text, heads=[text] * 4)
    return HeadExplorer.of_sources(tokens, [named, HeadSource.by_rules(tokens)])


def tabs_of(tokens, **options):
    """An explorer with hand-built heads and random ones."""
    q, k = torch.randn(2, len(tokens), 16, generator=torch.Generator().manual_seed(0))
    sources = [HeadSource.by_rules(tokens), HeadSource("random", q, k, "random (seed 0)")]
    return HeadExplorer.of_sources(tokens, sources, **options)


def largest(text):
    tokens = [f"token{i}" for i in range(23)] + [text]
    return explorer(T=24, d=64, num_heads=64, tokens=tokens, origin=text)


PLACES = {
    "p.attn-note > span …",
    *TOKEN_MAP_PLACES,
    "button.attn-chip > span",
    "div.attn-line-words > span",
    "div.attn-sentence > svg.attn-arcs-drawing aria-label …",
    "div.attn-chips > button.attn-chip title",
    "div.attn-grid > button.attn-tile aria-label …",
    "div.attn-enlarged > output.attn-live …",
    "div.attn-enlarged > p.attn-heading …",
    "div.attn-row > button.attn-button",
    "span.attn-tile-title > span",
}
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


COMPUTE = """(model) => {
  const {readState} = attnModules["head_explorer/widget.js"];
  const {attentionWeights, divisors} = attnModules["shared/attention.js"];
  const {T, d, q, k} = readState(model);
  return [false, true].flatMap((causal) => divisors(d).map((numHeads) => ({
    causal, numHeads,
    weights: Array.from({length: numHeads}, (_, head) =>
      attentionWeights(q, k, {T, d, numHeads, head, causal})),
  })));
}"""


def test_the_browser_computes_what_torch_computes(show):
    page = show(explorer())
    for widget in EXTREMES.values():
        computed = asked(page, widget, COMPUTE)
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
        sharpest = expected[:, int(causal) :].amax(-1).mean(-1)  # of rows that have a choice
        shown = page.locator(".attn-tile .attn-number").all_inner_texts()
        assert shown == [tiny(mean) for mean in sharpest]
        note = page.locator(".attn-note.attn-last").inner_text()
        assert f"{short(sharpest.mean())} over all heads" in note
        if num_heads > 1:
            tiles.nth(num_heads - 1).click()
        else:  # it is drawn once, beside one row
            assert page.locator("canvas").locator("visible=true").count() == 2
            assert page.get_by_role("button", name="Pin").count() == 0
        numbers, sums = table_numbers(page)
        torch.testing.assert_close(numbers, expected[-1], atol=0.0005001, rtol=0)
        assert torch.equal(sums, torch.ones(5, dtype=torch.float64))
        assert torch.equal(
            painted(page.locator(".attn-plot canvas")), painted(tiles.last.locator("canvas"))
        )


def test_the_slider_and_what_stands_beside_it_are_moved_by_mouse_and_by_touch(show):
    page = show(explorer(d=16, num_heads=1))
    box = page.get_by_role("slider").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.click(box["x"] + box["width"] - 2, y)
    assert page.locator(".attn-tile").count() == 16
    page.touchscreen.tap(box["x"] + box["width"] / 2, y)
    assert page.locator(".attn-tile").count() == 4
    assert page.locator(".attn-reading").inner_text() == "4 heads of width 4"
    press(page, "head 3")
    assert page.locator(".attn-heading").inner_text() == "Head 3 of 4 reads q[:, 8:12], k[:, 8:12]"
    assert page.locator(".attn-tile[aria-pressed=true]").count() == 1
    assert page.get_by_text("may not look").is_hidden()
    page.get_by_label("Causal").check()
    assert page.get_by_text("may not look").is_visible()


def test_a_finger_that_scrolls_from_a_slider_leaves_it_and_one_along_it_moves_it(show):
    page = show(explorer(d=16, num_heads=4), width=360)
    page.evaluate("""() => {
        document.body.style.height = "3000px";
        window.told = 0;
        document.querySelector("[type=range]").addEventListener("input", () => {
            told += document.querySelectorAll(".attn-tile").length !== 4;
        });
    }""")
    slider = page.get_by_role("slider")
    box = slider.bounding_box()
    left, right = box["x"] + 10, box["x"] + box["width"] - 10
    y = box["y"] + box["height"] / 2
    swipe(page, (right, y), (right + 5, y - 120))
    page.wait_for_function("scrollY > 40")
    assert slider.input_value() == "2"
    assert page.locator(".attn-tile").count() == 4
    assert page.evaluate("told") == 0
    slider.scroll_into_view_if_needed()
    y = slider.bounding_box()["y"] + box["height"] / 2
    swipe(page, (right, y), (left, y + 5))
    assert slider.input_value() == "0"
    assert page.locator(".attn-tile").count() == 1


ALL_OF_64 = "1 2 4 8 16 32 64".split()


@pytest.mark.parametrize(
    ("width", "d", "seen"),
    [(360, 48, []), (440, 48, []), (1000, 48, []), (390, 64, ALL_OF_64), (680, 64, ALL_OF_64)],
)
def test_the_numbers_below_a_slider_keep_clear_of_each_other(show, width, d, seen):
    page = show(explorer(d=d, num_heads=1), width=width)
    boxes = page.locator(".attn-ticks span").evaluate_all("""spans => spans
        .filter((span) => getComputedStyle(span).visibility === "visible")
        .map((span) => {
            const range = document.createRange();
            range.selectNodeContents(span);
            const {left, right} = range.getBoundingClientRect();
            return [left, right];
        })""")
    assert all(right + 4 < left for (_, right), (left, _) in pairwise(boxes))
    found = page.locator(".attn-ticks span:visible").all_inner_texts()
    assert found[-1] == str(d)
    assert found == seen or not seen  # where there is room, all


def test_the_frame_of_the_focus_leaves_the_numbers_below_the_slider_free(show):
    page = show(explorer())
    page.keyboard.press("Tab")
    frame = page.locator("input[type=range]:focus-visible").evaluate("""slider => {
        const { outlineOffset, outlineWidth } = getComputedStyle(slider);
        return parseFloat(outlineOffset) + parseFloat(outlineWidth);
    }""")
    slider, numbers = (page.locator(at).bounding_box() for at in ("[type=range]", ".attn-ticks"))
    assert frame >= 2
    assert slider["y"] + slider["height"] + frame <= numbers["y"]


def test_the_grid_is_one_tab_stop_walked_by_arrow_keys(show):
    page = show(explorer(d=16, num_heads=4))  # two rows of two
    focused = "document.activeElement.getAttribute('aria-label')"
    page.locator(".attn-tile[tabindex='0']").focus()
    visited = [page.evaluate(focused)]
    for key in "ArrowRight ArrowDown ArrowDown ArrowUp ArrowLeft ArrowLeft End".split():
        page.keyboard.press(key)
        visited.append(page.evaluate(focused))
    assert visited == [f"head {n}" for n in (1, 2, 4, 4, 2, 1, 1, 4)]
    assert page.locator(".attn-heading strong").inner_text() == "Head 1"
    page.keyboard.press("Enter")
    assert page.locator(".attn-heading strong").inner_text() == "Head 4"
    page.keyboard.press("Tab")
    assert page.evaluate(focused).startswith("Weights of head 4")


@pytest.mark.parametrize(("num_heads", "drawn"), [(2, [0, 1]), (8, [5])])
def test_arcs_lead_from_the_chosen_word_to_what_heads_look_at(show, num_heads, drawn):
    widget = explorer(tokens=SENTENCE, num_heads=num_heads)
    widget.token, widget.head = 3, drawn[-1]
    weights = expected_weights(widget, num_heads, causal=False)[drawn, 3]  # [heads, T]
    page = show(widget)
    torch.testing.assert_close(arcs(page), weights[weights >= 0.01], atol=1e-5, rtol=0)
    best = SENTENCE[int(weights[0].argmax())]
    told = page.locator(".attn-arcs-drawing").get_attribute("aria-label")
    assert f"Arcs from cross: head {drawn[0] + 1} most at {best}, " in told
    begin = float(page.locator(".attn-arc").first.get_attribute("d")[1:].split()[0])
    chip, drawing = (
        page.locator(part).bounding_box()
        for part in (".attn-chip[aria-pressed=true]", ".attn-arcs-drawing")
    )
    assert 0 < begin + drawing["x"] - chip["x"] < chip["width"]


def test_hover_and_arrow_keys_read_the_enlarged_map(show):
    widget = explorer(tokens=SENTENCE, num_heads=1)
    weights = expected_weights(widget, 1, causal=False)[0]
    page = show(widget)
    plot = page.locator(".attn-plot")
    cell = plot.bounding_box()["width"] / 11
    plot.hover(position={"x": 1.5 * cell, "y": 7.5 * cell})
    assert live(page) == f"it → animal {short(weights[7, 1])}"
    plot.focus()
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    plot.press("ArrowRight")
    plot.press("ArrowUp")
    assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
    assert live(page) == f"because → didn't {short(weights[6, 2])}"
    plot.press("Home")
    assert live(page) == f"because → The {short(weights[6, 0])}"
    page.get_by_label("Causal").check()
    plot.tap(position={"x": 10.5 * cell, "y": 0.5 * cell})
    assert live(page).startswith("The → tired 0 (may not look")


def test_equal_tokens_are_told_apart_and_a_line_of_hebrew_words_keeps_its_order(show):
    page = show(explorer(T=3, tokens=["so", "and", "so"]))
    page.locator(".attn-plot").press("End")
    assert live(page).startswith("so (0) → so (2) ")
    page = show(explorer(T=2, tokens=["אימצתי", "ישן"]))
    page.locator(".attn-plot").press("End")
    places = page.locator("[aria-live] > *").evaluate_all(
        "all => all.map((node) => node.getBoundingClientRect().x)"
    )
    assert len(places) == 3 and places == sorted(places)  # who looks, at whom, how much


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
    page.locator(".attn-plot").press("End")
    assert live(page).startswith(f"{long[0]} → {long[3]} ")
    unfold(page)
    assert page.locator("tbody th").all_inner_texts() == long


SOURCES = example("a").sources
DAMAGES = {
    "should be 704 numbers in 2816 bytes, but is 2812": {"q": bytes(2812)},
    "should be 704 numbers in 2816 bytes, but is 0": lambda state, buffers: buffers.clear(),
    "head should be": {"head": 4},
    "num_heads should be": {"num_heads": 5},
    "tokens should be": {"tokens": [*"abcdefghij"]},
    "T should be": {"T": 0},
    "source should be": {"source": 2},
    "pinned should be": {"pinned": 4},
    "token should be": {"token": 11},
    "sentence should be a list": {"sentence": "a b"},
    "sentence should be 16 words": {"sentence": ["a"] * 17},
    "sources should be": {"sources": [SOURCES[0], SOURCES[1] | {"heads": ["painted"] * 3}]},
}


DOG = "The dog saw the other dog .".split()


def test_the_browser_builds_hand_built_heads_as_python_does(show):
    rules = ["first token", "same word", "previous token"]
    page = show(explorer(T=2))
    for tokens in (DOG, SENTENCE, ["a"], [*"abcdefghijklmno", "A"]):
        source = HeadSource.by_rules(tokens, rules)
        made = page.evaluate(
            """([words, rules]) => {
                const {ruledQueriesAndKeys} = attnModules["head_explorer/sources.js"];
                const {q, k} = ruledQueriesAndKeys(words, rules);
                return [[...q], [...k]];
            }""",
            [tokens, rules],
        )
        for numbers, expected in zip(made, (source.q, source.k), strict=True):
            assert torch.equal(torch.tensor(numbers).view_as(expected), expected)


def test_a_tab_shows_its_heads_at_their_own_count(show):
    page = show(tabs_of(DOG))
    ticks = page.locator(".attn-ticks span")
    assert page.locator(".attn-tile").all_inner_texts() == [
        "previous token\n.84",  # 1/7 in the first row, e^5 / (e^5 + 6) in six others
        "same word\n.69",  # two of a word share e^5, in four of the seven rows
        "first token\n.96",
    ]

    def dots(head):  # at the favorites of rows
        path = page.locator(".attn-tile").nth(head).locator("path").last.get_attribute("d")
        return [tuple(int(float(n)) for n in dot[:-2].split()[::-1]) for dot in path.split("M")[1:]]

    assert dots(0) == [(i, i - 1) for i in range(1, 7)]  # the first looks at all alike
    both = {"The": (0, 3), "the": (0, 3), "dog": (1, 5)}
    assert dots(1) == [(i, j) for i, token in enumerate(DOG) for j in both.get(token, (i,))]
    assert dots(2) == [(i, 0) for i in range(7)]
    press(page, "random")
    assert page.locator(".attn-tile").count() == 4
    assert ticks.all_text_contents() == "1 2 4 8 16".split()
    origin = page.locator(".attn-origin").inner_text()
    assert origin.startswith("Weights: random (seed 0).") and "No head means" in origin
    page.get_by_role("slider").press("End")  # 16 heads, which the other width has, too
    press(page, "hand-built")
    assert ticks.all_text_contents() == "1 2 3 4 6 8 12 16 24 48".split()
    reading = page.locator(".attn-reading").locator("visible=true").inner_text()
    assert reading == "3 heads of width 16"
    page.get_by_role("slider").press("End")
    assert page.locator(".attn-tile").count() == 48
    assert page.locator("button.attn-button[aria-pressed=true]").inner_text() == "hand-built"


def test_a_tab_paints_each_picture_once(show):
    """It sets several traits, and what only some of them make isn't drawn on the way."""
    page = show(tabs_of(SENTENCE))
    page.evaluate("""() => {
        window.painted = [];
        const paint = CanvasRenderingContext2D.prototype.putImageData;
        CanvasRenderingContext2D.prototype.putImageData = function (...image) {
            painted.push(this.canvas);
            return paint.apply(this, image);
        };
    }""")
    press(page, "random")
    pictures = len(["large map", "row"]) + page.locator(".attn-tile").count()
    assert page.evaluate("[painted.length, new Set(painted).size]") == [pictures, pictures]


def test_what_stays_is_not_written_anew(show):
    """A new text costs a layout, and so does an attribute that is set to what it is."""
    page = show(explorer(num_heads=4))
    page.evaluate("""() => {
        const parts = ".attn-names, .attn-grid, .attn-dots, .attn-reading, summary";
        const all = {childList: true, attributeFilter: ["d", "viewBox"], subtree: true};
        window.observer = new MutationObserver(() => {});
        for (const part of document.querySelectorAll(parts)) observer.observe(part, all);
    }""")
    written = page.get_by_label("Colors up to the largest weight").evaluate(
        "box => { box.click(); return observer.takeRecords().length; }"
    )
    assert written == 0


def test_own_words_are_looked_at_where_rules_made_the_heads(show):
    page = show(tabs_of(SENTENCE))
    field = page.get_by_label("Your own words")
    field.fill("it  rained and It stopped")
    field.press("Enter")
    assert page.locator(".attn-chip").all_inner_texts() == "it rained and It stopped".split()
    page.get_by_role("button", name="head 2, same word").click()
    unfold(page)
    numbers, _ = table_numbers(page)
    q, k = (
        part[:, 16:32].double()
        for part in vars(HeadSource.by_rules("it rained and It stopped".split())).values()
        if isinstance(part, torch.Tensor)
    )
    torch.testing.assert_close(numbers, (q @ k.T / 4).softmax(-1), atol=0.0005001, rtol=0)
    press(page, "random")
    assert page.locator(".attn-chip").all_inner_texts() == SENTENCE
    assert field.is_hidden() and page.get_by_text("would need the model").is_visible()
    press(page, "hand-built")
    page.get_by_role("button", name="Back to the first sentence").click()
    assert page.locator(".attn-chip").all_inner_texts() == SENTENCE
    assert field.evaluate("field => field === document.activeElement")  # the button is gone


def test_what_cannot_be_looked_at_is_refused_and_looks_so(show):
    page = show(tabs_of(SENTENCE))
    own = page.get_by_label("Your own words")
    border = "field => getComputedStyle(field).borderTopStyle"
    assert own.evaluate(border) == "solid"
    for typed, refusal in (
        ("  ", "at least one word"),
        ("so " * 17, "At most 16 words, but these are 17."),
        ("so " + "o" * 10_000, "at most 40 letters here, but one has 10000."),
    ):
        own.fill(typed)
        press(page, "Look at them")
        assert refusal in page.locator(".attn-own [role=status]").inner_text()
        assert page.locator("input[aria-invalid=true]").count() == 1
        assert page.locator(".attn-chip").all_inner_texts() == SENTENCE
    assert own.evaluate(border) == "dashed"
    weight = page.locator(".attn-refusal").evaluate("words => getComputedStyle(words).fontWeight")
    assert weight == "600"


@pytest.mark.parametrize("width", [360, 1000])
def test_no_tile_moves_when_one_is_chosen_or_numbers_change(show, width):
    page = show(tabs_of(SENTENCE), width=width)
    places = """() => [...document.querySelectorAll(".attn-tile .attn-picture")].map((tile) => {
        const {x, y, width, height} = tile.getBoundingClientRect();
        return [x, y + scrollY, width, height].map(Math.round).join();
    })"""
    for tab, presses in (("hand-built", 0), ("random", 0), ("random", 2)):
        press(page, tab)
        for _ in range(presses):
            page.get_by_role("slider").press("ArrowRight")
        before = page.evaluate(places)
        page.locator(".attn-tile").last.click()
        assert page.evaluate(places) == before
        page.get_by_label("Causal").click()
        assert page.evaluate(places) == before


def test_a_token_shows_its_row_colors_run_to_the_largest_weight_and_a_move_is_told(show):
    widget = explorer(tokens=SENTENCE, d=8, num_heads=4, scale=2.0)
    page = show(widget)
    weights = expected_weights(widget, 4, False)
    page.locator(".attn-chip").nth(10).focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    row = weights[:, 9]
    pixels = painted(page.locator(".attn-lines canvas"))
    assert (pixels[..., :3] - color_of(row)).abs().max() <= 1
    head, column = divmod(int(row.argmax()), 11)
    assert live(page) == (
        f"too: sharpest in head {head + 1}, {short(row.max())} → {SENTENCE[column]}"
    )
    assert page.locator(".attn-chip[aria-pressed=true]").inner_text() == "too"
    legend = page.locator(".attn-legend .attn-entry").first
    assert legend.inner_text() == "weight 0\n1"
    page.get_by_label("Colors up to the largest weight").check()
    assert legend.inner_text() == f"weight 0\n{short(weights.max())}, the largest here"
    for head, tile in enumerate(page.locator(".attn-tile canvas").all()):
        wanted = color_of(weights[head] / weights.max())
        assert (painted(tile)[..., :3] - wanted).abs().max() <= 1
    page.get_by_role("slider").press("ArrowRight")
    press(page, "head 3")
    weights = expected_weights(widget, 8, False)[2]
    row, column = divmod(int(weights.argmax()), 11)
    told = live(page)  # what the move changed
    assert told.startswith("8 heads of width 1; head 3: ")
    assert f" {short(weights.amax(-1).mean())} on average" in told
    assert told.endswith(f"{short(weights.max())}, {SENTENCE[row]} → {SENTENCE[column]}")


def test_two_heads_are_pinned_side_by_side_and_read_together(show):
    widget = explorer(tokens=SENTENCE, num_heads=4)
    page = show(widget)
    weights = expected_weights(widget, 4, False)
    press(page, "Pin head 1")
    assert page.locator(".attn-plot").count() == 1  # not the same map twice
    press(page, "head 3")
    maps = page.locator(".attn-plot")
    assert maps.count() == 2
    right, left = (map.bounding_box() for map in maps.all())  # what was large stays there
    assert abs(left["y"] - right["y"]) < 2 and left["x"] + left["width"] < right["x"]
    assert (painted(maps.last.locator("canvas"))[..., :3] - color_of(weights[0])).abs().max() <= 1
    maps.last.focus()
    assert live(page) == (
        f"The → The head 3 {short(weights[2, 0, 0])}, head 1 {short(weights[0, 0, 0])}"
    )
    press(page, "Unpin head 1")
    assert maps.count() == 1


@pytest.mark.parametrize("num_heads", [2, 3, 8])
def test_few_tiles_stand_in_full_lines_and_a_row_in_all_heads_below_them(show, num_heads):
    page = show(explorer(d=24, num_heads=num_heads), width=1280)
    tiles = [tile.bounding_box() for tile in page.locator(".attn-tile:visible").all()]
    lines = [sum(tile["y"] == y for tile in tiles) for y in {tile["y"] for tile in tiles}]
    assert len(tiles) == num_heads and len({*lines}) == 1
    grid, row, large = (
        page.locator(part).bounding_box()
        for part in (".attn-grid", ".attn-lines", ".attn-enlarged")
    )
    assert grid["y"] + grid["height"] < row["y"] < large["y"] + large["height"]
    assert row["x"] + row["width"] < large["x"]


@pytest.mark.parametrize("width", [360, 680, 1080])
def test_however_many_heads_there_are_it_is_as_high(show, width):
    page = show(tabs_of(SENTENCE), width=width)
    press(page, "random")
    slider, heights = page.get_by_role("slider"), set()
    slider.press("Home")
    for count in (1, 2, 4, 8, 16):
        assert page.locator(".attn-tile").count() == count
        heights.add(round(page.locator(".attn-panels").bounding_box()["height"]))
        if width > 560 and count == 8:  # there is room for its row in all of them
            row = page.get_by_role("group", name="A row in all heads")
            assert row.evaluate("row => row.scrollHeight <= row.clientHeight")
        slider.press("ArrowRight")
    assert len(heights) == 1


def test_in_forced_colors_marks_keep_theirs_and_the_chosen_is_framed(show):
    page = show(explorer(num_heads=4))
    page.emulate_media(forced_colors="active")
    adjust = "node => getComputedStyle(node).forcedColorAdjust"
    for mark in (".attn-scale", ".attn-swatch", ".attn-tile"):
        assert page.locator(mark).first.evaluate(adjust) == "none"
    chosen = page.locator(".attn-tile[aria-pressed=true]")
    assert chosen.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.emulate_media(forced_colors="none")


def test_on_a_phone_a_control_and_what_it_changes_are_in_one_view(show):
    page = show(tabs_of(SENTENCE), width=360)
    top = page.get_by_role("slider").locator("visible=true").bounding_box()["y"]
    grid = page.locator(".attn-grid").bounding_box()
    assert grid["y"] + grid["height"] - top < 640
    drawn, chips = (
        page.locator(part).bounding_box() for part in (".attn-arcs-drawing", ".attn-chips")
    )
    assert chips["y"] + chips["height"] - drawn["y"] < 640
    assert chips["x"] + chips["width"] <= grid["x"]  # a word a line, beside the maps
    words = page.locator(".attn-chip").first
    assert words.evaluate("word => getComputedStyle(word).writingMode") == "horizontal-tb"
    assert page.get_by_text("Choose a token").is_visible()
    assert page.get_by_text("On the right, each head").is_hidden()


def test_a_tiles_name_is_read_whole_on_a_phone_and_the_pictures_stand_in_a_line(show):
    page = show(tabs_of(DOG), width=280)
    names = page.locator(".attn-tile-title span:first-child").evaluate_all(
        "names => names.map((name) => [name.textContent, name.scrollWidth <= name.clientWidth])"
    )
    assert names == [["previous token", True], ["same word", True], ["first token", True]]
    pictures = page.locator(".attn-tile canvas").all()
    assert len({round(picture.bounding_box()["y"]) for picture in pictures[:2]}) == 1


@pytest.mark.parametrize("width", [360, 1000])
def test_a_pressed_tile_brings_the_large_map_into_the_window(show, width):
    page = show(explorer(num_heads=4), width=width)
    page.set_viewport_size({"width": width, "height": 640})
    tile = page.locator(".attn-tile").nth(1)
    tile.evaluate("tile => tile.scrollIntoView({block: 'end'})")
    before = page.evaluate("scrollY")
    tile.press("Enter")
    plot = page.locator(".attn-plot").first.bounding_box()
    if width == 360:
        assert plot["y"] >= 0 and plot["y"] + plot["height"] <= 641
    else:
        assert page.evaluate("scrollY") == before  # it stands beside the tiles


NOBODYS = "nobody trained or built such heads"


def trained_tabs(causal):
    """An explorer of four trained heads, of two named ones, and of random ones."""
    q, k = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0))
    sources = [
        HeadSource("trained", q, k, "trained (seed 0)", 4),
        HeadSource("named", q, k, "GPT-2, block 5", heads=["previous", "first"]),
        HeadSource("random", q, k, "random (seed 0)", 4),
    ]
    return HeadExplorer.of_sources("the cat sat down".split(), sources, causal=causal)


def claims(page):
    """What a page says of trained weights: by the maps, to ears, and over the numbers."""
    page.locator(".attn-widget details:not([open]) summary").evaluate_all("a => a[0]?.click()")
    label = "node => node.getAttribute('aria-label')"
    return {
        "by the maps": page.locator(".attn-origin").inner_text(),
        "heard": live(page),
        "of all": page.locator(".attn-grid").evaluate(label),
        "of one": page.locator(".attn-plot").first.evaluate(label),
        "fold": page.locator(".attn-widget summary").inner_text(),
        "numbers": page.locator("caption").inner_text(),
    }


@pytest.mark.everyday
@pytest.mark.parametrize("causal", [False, True])
def test_what_no_training_made_is_said_at_once_and_everywhere_as_in_python(show, causal):
    widget = trained_tabs(causal)
    page = show(widget)
    slider, mask = page.get_by_role("slider"), page.get_by_label("Causal")
    as_trained = claims(page)
    slider.press("ArrowRight")
    cut = claims(page)
    mask.click()
    both = claims(page)
    slider.press("ArrowLeft")
    unmasked = claims(page)
    mask.click()
    assert claims(page) == as_trained
    assert as_trained["by the maps"] == "Weights: trained (seed 0)."
    for place, said in as_trained.items():
        assert "anew" not in said and "mask" not in said
        assert "cut anew from 4 trained heads" in cut[place].lower()
        assert "cut anew from 4 trained heads, with " in both[place].lower()
        assert f"with {'the mask taken off' if causal else 'a mask put on'}" in both[place]
        assert "mask" in unmasked[place] and "anew" not in unmasked[place]
    for state, told in (
        ({"num_heads": 4, "causal": causal}, as_trained),
        ({"num_heads": 8}, cut),
        ({"causal": not causal}, both),
        ({"num_heads": 4}, unmasked),
    ):
        widget.set_state(state)
        assert widget.summary.endswith(f" {told['by the maps']}")
        assert (NOBODYS in widget.summary) == (told is not as_trained)


def test_names_of_trained_heads_go_with_their_mask(show):
    page = show(trained_tabs(causal=True))
    page.get_by_role("button", name="named", exact=True).click()
    assert page.get_by_role("button", name="head 2, first").count() == 1
    page.get_by_label("Causal").uncheck()
    assert NOBODYS in page.locator(".attn-origin").inner_text()
    assert page.get_by_role("button", name="head 2, first").count() == 0
    widget = trained_tabs(causal=True)  # as it may have been saved
    widget.num_heads, widget.causal, widget.token = 2, False, 1
    told = show(widget).locator(".attn-origin").inner_text()
    assert told.startswith("Cut anew from 4 trained heads")


def test_random_heads_are_anybodys_to_cut_and_cut_hand_built_ones_are_told(show):
    page = show(trained_tabs(causal=False), tabs_of(DOG))
    page.get_by_role("button", name="random", exact=True).first.click()
    for widget in page.locator(".attn-widget").all():
        widget.get_by_role("slider").press("ArrowRight")
        widget.get_by_label("Causal").check()
        cut = widget.locator(".attn-origin strong").inner_text()
        is_built = "hand-built" in widget.locator(".attn-origin").inner_text()
        assert (
            cut.startswith("Cut anew from 3 hand-built heads:" if is_built else "")
            and "mask" not in cut
        )
        assert bool(cut) is is_built
        assert widget.get_by_text("previous token").count() == 0


@pytest.mark.parametrize("width", [360, 680])
def test_no_map_moves_when_a_departure_is_told(show, width):
    page = show(trained_tabs(causal=True), width=width)
    top = "grid => grid.getBoundingClientRect().y + scrollY"
    before = page.locator(".attn-grid").evaluate(top)
    page.get_by_role("slider").press("ArrowRight")
    page.get_by_label("Causal").uncheck()
    assert page.locator(".attn-grid").evaluate(top) == before
