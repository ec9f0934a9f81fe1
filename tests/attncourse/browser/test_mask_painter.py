"""MaskPainter in a real browser, without a kernel: its numbers, its alarm, its brushes."""

import math

import numpy as np
import pytest
import torch
from tools.weight_pictures import short, tiny
from tools.widget_pages import TOKEN_MAP_PLACES, asked, press, swipe, touch, unfold
from tools.widget_pages import said as told

from attncourse.widgets import MaskPainter
from attnlib import causal_mask, scaled_dot_product_attention

SENTENCE = ["The", "cat", "sat", "on", "the", "mat"]


def painter(T=6, d=4, *, seed=0, scale=1.0, tokens=None, **options):
    generator = torch.Generator().manual_seed(seed)
    q, k = (scale * torch.randn(T, d, generator=generator) for _ in range(2))
    return MaskPainter(tokens or [f"t{i}" for i in range(T)], q, k, **options)


def example(text):
    """A mask for the tests of what every widget does."""
    return painter(tokens=[text, *SENTENCE[1:]], origin=text, meant_causal=True)


def largest(text):
    return painter(T=16, tokens=[f"token{i}" for i in range(15)] + [text], origin=text)


PLACES = {
    "div > p.attn-note …",
    "ul > li …",
    *TOKEN_MAP_PLACES,
    "div.attn-change > span.attn-name",
    "div.attn-change > span.attn-name title",
}
KEY = (".attn-plot", "Space")


def decoded(widget):
    """The tensors [T, d] that the browser reads, in float64."""
    return (
        torch.from_numpy(np.frombuffer(state, "<f4").astype(np.float64)).view(widget.T, widget.d)
        for state in (widget.q, widget.k)
    )


def expected_weights(widget, mask):
    """Torch's weights [T, T]; rows that may look nowhere are 0."""
    q, k = decoded(widget)
    scores = (q @ k.T / math.sqrt(widget.d)).masked_fill(~mask, -math.inf)
    return scores.softmax(-1).nan_to_num(0)


def cells(page):
    return page.locator(".attn-cells > span")


def painted(page, T=6):
    """The mask [T, T] that is to be seen: cells with a color, however small its weight."""
    colored = cells(page).evaluate_all("all => all.map((cell) => cell.style.background !== '')")
    return torch.tensor(colored).view(T, T)


def point(page, row, column, T=6):
    """The middle of a cell in the window."""
    box = page.locator(".attn-plot").bounding_box()
    return (
        box["x"] + box["width"] * (column + 0.5) / T,
        box["y"] + box["height"] * (row + 0.5) / T,
    )


def masks_of(T, count, seed):
    """Random masks from sparse to dense, each second one with a row that may look nowhere."""
    generator = torch.Generator().manual_seed(seed)
    for i in range(count):
        mask = torch.rand(T, T, generator=generator) < (i + 1) / (count + 1)
        if i % 2:
            mask[i % T] = False
        yield mask


CASES = {
    "random": painter(seed=1),
    "sixteen tokens": painter(T=16, d=9, seed=2),
    "one token": painter(T=1, d=3, seed=3),
    "scores to +-80 and beyond": painter(T=7, d=16, seed=4, scale=9.0),
    "hundreds of thousands": painter(T=5, seed=5, scale=600.0),
    "all equal": MaskPainter(list("abc"), torch.full((3, 4), 5.0), torch.full((3, 4), 7.0)),
}


COMPUTE = """(model, masks) => {
  const {readState} = attnModules["mask_painter/widget.js"];
  const {leaks, blindRows} = attnModules["mask_painter/verdict.js"];
  const {attentionWeights} = attnModules["shared/attention.js"];
  const {T, d, q, k} = readState(model);
  return masks.map((mask) => ({
    leaks: leaks(mask, T), blind: blindRows(mask, T),
    weights: attentionWeights(q, k, {T, d, numHeads: 1, head: 0, causal: false, mask}),
  }));
}"""


