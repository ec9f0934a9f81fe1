"""HeadExplorer in a real browser, without a kernel: its numbers, its controls, its manners."""

import math

import pytest
import torch
from playwright.sync_api import expect
from tools.weight_pictures import arcs, painted, short, shows, tiny
from tools.widget_pages import TOKEN_MAP_PLACES, box, numbers_in, press, swipe, unfold
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
    "should be 704 numbers in 2816 bytes, but is 0": lambda state, buffers: buffers.clear(),
    "num_heads should be": {"num_heads": 5},
    "pinned should be": {"pinned": 4},
    "sentence should be 16 words": {"sentence": ["a"] * 17},
    "sources should be": {"sources": [SOURCES[0], SOURCES[1] | {"heads": ["painted"] * 3}]},
}


def weights_of(q, k, num_heads, causal=False):
    """Torch's weights [h, T, T] in float64 of queries and keys [T, d]."""
    q, k = (part.double().unflatten(1, (num_heads, -1)).transpose(0, 1) for part in (q, k))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(1) & causal
    return scores.masked_fill(future, -math.inf).softmax(-1)


def favorites(picture):
    """Where a picture has dots: [(row, column), ...]."""
    path = picture.locator("path").last.get_attribute("d")
    return [tuple(int(float(n)) for n in dot[:-2].split()[::-1]) for dot in path.split("M")[1:]]


