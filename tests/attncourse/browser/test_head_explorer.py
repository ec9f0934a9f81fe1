"""HeadExplorer in a real browser, without a kernel: its numbers, its controls, its manners."""

import math
import re

import pytest
import torch
from tools.weight_pictures import arcs, painted, short, shows, tiny
from tools.widget_pages import TOKEN_MAP_PLACES, asked, box, press, style, swipe, unfold
from tools.widget_pages import said as live

from attncourse.widgets import HeadExplorer
from attncourse.widgets.head_explorer.sources import HeadSource

SENTENCE = "The animal didn't cross the street because it was too tired".split()
DOG = "The dog saw the other dog .".split()


def by_chance(T, d=16, seed=0):
    """Queries and keys, [2, T, d]."""
    return torch.randn(2, T, d, generator=torch.Generator().manual_seed(seed))


def explorer(T=11, d=16, *, tokens=None, **options):
    return HeadExplorer(tokens or [f"t{i}" for i in range(T)], *by_chance(T, d), **options)


def example(text):
    tokens = [text, *"bcdefghijk"]
    named = HeadSource(text, *by_chance(11), text, heads=[text] * 4)
    return HeadExplorer.of_sources(tokens, [named, HeadSource.by_rules(tokens)])


def largest(text):
    tokens = [f"token{i}" for i in range(23)] + [text]
    return explorer(T=24, d=48, num_heads=48, tokens=tokens, origin=text)


def tabs_of(tokens):
    """An explorer with hand-built heads and random ones."""
    random = HeadSource("random", *by_chance(len(tokens)), "random (seed 0)")
    return HeadExplorer.of_sources(tokens, [HeadSource.by_rules(tokens), random])


def trained_tabs(causal):
    """An explorer of four trained heads, of two named ones, and of random ones."""
    q, k = by_chance(4)
    sources = [
        HeadSource("trained", q, k, "trained (seed 0)", 4),
        HeadSource("named", q, k, "GPT-2, block 5", heads=["previous", "first"]),
        HeadSource("random", q, k, "random (seed 0)", 4),
    ]
    return HeadExplorer.of_sources("the cat sat down".split(), sources, causal=causal)


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


def weights_of(q, k, num_heads, causal=False):
    """Torch's weights [h, T, T] in float64 of queries and keys [T, d]."""
    q, k = (part.double().unflatten(1, (num_heads, -1)).transpose(0, 1) for part in (q, k))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(1) & causal
    return scores.masked_fill(future, -math.inf).softmax(-1)