def test_the_browser_computes_what_torch_computes(show):
    page = show(painter())
    for case, widget in CASES.items():
        T = widget.T
        causal = causal_mask(T)
        masks = [*masks_of(T, 12, seed=len(case)), causal, ~causal, causal > 1]
        computed = asked(page, widget, COMPUTE, [mask.flatten().tolist() for mask in masks])
        for mask, result in zip(masks, computed, strict=True):
            weights = torch.tensor(result["weights"], dtype=torch.float64).view(T, T)
            torch.testing.assert_close(weights, expected_weights(widget, mask), atol=1e-6, rtol=0)
            q, k = decoded(widget)
            _, packaged = scaled_dot_product_attention(q, k, k, mask)
            torch.testing.assert_close(weights, packaged, atol=1e-6, rtol=0)
            future = mask.triu(1)
            seen = {leak["row"]: leak["columns"] for leak in result["leaks"]}
            rows = {row: future[row].nonzero()[:, 0].tolist() for row in range(T)}
            assert seen == {row: columns for row, columns in rows.items() if columns}
            assert result["blind"] == (~mask.any(1)).nonzero()[:, 0].tolist()


def verdict(page):
    return page.locator(".attn-summary[role=status]").inner_text()


def test_cells_table_and_alarm_show_the_mask_that_python_gave(show):
    mask = causal_mask(6)
    mask[2, 5] = mask[1, 3] = mask[1, 4] = True
    mask[4] = False
    widget = painter(tokens=SENTENCE, mask=mask, meant_causal=True, scale=2.0)
    page = show(widget)
    assert torch.equal(painted(page), mask)
    expected = expected_weights(widget, mask)
    texts = cells(page).all_text_contents()
    for text, weight, may in zip(texts, expected.flatten(), mask.flatten(), strict=True):
        assert text == (tiny(weight) if may else "")
    unfold(page)
    rows = page.locator("tbody tr").all()
    table = [[float(n) for n in row.locator("td").all_text_contents()] for row in rows]
    table = torch.tensor(table, dtype=torch.float64)
    torch.testing.assert_close(table[:, :-1], expected, atol=0.0005001, rtol=0)
    assert table[:, -1].tolist() == [1, 1, 1, 1, 0, 1]
    assert verdict(page).startswith("Leak: 3")
    alarm = page.locator(".attn-alarm li").all_inner_texts()
    assert ['token 1 "cat"', 'token 2 "sat"', 'token 4 "the"'] == [line[:13] for line in alarm]
    assert "tokens 3 and 4" in alarm[0] and 'token 5 "mat"' in alarm[1] and "nowhere" in alarm[2]
    marked = page.locator(".attn-leak").evaluate_all(
        "all => all.map((cell) => [...cell.parentElement.children].indexOf(cell))"
    )
    assert marked == [1 * 6 + 3, 1 * 6 + 4, 2 * 6 + 5]
    assert page.locator(".attn-blind").count() == 6


EVERYWHERE = torch.ones(6, 6).bool()
PRESETS = {  # its mask, and how the verdict begins
    "everything": (EVERYWHERE, "15 looks to the right"),
    "causal": (causal_mask(6), "No leak:"),
    "causal, window of 3": (causal_mask(6) & EVERYWHERE.triu(-2), "No leak:"),
    "no self": (~torch.eye(6).bool(), "15 looks to the right"),
    "last two are padding": (EVERYWHERE & (torch.arange(6) < 4), "6 looks to the right"),
    "nothing": (~EVERYWHERE, "Nobody sees anything"),
}


def test_each_preset_paints_its_mask_and_the_alarm_answers(show):
    page = show(painter(mask=torch.eye(6).bool()))
    assert page.locator("button[aria-pressed=true]").count() == 0
    assert page.get_by_role("button").all_inner_texts() == [*PRESETS, "Undo"]
    for name, (mask, judged) in PRESETS.items():
        press(page, name)
        assert torch.equal(painted(page), mask)
        assert page.locator("button[aria-pressed=true]").all_inner_texts() == [name]
        assert verdict(page).startswith(judged)
        assert page.get_by_label("causal").is_checked() == ("causal" in name)
        assert page.locator(".attn-leak").count() == 0
    assert page.locator(".attn-alarm li").count() == 0


