"""MaskPainter in a real browser, without a kernel: its numbers, its alarm, its brushes."""

import re

import torch
from playwright.sync_api import expect
from tools.weight_pictures import short, tiny
from tools.widget_pages import TOKEN_MAP_PLACES, box, press, said, swipe, touch, unfold

from attncourse.widgets import MaskPainter
from attnlib import causal_mask, scaled_dot_product_attention

TOKENS = ["The", "cat", "sat", "on", "mats", "mats"]


def painter(T=6, d=4, *, seed=0, scale=1.0, tokens=None, **options):
    generator = torch.Generator().manual_seed(seed)
    q, k = (scale * torch.randn(T, d, generator=generator) for _ in range(2))
    widget = MaskPainter(tokens or [f"t{i}" for i in range(T)], q, k, **options)
    widget.given = q, k
    return widget


def example(text):
    return painter(tokens=[text, *TOKENS[1:]], origin=text, meant_causal=True)


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
    "tokens should be": {"tokens": TOKENS[1:]},
    "q should be 24 numbers": lambda state, buffers: buffers.clear(),
}


def weights_of(widget, mask):
    """Torch's weights [T, T] in float64; rows that may look nowhere are 0."""
    q, k = (numbers.double() for numbers in widget.given)
    return scaled_dot_product_attention(q, k, k, mask)[1]


def mask_with(*cells):
    """A causal mask of six tokens in which these cells are turned."""
    mask = causal_mask(6)
    for cell in cells:
        mask[cell] ^= True
    return mask


def painted(page):
    """The mask [6, 6] that is to be seen: cells with a color, however small its weight."""
    colored = "all => all.map((cell) => cell.style.background !== '')"
    return torch.tensor(page.locator(".attn-cells > span").evaluate_all(colored)).view(6, 6)


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


def test_cells_table_and_alarm_show_the_mask_that_python_gave(show):
    mask = mask_with((2, 5), (1, 3), (1, 4))
    mask[4] = False
    widget = painter(tokens=TOKENS, mask=mask, meant_causal=True, scale=2.0)
    page = show(widget)
    assert torch.equal(painted(page), mask)
    expected, cells = weights_of(widget, mask), page.locator(".attn-cells > span")
    pairs = zip(expected.flatten(), mask.flatten(), strict=True)
    assert cells.all_text_contents() == [tiny(weight) if may else "" for weight, may in pairs]
    inks = cells.evaluate_all("all => all.map((cell) => cell.style.color)")
    assert len({*inks}) == 3  # on dark, on light, and none
    unfold(page)
    numbers = page.locator("tbody td").all_text_contents()
    table = torch.tensor([float(number) for number in numbers]).double().view(6, 7)
    expected = torch.cat([expected, expected.sum(-1, keepdim=True)], -1)
    torch.testing.assert_close(table, expected, atol=0.0005001, rtol=0)
    assert "3 looks" in verdict(page)
    first, second, blind = page.locator(".attn-alarm li").all_inner_texts()
    assert first.startswith('token 1 "cat"') and first.endswith("tokens 3 and 4")
    assert second.startswith('token 2 "sat"') and second.endswith('token 5 "mats"')
    assert blind.startswith('token 4 "mats"')
    marked = "(all, name) => all.flatMap((cell, i) => cell.classList.contains(name) ? [i] : [])"
    assert cells.evaluate_all(marked, "attn-leak") == [1 * 6 + 3, 1 * 6 + 4, 2 * 6 + 5]
    assert cells.evaluate_all(marked, "attn-blind") == [*range(24, 30)]
    stairs = page.locator(".attn-stairs").get_attribute("d")
    assert stairs == "M1 0V1H2V2H3V3H4V4H5V5H6V6"  # right of the diagonal's cells