def digits(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def favorites(picture):
    """Where a picture has dots: [(row, column), ...]."""
    path = picture.locator("path").last.get_attribute("d")
    return [tuple(int(float(n)) for n in dot[:-2].split()[::-1]) for dot in path.split("M")[1:]]


COMPUTE = """(model) => {
  const {readState} = attnModules["head_explorer/widget.js"];
  const {attentionWeights, divisors} = attnModules["shared/attention.js"];
  const {T, d, q, k} = readState(model);
  return [false, true].flatMap((causal) => divisors(d).map((numHeads) =>
    Array.from({length: numHeads}, (_, head) =>
      attentionWeights(q, k, {T, d, numHeads, head, causal}))));
}"""


def test_the_browser_computes_what_torch_computes_of_what_it_is_given(show):
    page = show(explorer())
    for T, d, scale, dtype in (
        (7, 12, 1, torch.float64), (5, 60, 1, torch.bfloat16), (4, 7, 1, torch.float32),
        (1, 6, 1, torch.float32), (6, 1, 9, torch.float32), (5, 4, 600, torch.float32),
    ):  # fmt: skip
        q, k = (scale * by_chance(T, d, seed=T)).to(dtype).requires_grad_()
        q = q.T.contiguous().T
        widget = HeadExplorer(["a"] * T, q, k)
        cuts = [(causal, h) for causal in (0, 1) for h in range(1, d + 1) if d % h == 0]
        for found, (causal, h) in zip(asked(page, widget, COMPUTE), cuts, strict=True):
            expected = weights_of(q.detach().float(), k.detach().float(), h, bool(causal))
            found = torch.tensor(found, dtype=torch.float64).view_as(expected)
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def table_numbers(page):
    """The numbers of the open table, with the column of sums."""
    rows = [row.locator("td").all_text_contents() for row in page.locator("tbody tr").all()]
    return torch.tensor([[*map(float, row)] for row in rows], dtype=torch.float64)


@pytest.mark.parametrize("causal", [False, True])
def test_maps_rows_table_and_words_tell_those_numbers_for_every_head_count(show, causal):
    widget, given = explorer(T=5, d=12, num_heads=1, causal=causal), by_chance(5, 12)
    widget.to_largest = causal
    page = show(widget)
    unfold(page)
    slider, tiles, plot = (page.locator(at) for at in ("[type=range]", ".attn-tile", ".attn-plot"))
    may_look = torch.ones(5, 5).bool().tril(0 if causal else 5)
    boxes = [box.is_checked() for box in page.get_by_role("checkbox").all()]
    assert boxes == [causal] * 2
    for num_heads in (1, 2, 3, 4, 6, 12):
        assert digits(slider.get_attribute("aria-valuetext")) == [num_heads, 12 // num_heads]
        weights = weights_of(*given, num_heads, causal)
        choices = weights[:, int(causal) :]  # rows that have a choice
        top = choices.max() if causal else 1
        shares = (weights / top).clamp(max=1)
        scale = page.locator(".attn-legend .attn-entry").first.inner_text().split("\n")[-1]
        assert scale.startswith(f"{short(top)}," if causal else "1")
        for tile, of_head in zip(tiles.all(), shares, strict=True):
            assert shows(tile.locator("canvas"), of_head, where=may_look)
            assert torch.equal(painted(tile.locator("canvas"))[..., 3] == 255, may_look)
        assert shows(page.locator(".attn-lines canvas"), shares[:, -1])  # of the last token
        named = page.locator(".attn-names span").all_inner_texts()
        assert named == [f"{head + 1}" for head in range(num_heads)]
        looks = weights[:, -1] if num_heads <= 4 else weights[0, -1]  # of the enlarged head alone
        torch.testing.assert_close(arcs(page), looks[looks >= 0.01], atol=1e-5, rtol=0)
        spoken = page.locator(".attn-arcs-drawing").get_attribute("aria-label")
        most = [f"t{row.argmax()}" for row in looks.view(-1, 5)]
        assert re.findall(r" (t\d), ", spoken) == most
        means = choices.amax(-1).mean(-1)
        assert page.locator(".attn-number").all_inner_texts() == [tiny(mean) for mean in means]
        assert f" {short(means.mean())} " in page.locator(".attn-last").inner_text()
        if num_heads > 1:
            tiles.last.click()
        else:  # it is drawn once, beside one row
            assert page.locator("canvas").locator("visible=true").count() == 2
        row, column = divmod(int(choices[-1].argmax()), 5)
        told = live(page)
        assert digits(told.partition(":")[0]) == [num_heads, 12 // num_heads, num_heads]
        assert f" {short(means[-1])} " in told
        assert told.endswith(f" {short(choices[-1].max())}, t{row + causal} → t{column}")
        numbers = table_numbers(page)
        torch.testing.assert_close(numbers[:, :-1], weights[-1], atol=0.0005001, rtol=0)
        assert numbers[:, -1].eq(1).all()
        assert torch.equal(painted(plot.locator("canvas")), painted(tiles.last.locator("canvas")))
        best = [(i, int(weights[-1, i].argmax())) for i in range(5)]
        assert favorites(plot) == favorites(tiles.last) == best
        tiles.first.dispatch_event("click")
        slider.press("ArrowRight")


def test_one_way_by_keys_over_tiles_map_and_words(show):
    page = show(explorer(tokens=SENTENCE, num_heads=4))  # two lines of two
    weights = weights_of(*by_chance(11), 4)
    page.set_viewport_size({"width": 1000, "height": 640})
    press_key, heading = page.keyboard.press, page.locator(".attn-heading")
    focused = "document.activeElement.getAttribute('aria-label')"
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    page.locator(".attn-tile[tabindex='0']").focus()
    visited = []
    for key in "ArrowRight ArrowDown ArrowDown ArrowUp ArrowLeft ArrowLeft End".split():
        press_key(key)
        visited += digits(page.evaluate(focused))
    assert visited == [2, 4, 4, 2, 1, 1, 4]
    assert digits(heading.inner_text())[0] == 1
    before = page.evaluate("scrollY")
    press_key("Enter")
    assert "q[:, 12:16], k[:, 12:16]" in heading.inner_text()
    assert page.evaluate("scrollY") == before  # the map stands beside the tiles
    press_key("Tab")
    assert page.evaluate(focused).startswith("Weights of head 4")
    for key, row, column in (
        ("ArrowDown", 1, 0), ("End", 1, 10), ("ArrowLeft", 1, 9), ("ArrowUp", 0, 9),
        ("Home", 0, 0), ("ArrowRight", 0, 1),
    ):  # fmt: skip
        press_key(key)
        assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
        reading = f"{SENTENCE[row]} → {SENTENCE[column]} {short(weights[3, row, column])}"
        assert live(page) == reading
    page.locator(".attn-chip[tabindex='0']").focus()
    page.locator(".attn-plot").focus()
    assert live(page) == reading  # where it was
    page.locator(".attn-chip[tabindex='0']").focus()
    press_key("ArrowLeft")
    press_key("Enter")
    assert page.locator(".attn-chip[aria-pressed=true]").inner_text() == "too"
    head, column = divmod(int(weights[:, 9].argmax()), 11)
    told = live(page)
    assert told.startswith("too: ") and digits(told.partition(",")[0]) == [head + 1]
    assert told.endswith(f" {short(weights[:, 9].max())} → {SENTENCE[column]}")
    assert shows(page.locator(".attn-lines canvas"), weights[:, 9])


def test_one_way_by_mouse_and_touch_over_slider_tiles_and_map(show):
    page = show(explorer(tokens=SENTENCE, num_heads=1), width=360)
    weights = weights_of(*by_chance(11), 4)[2]
    page.set_viewport_size({"width": 360, "height": 640})
    tiles, plot = page.locator(".attn-tile"), page.locator(".attn-plot")
    slider = box(page, "[type=range]")
    middle = (slider["left"] + slider["right"]) / 2, (slider["top"] + slider["bottom"]) / 2
    page.touchscreen.tap(*middle)
    assert tiles.count() == 4 and digits(page.locator(".attn-reading").inner_text()) == [4, 4]
    swipe(page, (slider["left"] + 200, middle[1]), (slider["left"] + 205, middle[1] - 120))
    page.wait_for_function("scrollY > 40")  # a finger that scrolls leaves the slider alone
    assert tiles.count() == 4 and page.get_by_role("slider").input_value() == "2"
    tiles.nth(2).evaluate("tile => tile.scrollIntoView({block: 'end'})")
    tiles.nth(2).tap()
    assert page.locator(".attn-tile[aria-pressed=true]").get_attribute("aria-label") == "head 3"
    shown = box(page, ".attn-plot")
    assert shown["top"] >= 0 and shown["bottom"] <= 641  # it stood below the window
    cell = shown["width"] / 11
    plot.hover(position={"x": 4.5 * cell, "y": 7.5 * cell})
    assert live(page) == f"it → {SENTENCE[4]} {short(weights[7, 4])}"
    blank = page.locator(".attn-legend").get_by_text("may not look")
    assert blank.is_hidden()
    page.get_by_label("Causal").check()
    assert blank.is_visible()
    plot.tap(position={"x": 10.5 * cell, "y": 0.5 * cell})
    assert live(page).startswith("The → tired 0 (")
    plot.tap(position={"x": 0.5 * cell, "y": 0.5 * cell})
    assert live(page) == "The → The 1.00"


def test_two_heads_are_pinned_side_by_side_and_read_together(show):
    page, weights = show(explorer(tokens=SENTENCE, num_heads=4)), weights_of(*by_chance(11), 4)
    maps, pin = page.locator(".attn-plot"), page.locator(".attn-enlarged .attn-button")
    press(page, "Pin head 1")
    assert maps.count() == 1  # not the same map twice
    press(page, "head 3")
    right, left = (plot.bounding_box() for plot in maps.all())  # what was large stays there
    assert abs(left["y"] - right["y"]) < 2 and left["x"] + left["width"] < right["x"]
    assert shows(maps.last.locator("canvas"), weights[0])
    maps.last.focus()
    assert live(page) == (
        f"The → The head 3 {short(weights[2, 0, 0])}, head 1 {short(weights[0, 0, 0])}"
    )
    press(page, "Unpin head 1", "Pin head 3", "head 2")
    assert maps.count() == 2 and pin.get_attribute("aria-pressed") == "true"
    page.get_by_role("slider").press("ArrowLeft")  # to two heads: the pinned one is no more
    assert maps.count() == 1 and pin.get_attribute("aria-pressed") == "false"
    assert digits(page.locator(".attn-heading").first.inner_text())[:2] == [2, 2]


def test_tabs_have_their_own_heads_and_rules_take_a_readers_words_or_refuse_them(show):
    page = show(tabs_of(DOG))
    ticks, tiles = page.locator(".attn-ticks span"), page.locator(".attn-tile")
    own, told = page.get_by_label("Your own words"), page.locator(".attn-own [role=status]")
    chips, back = page.locator(".attn-chip"), page.get_by_role("button", name="Back to the first")
    rules = HeadSource.by_rules(DOG)
    means = weights_of(rules.q, rules.k, 3).amax(-1).mean(-1)
    named = [f"{rule}\n{tiny(mean)}" for rule, mean in zip(rules.heads, means, strict=True)]
    assert tiles.all_inner_texts() == named
    labels = [tile.get_attribute("aria-label") for tile in tiles.all()]
    assert labels == [f"head {i}, {rule}" for i, rule in enumerate(rules.heads, 1)]
    assert favorites(tiles.nth(0)) == [(i, i - 1) for i in range(1, 7)]  # none of the first row
    words = [word.lower() for word in DOG]
    alike = [(i, j) for i in range(7) for j in range(7) if words[i] == words[j]]
    assert favorites(tiles.nth(1)) == alike
    for typed, numbers in (("  ", []), ("so " * 17, [16, 17]), ("so " + "o" * 99, [40, 99])):
        own.fill(typed)
        press(page, "Look at them")
        assert told.inner_text() and digits(told.inner_text()) == numbers
        assert own.get_attribute("aria-invalid") == "true"
        assert style(own, "borderTopStyle") == "dashed"
        assert chips.all_inner_texts() == DOG and back.is_hidden()
    words = ["It", "rained", "so", *["and", "it"] * 6, "o" * 40]
    own.fill("  ".join(words))
    own.press("Enter")
    assert chips.all_inner_texts() == words
    assert page.locator(".attn-chip[aria-pressed=true]").inner_text() == words[6]  # as before
    assert told.inner_text() == "" and own.get_attribute("aria-invalid") == "false"
    rules = HeadSource.by_rules(words)
    for tile, weights in zip(tiles.all(), weights_of(rules.q, rules.k, 3), strict=True):
        assert shows(tile.locator("canvas"), weights)
    press(page, "random")
    assert chips.all_inner_texts() == DOG
    assert own.is_hidden() and page.locator(".attn-own > .attn-note").is_visible()
    for tile, weights in zip(tiles.all(), weights_of(*by_chance(7), 4), strict=True):
        assert shows(tile.locator("canvas"), weights)
    assert ticks.all_text_contents() == "1 2 4 8 16".split()
    page.get_by_role("slider").press("End")  # 16 heads, which the other width has, too
    press(page, "hand-built")
    assert ticks.all_text_contents() == "1 2 3 4 6 8 12 16 24 48".split()
    assert tiles.count() == 3
    back.click()
    assert chips.all_inner_texts() == DOG
    assert own.evaluate("field => field === document.activeElement")  # the button is gone


def claims(page):
    """What a page says of trained weights: by the maps, to ears, and over the numbers."""
    page.locator(".attn-widget details:not([open]) summary").evaluate_all("a => a[0]?.click()")
    parts = (page.locator(part).first for part in (".attn-grid", ".attn-plot"))
    told = [page.locator(part).inner_text() for part in (".attn-origin", "summary", "caption")]
    return [*told, *(part.get_attribute("aria-label") for part in parts), live(page)]


@pytest.mark.everyday
@pytest.mark.parametrize("causal", [False, True])
def test_what_no_training_made_is_said_at_once_and_everywhere_as_in_python(show, causal):
    widget = trained_tabs(causal)
    page = show(widget)
    slider, mask = page.get_by_role("slider"), page.get_by_label("Causal")
    named, told = page.locator(".attn-tile[aria-label*=first]"), page.locator(".attn-origin strong")
    ways = ("cut anew from 4 trained heads", "mask taken off" if causal else "mask put on")
    for change, state, departs in (
        (lambda: None, {}, [False, False]),
        (lambda: slider.press("ArrowRight"), {"num_heads": 8}, [True, False]),
        (mask.click, {"causal": not causal}, [True, True]),
        (lambda: slider.press("ArrowLeft"), {"num_heads": 4}, [False, True]),
    ):
        change()
        for claim in claims(page):
            assert [way in claim.lower() for way in ways] == departs
        widget.set_state(state)
        assert widget.summary.endswith(f" {claims(page)[0]}")
    press(page, "named")  # without the mask of their training
    assert told.inner_text() and named.count() == 0
    mask.click()
    assert told.inner_text() == "" and named.count() == 1
    press(page, "random")  # which are anybody's to cut
    slider.press("ArrowRight")
    assert told.inner_text() == ""
    page = show(tabs_of(DOG))  # built by hand: a cut is told, a mask isn't
    page.get_by_label("Causal").check()
    told = page.locator(".attn-origin strong")
    assert told.inner_text() == ""
    page.get_by_role("slider").press("ArrowRight")
    assert digits(told.inner_text()) == [3] and page.get_by_text("previous token").count() == 0


PLACES_OF_TILES = """tiles => tiles.map((tile) => {
  const {x, y, width, height} = tile.getBoundingClientRect();
  return [x, y + scrollY, width, height].map(Math.round);
})"""


@pytest.mark.parametrize("width", [360, 1080])
def test_however_many_heads_there_are_tiles_fill_their_lines_and_nothing_moves(show, width):
    page = show(tabs_of(SENTENCE), width=width)
    slider, tiles = page.get_by_role("slider"), page.locator(".attn-tile:visible .attn-picture")
    if width == 360:  # a control and what it changes are in one view
        grid, chips = box(page, ".attn-grid"), box(page, ".attn-chips")
        assert grid["bottom"] - box(page, "[type=range]")["top"] < 640
        assert chips["bottom"] - box(page, ".attn-arcs-drawing")["top"] < 640
        assert chips["right"] <= grid["left"]  # a word a line, beside the maps
        cut = "all => all.filter((one) => one.scrollWidth > one.clientWidth).length"
        assert page.locator(".attn-tile-title span:first-child").evaluate_all(cut) == 0
    press(page, "random")
    slider.press("Home")
    heights = set()
    for count in (1, 2, 4, 8, 16):
        places = tiles.evaluate_all(PLACES_OF_TILES)
        tops = [top for _, top, _, _ in places]
        assert len({tops.count(top) for top in tops}) == (count > 1 or width < 560)
        heights.add(round(box(page, ".attn-panels")["height"]))
        for _ in range(2):
            page.get_by_label("Causal").dispatch_event("click")  # which scrolls nothing
            assert tiles.evaluate_all(PLACES_OF_TILES) == places
        slider.press("ArrowRight")
    assert len(heights) == 1
    page = show(trained_tabs(causal=True), width=width)
    before = box(page, ".attn-grid")["top"]
    page.get_by_role("slider").press("ArrowRight")  # a departure is told above them
    assert box(page, ".attn-grid")["top"] == before


def test_a_word_that_stands_twice_and_hebrew_ones_are_told_in_order(show):
    page = show(explorer(T=3, tokens=["אימצתי", "ישן", "אימצתי"]))
    page.locator(".attn-plot").press("End")
    parts = page.locator("[aria-live] > *")
    assert parts.all_inner_texts()[:2] == ["אימצתי (0)", "אימצתי (2)"]  # told apart
    lefts = [part.bounding_box()["x"] for part in parts.all()]
    assert len(lefts) == 3 and lefts == sorted(lefts)  # who looks, at whom, how much