@pytest.mark.parametrize("width", [360, 1000])
def test_a_puzzle_shows_its_presets_when_it_is_solved_and_its_map_stays(show, width):
    page = show(painter(T=3, puzzle=True, meant_causal=True), width=width)
    presets = page.get_by_role("group", name="Masks")
    place = page.locator(".attn-plot").bounding_box()
    for row, column, said in [
        (0, 1, "Leak: 2 looks "), (0, 2, "Leak: 1 look "), (2, 0, "Leak: 1 look "),
        (1, 2, "No leak; but 1 look is"), (2, 2, "No leak; but 2 looks are"),
        (2, 0, "No leak; but 1 look is"),
    ]:  # fmt: skip
        assert presets.is_hidden() and page.locator(".attn-stairs").is_hidden()
        assert page.locator(".attn-leak, .attn-alarm li").count() == 0
        page.mouse.click(*point(page, row, column, T=3))
        assert verdict(page).startswith(said)
    page.mouse.move(*point(page, 2, 2, T=3))
    page.mouse.down()
    assert verdict(page).startswith("No leak:")
    assert presets.is_hidden()  # until the stroke ends
    page.mouse.up()
    assert presets.is_visible() and page.locator(".attn-plot").bounding_box() == place
    press(page, "causal, window of 3")
    page.mouse.click(*point(page, 0, 2, T=3))
    assert presets.is_visible() and page.locator(".attn-stairs").is_visible()
    assert page.locator(".attn-leak").count() == page.locator(".attn-alarm li").count() == 1
    for mask, shown in ((causal_mask(3), True), (causal_mask(3).tril(-1), False)):
        page = show(painter(T=3, puzzle=True, mask=mask))
        assert page.get_by_role("group", name="Masks").is_visible() == shown
    page = show(painter(T=3, mask=causal_mask(3).tril(-1)))
    assert verdict(page).startswith("No leak:")


def test_a_drag_paints_what_its_first_cell_became(show):
    page = show(painter(mask=causal_mask(6)))
    expected = causal_mask(6)
    page.mouse.move(*point(page, 1, 2))
    page.mouse.down()
    page.mouse.move(*point(page, 1, 5))  # in one jump: the cells between are painted, too
    page.mouse.move(*point(page, 4, 2))
    page.mouse.up()
    expected[1, 2:] = expected[2, 4] = expected[3, 3] = True
    assert torch.equal(painted(page), expected)
    page.mouse.move(*point(page, 5, 5))  # the button is up: nothing is painted
    assert torch.equal(painted(page), expected)
    page.mouse.down()
    page.mouse.move(*point(page, 5, 0))
    x, y = point(page, 5, 0)
    page.mouse.move(x - 300, y + 300)  # outside, the nearest cell counts
    page.mouse.up()
    page.mouse.move(*point(page, 4, 4))  # let go outside is let go
    expected[5] = False
    assert torch.equal(painted(page), expected)
    page.touchscreen.tap(*point(page, 5, 3))
    expected[5, 3] = True
    assert torch.equal(painted(page), expected)
    page.mouse.click(*point(page, 0, 0), button="right")
    assert torch.equal(painted(page), expected)


def test_a_finger_scrolls_up_and_paints_along_a_row(show):
    page = show(painter(mask=causal_mask(6)), width=360)
    page.evaluate("document.body.style.height = '3000px'")
    action = page.locator(".attn-plot").evaluate("p => getComputedStyle(p).touchAction")
    assert action == "pan-y pinch-zoom"
    for _ in range(5):  # a busy browser may drop a quick one
        swipe(page, point(page, 5, 1), point(page, 1, 1))
        if page.evaluate("scrollY") > 40:
            break
    assert page.evaluate("scrollY") > 40
    assert torch.equal(painted(page), causal_mask(6))
    page = show(painter(mask=causal_mask(6)), width=360)
    swipe(page, point(page, 0, 1), point(page, 0, 4))
    expected = causal_mask(6)
    expected[0, 1:5] = True
    assert torch.equal(painted(page), expected)
    (x, y), (other_x, other_y) = point(page, 1, 2), point(page, 1, 4)
    apart = [[(x - step, y), (other_x + step, other_y)] for step in (0, 10, 20, 30)]
    touch(page, [(x, y)], *apart)  # two fingers zoom
    assert torch.equal(painted(page), expected)


