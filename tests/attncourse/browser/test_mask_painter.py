"""MaskPainter in a real browser, without a kernel: its numbers, its alarm, its brushes."""

import pytest
import torch
from playwright.sync_api import expect
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
    "div > p.attn-note …", "ul > li …", *TOKEN_MAP_PLACES, "div.attn-change > span.attn-name",
    "div.attn-change > span.attn-name title",
}  # fmt: skip
KEY = (".attn-plot", "Space")
DAMAGES = {
    f"mask should be 36 booleans, but is [{'true,' * 7}true… (35 in all)": {"mask": [True] * 35},
    "mask should be 36 booleans, but is [0.5,true": {"mask": [0.5] + [True] * 35},
    "meant_causal should be": {"meant_causal": 1}, "puzzle should be": {"puzzle": ""},
    "tokens should be": {"tokens": SENTENCE[1:]}, "T and d should be": {"d": 0},
    "q should be 24 numbers": lambda state, buffers: buffers.clear(),
}  # fmt: skip


def weights_of(widget, mask):
    """Torch's weights [T, T] in float64; rows that may look nowhere are 0."""
    parts = (torch.frombuffer(bytearray(x), dtype=torch.float32) for x in (widget.q, widget.k))
    q, k = (x.double().view(widget.T, widget.d) for x in parts)
    return scaled_dot_product_attention(q, k, k, mask)[1]


def mask_with(*cells):
    """A causal mask of six tokens in which these cells are turned."""
    mask = causal_mask(6)
    for cell in cells:
        mask[cell] ^= True
    return mask


def painted(page, T=6):
    """The mask [T, T] that is to be seen: cells with a color, however small its weight."""
    colored = "all => all.map((cell) => cell.style.background !== '')"
    return torch.tensor(page.locator(".attn-cells > span").evaluate_all(colored)).view(T, T)


def point(page, row, column, T=6):
    """The middle of a cell in the window."""
    x, y, width, height = page.locator(".attn-plot").bounding_box().values()
    return x + width * (column + 0.5) / T, y + height * (row + 0.5) / T


def drag(page, *cells):
    """Press the mouse in a cell, go through others in jumps, and let go."""
    page.mouse.move(*point(page, *cells[0]))
    page.mouse.down()
    for cell in cells[1:]:
        page.mouse.move(*point(page, *cell))
    page.mouse.up()