def test_maps_rows_table_and_words_tell_those_numbers_for_every_head_count(show):
    given, page = by_chance(5, 6), show(explorer(T=5, d=6, num_heads=1))
    unfold(page)
    slider, tiles, plot = (page.locator(at) for at in ("[type=range]", ".attn-tile", ".attn-plot"))
    for num_heads, causal in ((1, False), (2, True), (3, True), (6, False)):
        for label in ("Causal", "largest weight"):
            page.get_by_label(label).set_checked(causal)
        may_look = torch.ones(5, 5).bool().tril(0 if causal else 5)
        assert numbers_in(slider.get_attribute("aria-valuetext")) == [num_heads, 6 // num_heads]
        weights = weights_of(*given, num_heads, causal)
        choices = weights[:, int(causal) :]  # rows that have a choice
        top = choices.max() if causal else 1
        shares = (weights / top).clamp(max=1)
        for tile, of_head in zip(tiles.all(), shares, strict=True):
            assert shows(tile.locator("canvas"), of_head, where=may_look)
            assert torch.equal(painted(tile.locator("canvas"))[..., 3] == 255, may_look)
        assert shows(page.locator(".attn-lines canvas"), shares[:, -1])  # of the last token
        looks = weights[:, -1] if num_heads <= 4 else weights[0, -1]  # of the enlarged head alone
        torch.testing.assert_close(arcs(page), looks[looks >= 0.01], atol=1e-5, rtol=0)
        means = choices.amax(-1).mean(-1)
        assert page.locator(".attn-number").all_inner_texts() == [tiny(mean) for mean in means]
        assert f" {short(means.mean())} " in page.locator(".attn-last").inner_text()
        if num_heads > 1:
            tiles.last.click()
        else:  # it is drawn once, beside one row
            assert page.locator("canvas").locator("visible=true").count() == 2
        row, column = divmod(int(choices[-1].argmax()), 5)
        told = live(page)
        assert f" {short(means[-1])} " in told
        assert told.endswith(f" {short(choices[-1].max())}, t{row + causal} → t{column}")
        rows = [numbers_in(row) for row in page.locator("tbody tr").all_inner_texts()]
        table = torch.tensor(rows, dtype=torch.float64)[:, -6:-1]  # without the column of sums
        torch.testing.assert_close(table, weights[-1], atol=0.0005001, rtol=0)
        assert torch.equal(painted(plot.locator("canvas")), painted(tiles.last.locator("canvas")))
        assert favorites(plot) == [(i, int(weights[-1, i].argmax())) for i in range(5)]
        tiles.first.dispatch_event("click")
        slider.press("ArrowRight")


def test_by_keys_heads_and_cells_are_read_and_two_heads_are_pinned(show):
    page = show(explorer(tokens=SENTENCE, num_heads=4))  # two lines of two
    weights = weights_of(*by_chance(11), 4)
    press_key, heading = page.keyboard.press, page.locator(".attn-heading")
    focused = "document.activeElement.getAttribute('aria-label')"
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    page.locator(".attn-tile[tabindex='0']").focus()
    visited = []
    for key in "ArrowRight ArrowDown ArrowUp ArrowLeft End Enter".split():
        press_key(key)
        visited += numbers_in(page.evaluate(focused))
    assert visited == [2, 4, 2, 1, 4, 4]
    assert "q[:, 12:16], k[:, 12:16]" in heading.inner_text()
    press_key("Tab")
    assert page.evaluate(focused).startswith("Weights of head 4")
    for key, row, column in (
        ("ArrowDown", 1, 0), ("End", 1, 10), ("ArrowLeft", 1, 9), ("ArrowUp", 0, 9),
    ):  # fmt: skip
        press_key(key)
        assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
        reading = f"{SENTENCE[row]} → {SENTENCE[column]} {short(weights[3, row, column])}"
        assert live(page) == reading
    page.locator(".attn-chip[tabindex='0']").focus()
    press_key("ArrowLeft")
    press_key("Enter")
    head, column = divmod(int(weights[:, 9].argmax()), 11)
    found = f"head {head + 1}, {short(weights[:, 9].max())} → {SENTENCE[column]}"
    assert live(page).startswith("too: ") and live(page).endswith(found)
    assert shows(page.locator(".attn-lines canvas"), weights[:, 9])
    maps, pin = page.locator(".attn-plot"), page.locator(".attn-enlarged .attn-button")
    press(page, "Pin head 4")
    assert maps.count() == 1  # not the same map twice
    press(page, "head 3")
    right, left = (plot.bounding_box() for plot in maps.all())  # what was large stays there
    assert abs(left["y"] - right["y"]) < 2 and left["x"] + left["width"] < right["x"]
    assert shows(maps.last.locator("canvas"), weights[3])
    maps.last.focus()
    both = f"head 3 {short(weights[2, 0, 9])}, head 4 {short(weights[3, 0, 9])}"
    assert live(page) == f"The → {SENTENCE[9]} {both}"  # where the cursor was
    press(page, "Unpin head 4", "Pin head 3", "head 2")
    assert maps.count() == 2 and pin.get_attribute("aria-pressed") == "true"
    page.get_by_role("slider").press("ArrowLeft")  # to two heads: the pinned one is no more
    assert maps.count() == 1 and pin.get_attribute("aria-pressed") == "false"


STANDS_STILL = """() => {
  window.places = [...(window.places ?? []), scrollY].slice(-5);
  return window.places.length === 5 && new Set(window.places).size === 1;
}"""


def test_one_way_by_mouse_and_touch_over_slider_tiles_and_map(show):
    page = show(explorer(tokens=SENTENCE, num_heads=1), width=360)
    weights = weights_of(*by_chance(11), 4)[2]
    page.set_viewport_size({"width": 360, "height": 640})
    tiles, plot = page.locator(".attn-tile"), page.locator(".attn-plot")
    slider = box(page, "[type=range]")
    middle = (slider["left"] + slider["right"]) / 2, (slider["top"] + slider["bottom"]) / 2
    page.touchscreen.tap(*middle)
    assert tiles.count() == 4
    swipe(page, (slider["left"] + 200, middle[1]), (slider["left"] + 205, middle[1] - 120))
    page.wait_for_function("scrollY > 40")  # a finger that scrolls leaves the slider alone
    page.wait_for_function(STANDS_STILL)  # or the next tap would only stop it
    assert tiles.count() == 4
    tiles.nth(2).evaluate("tile => tile.scrollIntoView({block: 'end'})")
    tiles.nth(2).tap()
    expect(page.locator(".attn-tile[aria-pressed=true]")).to_have_attribute("aria-label", "head 3")
    shown = box(page, ".attn-plot")
    assert shown["top"] >= 0 and shown["bottom"] <= 641  # it stood below the window
    cell = shown["width"] / 11
    plot.hover(position={"x": 4.5 * cell, "y": 7.5 * cell})
    assert live(page) == f"it → {SENTENCE[4]} {short(weights[7, 4])}"
    page.get_by_label("Causal").check()
    plot.tap(position={"x": 10.5 * cell, "y": 0.5 * cell})
    assert live(page).startswith("The → tired 0 (")


def test_tabs_have_their_own_heads_and_rules_take_a_readers_words_or_refuse_them(show):
    page = show(tabs_of(DOG))
    own, told = page.get_by_label("Your own words"), page.locator(".attn-own [role=status]")
    chips, tiles = page.locator(".attn-chip"), page.locator(".attn-tile")
    labels = [tile.get_attribute("aria-label") for tile in tiles.all()]
    assert labels == ["head 1, previous token", "head 2, same word", "head 3, first token"]
    assert favorites(tiles.nth(0)) == [(i, i - 1) for i in range(1, 7)]  # none of the first row
    for typed, numbers in (("  ", []), ("so " * 17, [16, 17]), ("so " + "o" * 99, [40, 99])):
        own.fill(typed)
        press(page, "Look at them")
        assert told.inner_text() and numbers_in(told.inner_text()) == numbers
        assert own.get_attribute("aria-invalid") == "true"
        assert chips.all_inner_texts() == DOG
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
    assert chips.all_inner_texts() == DOG and own.is_hidden()
    for tile, weights in zip(tiles.all(), weights_of(*by_chance(7), 4), strict=True):
        assert shows(tile.locator("canvas"), weights)
    page.get_by_role("slider").press("End")  # 16 heads, which the other width has, too
    press(page, "hand-built")
    assert tiles.count() == 3
    page.get_by_role("button", name="Back to the first").click()
    assert chips.all_inner_texts() == DOG
    expect(own).to_be_focused()  # the button is gone


def claims(page):
    """What a page says of trained weights: by the maps, to ears, and over the numbers."""
    parts = (page.locator(part).first for part in (".attn-grid", ".attn-plot"))
    told = [page.locator(part).inner_text() for part in (".attn-origin", "summary", "caption")]
    return [*told, *(part.get_attribute("aria-label") for part in parts), live(page)]


@pytest.mark.everyday
@pytest.mark.parametrize("causal", [False, True])
def test_what_no_training_made_is_said_at_once_and_everywhere_as_in_python(show, causal):
    sources = [
        HeadSource("trained", *by_chance(4), "trained (seed 0)", 4),
        HeadSource("named", *by_chance(4), "GPT-2, block 5", heads=["previous", "first"]),
        HeadSource("random", *by_chance(4), "random (seed 0)", 4),
    ]
    widget = HeadExplorer.of_sources("the cat sat down".split(), sources, causal=causal)
    page = show(widget)
    unfold(page)
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


def test_on_a_phone_controls_stand_by_what_they_change_and_tiles_fill_their_lines(show):
    page = show(tabs_of(SENTENCE), width=360)
    slider, tiles = page.get_by_role("slider"), page.locator(".attn-tile:visible .attn-picture")
    assert box(page, ".attn-grid")["bottom"] - box(page, "[type=range]")["top"] < 640
    assert box(page, ".attn-chips")["bottom"] - box(page, ".attn-arcs-drawing")["top"] < 640
    press(page, "random")
    slider.press("Home")
    heights = set()
    for _ in range(5):  # up to 16 heads
        tops = [tile.bounding_box()["y"] for tile in tiles.all()]
        assert len({tops.count(top) for top in tops}) == 1  # each line is full
        heights.add(round(box(page, ".attn-panels")["height"]))
        slider.press("ArrowRight")
    assert len(heights) == 1  # nothing below moves


def test_hebrew_words_are_told_apart_and_in_order(show):
    page = show(explorer(3, 4, tokens=["אימצתי", "ישן", "אימצתי"], num_heads=1))
    page.locator(".attn-plot").press("End")
    parts = page.locator("[aria-live] > *")
    assert parts.all_inner_texts()[:2] == ["אימצתי (0)", "אימצתי (2)"]
    lefts = [part.bounding_box()["x"] for part in parts.all()]
    assert len(lefts) == 3 and lefts == sorted(lefts)  # who looks, at whom, how much