EVERYWHERE = torch.ones(6, 6).bool()
PRESETS = {  # its mask, and how many looks to the right the verdict counts
    "everything": (EVERYWHERE, ["15"]),
    "causal": (causal_mask(6), []),
    "causal, window of 3": (causal_mask(6) & EVERYWHERE.triu(-2), []),
    "no self": (~torch.eye(6).bool(), ["15"]),
    "last two are padding": (EVERYWHERE & (torch.arange(6) < 4), ["6"]),
    "nothing": (~EVERYWHERE, []),
}


def test_each_preset_paints_its_mask_and_the_alarm_answers_while_the_map_stays(show):
    page = show(painter(mask=torch.eye(6).bool()), width=360)
    tick, pressed = page.get_by_label("causal"), page.locator("button[aria-pressed=true]")
    assert pressed.count() == 0
    place = box(page, ".attn-plot")
    for name, (mask, count) in PRESETS.items():
        was = tick.is_checked()
        press(page, name)
        assert torch.equal(painted(page), mask)
        assert pressed.all_inner_texts() == [name]
        assert re.findall(r"(\d+) look", verdict(page)) == count
        assert tick.is_checked() == ("causal" in name)
        # It says so where the tick has moved.
        assert (name in page.locator(".attn-moved").inner_text()) == (was != tick.is_checked())
        assert page.locator(".attn-leak, .attn-leaking, .attn-alarm li").count() == 0
    press(page, "everything")
    tick.check()
    assert "15 looks" in verdict(page) and page.locator(".attn-leak").count() == 15
    expect(page.locator(".attn-future").locator("..")).to_be_visible()
    assert box(page, ".attn-summary")["bottom"] < place["top"]
    assert box(page, ".attn-plot") == place


def test_a_puzzle_shows_its_presets_when_it_is_solved_and_its_map_stays(show):
    page = show(painter(T=3, puzzle=True, meant_causal=True), width=360)
    presets, stairs = page.get_by_role("group", name="Masks"), page.locator(".attn-stairs")
    marks, place = page.locator(".attn-leak, .attn-alarm li"), box(page, ".attn-plot")
    for row, column, count in [  # how many looks leak, or are blocked without need
        (0, 1, "2 looks"), (0, 2, "1 look "), (2, 0, "1 look "),
        (1, 2, "1 look "), (2, 2, "2 looks"), (2, 0, "1 look "),
    ]:  # fmt: skip
        assert presets.is_hidden() and stairs.is_hidden() and marks.count() == 0
        page.mouse.click(*point(page, row, column, T=3))
        assert count in verdict(page)
    page.mouse.move(*point(page, 2, 2, T=3))
    page.mouse.down()
    assert " look" not in verdict(page) and presets.is_hidden()  # until the stroke ends
    page.mouse.up()
    assert presets.is_visible() and box(page, ".attn-plot") == place
    page.mouse.click(*point(page, 0, 2, T=3))
    assert presets.is_visible() and stairs.is_visible() and marks.count() == 2  # for good