def test_undo_takes_back_strokes_presets_keys_and_what_a_mask_is_meant_to_be(show):
    page = show(painter(mask=causal_mask(6)))
    undo = page.get_by_role("button", name="Undo")
    assert undo.get_attribute("aria-disabled") == "true"
    page.mouse.move(*point(page, 1, 2))
    page.mouse.down()
    page.mouse.move(*point(page, 1, 5))
    page.mouse.up()
    page.get_by_role("button", name="everything").click()
    page.get_by_label("meant to be causal").check()
    page.locator(".attn-plot").press("Space")
    stroke = causal_mask(6)
    stroke[1, 2:] = True
    for mask, causal in [
        (EVERYWHERE, True), (EVERYWHERE, False), (stroke, True), (causal_mask(6), True),
    ]:  # fmt: skip
        assert undo.get_attribute("aria-disabled") == "false"
        undo.click()
        assert torch.equal(painted(page), mask)
        assert page.get_by_label("meant to be causal").is_checked() == causal
    assert undo.get_attribute("aria-disabled") == "true"
    undo.click(force=True)
    assert torch.equal(painted(page), causal_mask(6))
    plot = page.locator(".attn-plot")
    for key in ("Control+z", "Meta+z"):
        plot.press("Space")
        assert not torch.equal(painted(page), causal_mask(6))
        plot.press(key)
        assert torch.equal(painted(page), causal_mask(6))
    plot.press("Control+z")  # there is nothing more to take back


def test_a_preset_that_moves_the_tick_says_so(show):
    page = show(painter(mask=causal_mask(6), meant_causal=True))
    for preset, moves in (("everything", True), ("no self", False), ("causal", True)):
        press(page, preset)
        words = page.locator(".attn-moved").inner_text()
        assert (preset in words) == bool(words) == moves


def test_it_speaks_of_a_leak_only_where_looks_to_the_right_are_wrong(show):
    page = show(painter())
    assert not page.get_by_label("meant to be causal").is_checked()
    assert "no leak" in verdict(page)
    assert page.locator(".attn-leak").count() == 0
    assert page.get_by_text("looks into the future").is_hidden()
    page.get_by_label("meant to be causal").check()
    assert verdict(page).startswith("Leak: 15 looks")
    assert page.locator(".attn-leak").count() == 15
    assert page.get_by_text("looks into the future, right of the line").is_visible()


def numbers_of_row(page):
    return page.locator(".attn-change .attn-number").all_inner_texts()


def test_the_changed_row_stands_there_before_and_after(show):
    widget = painter(tokens=SENTENCE, mask=causal_mask(6))
    page = show(widget)
    before = expected_weights(widget, causal_mask(6))[5]
    assert numbers_of_row(page) == [short(weight) for weight in before]
    page.mouse.click(*point(page, 5, 0))
    mask = causal_mask(6)
    mask[5, 0] = False
    after = expected_weights(widget, mask)[5]
    pairs = zip(before, after, strict=True)
    assert numbers_of_row(page) == [f"{short(was)} → {short(now)}" for was, now in pairs]
    words = page.get_by_text("All looks that stayed").inner_text()
    assert f"grew by the same factor, {short(1 / (1 - before[0]))}." in words
    assert "No other row" in words
    track = page.locator(".attn-bars").nth(3).bounding_box()["width"]
    for name, weight in ((".attn-was", before[3]), (".attn-is", after[3])):
        width = page.locator(f".attn-bars {name}").nth(3).bounding_box()["width"]
        assert abs(width - track * weight) < 3.5  # a frame has its own width
    press(page, "nothing")
    assert page.get_by_text("6 rows").is_visible()