def verdict(page):
    return page.locator(".attn-summary[role=status]").inner_text()


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
    leaks: leaks(mask, T).map(({row, columns}) => [row, columns]), blind: blindRows(mask, T),
    weights: attentionWeights(q, k, {T, d, numHeads: 1, head: 0, causal: false, mask}),
  }));
}"""


def test_the_browser_computes_what_torch_computes(show):
    page = show(painter())
    for widget in CASES.values():
        T = widget.T
        causal = causal_mask(T)
        masks = [torch.rand(T, T) < (i + 1) / 13 for i in range(12)]  # from sparse to dense
        for i in range(1, 12, 2):
            masks[i][i % T] = False
        masks += [causal, ~causal, causal > 1]
        computed = asked(page, widget, COMPUTE, [mask.flatten().tolist() for mask in masks])
        for mask, result in zip(masks, computed, strict=True):
            found = torch.tensor(result["weights"], dtype=torch.float64).view(T, T)
            torch.testing.assert_close(found, weights_of(widget, mask), atol=1e-6, rtol=0)
            future = [(row, seen.nonzero()[:, 0].tolist()) for row, seen in enumerate(mask.triu(1))]
            assert result["leaks"] == [[row, columns] for row, columns in future if columns]
            assert result["blind"] == (~mask.any(1)).nonzero()[:, 0].tolist()


def test_cells_table_and_alarm_show_the_mask_that_python_gave(show):
    mask = mask_with((2, 5), (1, 3), (1, 4))
    mask[4] = False
    widget = painter(tokens=SENTENCE, mask=mask, meant_causal=True, scale=2.0)
    page = show(widget)
    assert torch.equal(painted(page), mask)
    expected = weights_of(widget, mask)
    cells = page.locator(".attn-cells > span")
    texts = cells.all_text_contents()
    pairs = zip(expected.flatten(), mask.flatten(), strict=True)
    assert texts == [tiny(weight) if may else "" for weight, may in pairs]
    inks = cells.evaluate_all("all => all.map((cell) => cell.style.color)")
    assert len({*inks}) == 3  # on dark, on light, and none
    unfold(page)
    rows = [row.locator("td").all_text_contents() for row in page.locator("tbody tr").all()]
    table = torch.tensor([[float(number) for number in row] for row in rows]).double()
    torch.testing.assert_close(table[:, :-1], expected, atol=0.0005001, rtol=0)
    assert table[:, -1].tolist() == [1, 1, 1, 1, 0, 1]
    assert "3 looks" in verdict(page)
    alarm = page.locator(".attn-alarm li").all_inner_texts()
    assert ['token 1 "cat"', 'token 2 "sat"', 'token 4 "the"'] == [line[:13] for line in alarm]
    assert "tokens 3 and 4" in alarm[0] and 'token 5 "mat"' in alarm[1]
    marked = "(all, name) => all.flatMap((cell, i) => cell.classList.contains(name) ? [i] : [])"
    assert cells.evaluate_all(marked, "attn-leak") == [1 * 6 + 3, 1 * 6 + 4, 2 * 6 + 5]
    assert cells.evaluate_all(marked, "attn-blind") == [*range(24, 30)]
    stairs = page.locator(".attn-stairs").get_attribute("d")
    assert stairs == "M1 0V1H2V2H3V3H4V4H5V5H6V6"  # right of the diagonal's cells


EVERYWHERE = torch.ones(6, 6).bool()
PRESETS = {  # its mask, and how many looks to the right the verdict counts
    "everything": (EVERYWHERE, "15"),
    "causal": (causal_mask(6), ""),
    "causal, window of 3": (causal_mask(6) & EVERYWHERE.triu(-2), ""),
    "no self": (~torch.eye(6).bool(), "15"),
    "last two are padding": (EVERYWHERE & (torch.arange(6) < 4), "6"),
    "nothing": (~EVERYWHERE, ""),
}


def test_each_preset_paints_its_mask_and_the_alarm_answers(show):
    page = show(painter(mask=torch.eye(6).bool()))
    pressed = page.locator("button[aria-pressed=true]")
    assert pressed.count() == 0
    assert page.get_by_role("button").all_inner_texts() == [*PRESETS, "Undo"]
    tick = page.get_by_label("causal")
    for name, (mask, count) in PRESETS.items():
        was = tick.is_checked()
        press(page, name)
        assert torch.equal(painted(page), mask)
        assert pressed.all_inner_texts() == [name]
        assert verdict(page).partition(" look")[0].isdigit() == bool(count)
        assert verdict(page).startswith(count)
        assert tick.is_checked() == ("causal" in name)
        moved = page.locator(".attn-moved").inner_text()  # it says so where the tick has moved
        assert (name in moved) == bool(moved) == (was != tick.is_checked())
        assert page.locator(".attn-leak, .attn-leaking, .attn-alarm li").count() == 0
    press(page, "everything")
    future = page.locator(".attn-future").locator("..")
    expect(future).to_be_hidden()
    tick.check()
    assert "15 looks" in verdict(page)
    assert page.locator(".attn-leak").count() == 15
    expect(future).to_be_visible()


@pytest.mark.parametrize("width", [360, 1000])
def test_a_puzzle_shows_its_presets_when_it_is_solved_and_its_map_stays(show, width):
    page = show(painter(T=3, puzzle=True, meant_causal=True), width=width)
    presets, stairs = page.get_by_role("group", name="Masks"), page.locator(".attn-stairs")
    marks, future = page.locator(".attn-leak, .attn-alarm li"), page.locator(".attn-future")
    place = page.locator(".attn-plot").bounding_box()
    for row, column, count in [  # how many looks leak, or are blocked without need
        (0, 1, "2 looks"), (0, 2, "1 look "), (2, 0, "1 look "),
        (1, 2, "1 look "), (2, 2, "2 looks"), (2, 0, "1 look "),
    ]:  # fmt: skip
        assert presets.is_hidden() and stairs.is_hidden() and future.is_hidden()
        assert marks.count() == 0
        page.mouse.click(*point(page, row, column, T=3))
        assert count in verdict(page)
    page.mouse.move(*point(page, 2, 2, T=3))
    page.mouse.down()
    assert " look" not in verdict(page)
    assert presets.is_hidden()  # until the stroke ends
    page.mouse.up()
    assert presets.is_visible() and page.locator(".attn-plot").bounding_box() == place
    press(page, "causal, window of 3")
    page.mouse.click(*point(page, 0, 2, T=3))
    assert presets.is_visible() and stairs.is_visible()
    assert marks.count() == 2
    blocked = causal_mask(3).tril(-1)
    for mask, puzzle in ((causal_mask(3), True), (blocked, True), (blocked, False)):
        page = show(painter(T=3, puzzle=puzzle, mask=mask, meant_causal=True))
        is_seen = not (puzzle and mask is blocked)
        assert page.get_by_role("group", name="Masks").is_visible() == is_seen
        assert ("3 looks" in verdict(page)) != is_seen


def test_a_drag_paints_what_its_first_cell_became(show):
    page = show(painter(mask=causal_mask(6)))
    drag(page, (1, 2), (1, 5), (4, 2))  # in jumps: the cells between are painted, too
    expected = mask_with((1, 2), (1, 3), (1, 4), (1, 5), (2, 4))
    assert torch.equal(painted(page), expected)
    drag(page, (5, 5), (5, 0), (8, -2), (5, 0))  # outside, the nearest cell counts
    page.mouse.move(*point(page, 4, 4))  # let go is let go
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
    expected = mask_with((0, 1), (0, 2), (0, 3), (0, 4))
    assert torch.equal(painted(page), expected)
    (x, y), (other_x, other_y) = point(page, 1, 2), point(page, 1, 4)
    apart = [[(x - step, y), (other_x + step, other_y)] for step in (0, 10, 20, 30)]
    touch(page, [(x, y)], *apart)  # two fingers zoom
    assert torch.equal(painted(page), expected)


def test_undo_takes_back_strokes_presets_keys_and_what_a_mask_is_meant_to_be(show):
    page = show(painter(mask=causal_mask(6)))
    undo, tick = page.get_by_role("button", name="Undo"), page.get_by_label("causal")
    drag(page, (1, 2), (1, 5))
    stroke = painted(page)
    press(page, "everything")
    tick.check()
    page.locator(".attn-plot").press("Space")
    for mask, causal in (
        (EVERYWHERE, True), (EVERYWHERE, False), (stroke, True), (causal_mask(6), True),
    ):  # fmt: skip
        assert undo.get_attribute("aria-disabled") == "false"
        undo.click()
        assert torch.equal(painted(page), mask)
        assert tick.is_checked() == causal
    assert undo.get_attribute("aria-disabled") == "true"
    for key in ("Control+z", "Meta+z", "Meta+z"):  # the last has nothing to take back
        page.locator(".attn-plot").press("Space")
        assert not torch.equal(painted(page), causal_mask(6))
        page.locator(".attn-plot").press(key)
        assert torch.equal(painted(page), causal_mask(6))


def test_the_changed_row_stands_there_before_and_after(show):
    widget = painter(tokens=SENTENCE, mask=causal_mask(6))
    page = show(widget)
    row, numbers = page.locator(".attn-change").locator(".."), ".attn-change .attn-number"
    before, after = (weights_of(widget, mask_with(*cells))[5] for cells in ([], [(5, 0)]))
    assert row.locator(numbers).all_inner_texts() == [short(weight) for weight in before]
    legend = page.locator(".attn-change ~ .attn-legend")
    expect(legend).to_be_hidden()
    page.mouse.click(*point(page, 5, 0))
    expect(legend).to_be_visible()
    pairs = zip(before, after, strict=True)
    changes = [f"{short(was)} → {short(now)}" for was, now in pairs]
    assert page.locator(numbers).all_inner_texts() == changes
    words = page.locator("p.attn-note").all_inner_texts()[-1]
    assert f", {short(1 / (1 - before[0]))}." in words  # by how much the other looks grew
    track = page.locator(".attn-bars").nth(3).bounding_box()["width"]
    for name, weight in ((".attn-bars .attn-was", before[3]), (".attn-bars .attn-is", after[3])):
        width = page.locator(name).nth(3).bounding_box()["width"]
        assert abs(width - track * weight) < 3.5  # a frame has its own width
    drag(page, (3, 4), (2, 3), (2, 4))
    heading = row.locator("bdi.attn-query")
    assert heading.all_inner_texts()[-1] == "sat"
    old = [text.partition(" ")[0] for text in page.locator(numbers).all_inner_texts()]
    assert old == [short(weight) for weight in weights_of(widget, mask_with((5, 0)))[2]]
    press(page, "nothing")
    assert "6 rows" in page.locator("p.attn-note").all_inner_texts()[-1]


def test_tokens_are_called_alike_in_row_and_alarm_and_a_line_keeps_its_order(show):
    mask = causal_mask(3) & torch.tensor([False, False, True])
    page = show(painter(T=3, tokens=["[pad]", "[pad]", "sat"], mask=mask))
    assert 'token 0 "[pad]"' in page.locator(".attn-alarm").inner_text()
    page.mouse.click(*point(page, 0, 0, T=3))
    assert page.locator("bdi.attn-query").all_inner_texts() == ["[pad] (0)"] * 2
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
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    turned = mask_with((2, 5))
    for keys, query, key, mask in (
        ("", "The", "The", causal_mask(6)),
        ("ArrowDown ArrowDown End", "sat", "mat", causal_mask(6)),
        ("Space", "sat", "mat", turned),
        ("Space", "sat", "mat", causal_mask(6)),
    ):
        for one in keys.split():
            page.keyboard.press(one)
            assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
        row, column = SENTENCE.index(query), SENTENCE.index(key)
        assert told(page).startswith(f"{query} → {key}: ")
        weight = short(weights_of(widget, mask)[row, column]) if mask[row, column] else ""
        assert page.locator("output strong").inner_text() == weight
        assert torch.equal(painted(page), mask)
    page.keyboard.press("Tab")
    expect(page.locator("summary")).to_be_focused()


@pytest.mark.parametrize("width", [360, 1000])
def test_cells_are_large_enough_and_the_cursor_is_scrolled_into_sight(show, width):
    page = show(largest("Donaudampfschifffahrtsgesellschaftskapitän" * 3), width=width)
    sizes = page.locator(".attn-cells > span").evaluate_all(
        "all => all.map((e) => e.getBoundingClientRect()).map((b) => Math.min(b.width, b.height))"
    )
    assert len(sizes) == 256
    assert min(sizes) >= 23.9  # 24 but for rounding
    page.locator(".attn-plot").press("End")
    box = page.locator(".attn-cursor").bounding_box()
    assert box["x"] + box["width"] <= width


@pytest.mark.parametrize("width", [360, 722, 1280])
def test_the_verdict_stands_by_the_controls_and_the_map_stays_where_it_is(show, width):
    page = show(painter(meant_causal=True), width=width)
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