def test_a_mouse_paints_a_row_stands_there_before_and_after_and_all_is_taken_back(show):
    widget = painter(tokens=TOKENS, mask=causal_mask(6))
    page = show(widget)
    numbers, note = page.locator(".attn-change .attn-number"), page.locator("p.attn-note").last
    legend = page.locator(".attn-change ~ .attn-legend")
    undo = page.get_by_role("button", name="Undo")
    before, after = (weights_of(widget, mask_with(*cells))[5] for cells in ([], [(5, 0)]))
    assert numbers.all_inner_texts() == [short(weight) for weight in before]
    expect(legend).to_be_hidden()
    page.mouse.click(*point(page, 5, 0))
    expect(legend.get_by_text("before").locator(".attn-was")).to_be_visible()
    pairs = zip(before, after, strict=True)
    assert numbers.all_inner_texts() == [f"{short(was)} → {short(now)}" for was, now in pairs]
    assert re.search(rf" grew .*{short(1 / (1 - before[0]))}\.", note.inner_text())
    bars = "all => all.map((bar) => parseFloat(bar.style.width))"
    for kind, weights in ((".attn-was", before), (".attn-is", after)):
        widths = page.locator(f".attn-bars {kind}").evaluate_all(bars)
        torch.testing.assert_close(torch.tensor(widths).double(), 100 * weights, atol=1e-3, rtol=0)
    name = page.locator(".attn-change").locator("..").locator("bdi.attn-query")
    assert name.inner_text() == "mats (5)"  # there are two
    masks = [causal_mask(6), mask_with((5, 0))]
    drag(page, (1, 2), (1, 5), (4, 2))  # in jumps: the cells between are painted, too
    masks.append(mask_with((5, 0), (1, 2), (1, 3), (1, 4), (1, 5), (2, 4)))
    assert torch.equal(painted(page), masks[-1])
    assert name.inner_text() == "sat"
    drag(page, (5, 5), (5, 0), (8, -2), (5, 0))  # outside, the nearest cell counts
    page.mouse.move(*point(page, 4, 4))  # let go is let go
    page.mouse.click(*point(page, 0, 0), button="right")
    masks.append(masks[-1].clone())
    masks[-1][5] = False
    assert torch.equal(painted(page), masks[-1])
    press(page, "nothing")
    assert "5 rows" in note.inner_text()
    page.get_by_label("causal").uncheck()
    undo.click()
    assert page.get_by_label("causal").is_checked()
    for mask in reversed(masks):
        undo.click()
        assert torch.equal(painted(page), mask)
    assert undo.get_attribute("aria-disabled") == "true"


def test_a_finger_scrolls_up_and_paints_along_a_row_or_where_it_taps(show):
    page = show(painter(mask=causal_mask(6)), width=360)
    page.evaluate("document.body.style.height = '3000px'")
    for _ in range(5):  # a busy browser may drop a quick one
        swipe(page, point(page, 5, 1), point(page, 1, 1))
        if page.evaluate("scrollY") > 40:
            break
    assert page.evaluate("scrollY") > 40
    assert torch.equal(painted(page), causal_mask(6))
    page = show(painter(mask=causal_mask(6)), width=360)
    swipe(page, point(page, 0, 1), point(page, 0, 4))
    page.touchscreen.tap(*point(page, 5, 3))
    expected = mask_with((0, 1), (0, 2), (0, 3), (0, 4), (5, 3))
    assert torch.equal(painted(page), expected)
    x, y = point(page, 1, 2)
    apart = [[(x - step, y), (x + 90 + step, y)] for step in (0, 10, 20, 30)]
    touch(page, [(x, y)], *apart)  # two fingers zoom
    assert torch.equal(painted(page), expected)


def test_the_grid_is_painted_by_keys_and_a_far_cell_is_scrolled_into_sight(show):
    widget = painter(tokens=TOKENS, mask=causal_mask(6))
    page = show(widget)
    page.locator(".attn-plot").focus()
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    for keys, pair, cell, mask in (
        ("ArrowDown ArrowDown End", "sat → mats (5)", (2, 5), causal_mask(6)),
        ("Space", "sat → mats (5)", (2, 5), mask_with((2, 5))),
        ("Control+z", "sat → mats (5)", (2, 5), causal_mask(6)),
    ):
        for one in keys.split():
            page.keyboard.press(one)
            assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
        assert said(page).startswith(f"{pair}: ")
        weight = short(weights_of(widget, mask)[cell]) if mask[cell] else ""
        assert page.locator("output strong").inner_text() == weight
        assert torch.equal(painted(page), mask)
    page = show(largest("word"), width=360)
    cell = box(page, ".attn-cells > span")
    assert min(cell["width"], cell["height"]) >= 23.9  # 24 but for rounding
    page.locator(".attn-plot").press("End")
    assert box(page, ".attn-cursor")["right"] <= 360