def test_tokens_are_called_alike_in_row_and_alarm_and_a_line_keeps_its_order(show):
    mask = causal_mask(3) & torch.tensor([False, False, True])
    page = show(painter(T=3, tokens=["[pad]", "[pad]", "sat"], mask=mask))
    assert 'token 0 "[pad]" looks' in page.locator(".attn-alarm").inner_text()
    page.mouse.click(*point(page, 0, 0))
    assert page.get_by_text("Row of [pad] (0), before and now").is_visible()
    assert page.get_by_text("It looked nowhere before").is_visible()
    page = show(painter(T=2, tokens=["אימצתי", "ישן"]))  # words that run leftward
    page.locator(".attn-plot").press("End")
    places = page.locator("output > *").evaluate_all(
        "all => all.map((node) => node.getBoundingClientRect().x)"
    )
    assert len(places) == 3 and places == sorted(places)


def test_in_forced_colors_marks_keep_theirs_and_the_preset_is_framed(show):
    page = show(painter(mask=causal_mask(6)))
    page.emulate_media(forced_colors="active")
    for mark in (".attn-cells", ".attn-scale", ".attn-nowhere", ".attn-is"):
        adjust = page.locator(mark).first.evaluate("n => getComputedStyle(n).forcedColorAdjust")
        assert adjust == "none"
    pressed = page.locator("button[aria-pressed=true]")
    assert pressed.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.emulate_media(forced_colors="none")


def test_the_grid_is_one_tab_stop_painted_by_keys(show):
    widget = painter(tokens=SENTENCE, mask=causal_mask(6))
    page = show(widget)
    page.locator(".attn-plot").focus()
    assert told(page) == "The → The: may look, weight 1.00"
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    for key in ("ArrowDown", "ArrowDown", "End"):
        page.keyboard.press(key)
    assert told(page) == "sat → mat: may not look"
    page.keyboard.press("Space")
    assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
    expected = causal_mask(6)
    expected[2, 5] = True
    assert torch.equal(painted(page), expected)
    weight = short(expected_weights(widget, expected)[2, 5])
    assert told(page) == f"sat → mat: may look, weight {weight}"
    assert verdict(page).startswith("Leak: 1 look ")
    page.keyboard.press("Space")
    assert torch.equal(painted(page), causal_mask(6))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


@pytest.mark.parametrize("width", [360, 1000])
def test_cells_are_large_enough_and_the_cursor_is_scrolled_into_sight(show, width):
    page = show(largest("Donaudampfschifffahrtsgesellschaftskapitän" * 3), width=width)
    unfold(page)
    sizes = cells(page).evaluate_all(
        "all => all.map((e) => e.getBoundingClientRect()).map((b) => Math.min(b.width, b.height))"
    )
    assert len(sizes) == 256
    assert min(sizes) >= 23.9  # 24 but for rounding
    page.locator(".attn-plot").press("End")
    box = page.locator(".attn-cursor").bounding_box()
    assert box["x"] + box["width"] <= width


DAMAGES = {
    f"mask should be 36 booleans, but is [{'true,' * 7}true… (35 in all)": {"mask": [True] * 35},
    "mask should be 36 booleans, but is [0.5,true": {"mask": [0.5] + [True] * 35},
    "meant_causal should be": {"meant_causal": 1},
    "puzzle should be": {"puzzle": ""},
    "tokens should be": {"tokens": SENTENCE[1:]},
    "T and d should be": {"d": 0},
    "q should be 24 numbers": lambda state, buffers: buffers.clear(),
}


@pytest.mark.parametrize("width", [360, 722, 1280])
def test_the_verdict_stands_by_the_controls_and_the_map_stays_where_it_is(show, width):
    page = show(painter(meant_causal=True), width=width)
    page.set_viewport_size({"width": width, "height": 640})
    places = set()
    for preset in ("causal", "everything", "nothing", "no self"):
        press(page, preset)
        page.get_by_label("meant to be causal").check()
        summary, plot = (page.locator(p).bounding_box() for p in (".attn-summary", ".attn-plot"))
        if width < 1280:
            assert summary["y"] + summary["height"] < min(plot["y"], 640)
        else:
            assert summary["x"] + summary["width"] < plot["x"]
        places.add(plot["y"])
    assert len(places) == 1
