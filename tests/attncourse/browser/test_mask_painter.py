"""MaskPainter in a real browser, without a kernel: its numbers, its alarm, its brushes."""

import base64
import math

import numpy as np
import pytest
import torch
from tools.widget_pages import TOKEN_MAP_PLACES, swipe, touch, unfold

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


@pytest.mark.parametrize("case", CASES)
def test_the_browser_computes_what_torch_computes(show, case):
    widget = CASES[case]
    T = widget.T
    masks = [*masks_of(T, 12, seed=len(case)), causal_mask(T), ~causal_mask(T), causal_mask(T) > 1]
    computed = show(widget).evaluate(
        """({state, q, k, masks}) => {
            const {readState} = attnModules["mask_painter/widget.js"];
            const {leaks, blindRows} = attnModules["mask_painter/verdict.js"];
            const {attentionWeights} = attnModules["shared/attention.js"];
            const decode = (text) =>
                new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
            const model = new Map(Object.entries({...state, q: decode(q), k: decode(k)}));
            const {T, d, ...tensors} = readState(model);
            const options = {T, d, numHeads: 1, head: 0, causal: false};
            return masks.map((mask) => ({
                leaks: leaks(mask, T), blind: blindRows(mask, T), weights: Array.from(
                    attentionWeights(tensors.q, tensors.k, {...options, mask})),
            }));
        }""",
        {
            "state": {
                name: getattr(widget, name)
                for name in ("tokens", "T", "d", "mask", "meant_causal", "puzzle")
            },
            "q": base64.b64encode(widget.q).decode(),
            "k": base64.b64encode(widget.k).decode(),
            "masks": [mask.flatten().tolist() for mask in masks],
        },
    )
    for mask, result in zip(masks, computed, strict=True):
        weights = torch.tensor(result["weights"], dtype=torch.float64).view(T, T)
        torch.testing.assert_close(weights, expected_weights(widget, mask), atol=1e-6, rtol=0)
        q, k = decoded(widget)
        _, packaged = scaled_dot_product_attention(q, k, k, mask)
        torch.testing.assert_close(weights, packaged, atol=1e-6, rtol=0)
        future = mask.triu(1)
        assert [leak["row"] for leak in result["leaks"]] == future.any(1).nonzero()[:, 0].tolist()
        for leak in result["leaks"]:
            assert leak["columns"] == future[leak["row"]].nonzero()[:, 0].tolist()
        assert result["blind"] == (~mask.any(1)).nonzero()[:, 0].tolist()


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
        assert text == (f"{weight:.2f}".replace("0.", ".", 1) if may else "")
    unfold(page)
    rows = page.locator("tbody tr").all()
    table = [[float(n) for n in row.locator("td").all_text_contents()] for row in rows]
    table = torch.tensor(table, dtype=torch.float64)
    torch.testing.assert_close(table[:, :-1], expected, atol=0.0005001, rtol=0)
    assert table[:, -1].tolist() == [1, 1, 1, 1, 0, 1]
    assert (
        page.locator(".attn-summary[role=status]").inner_text() == "Leak: 3 looks into the future"
    )
    assert page.locator(".attn-alarm li").all_inner_texts() == [
        'token 1 "cat" can see tokens 3 and 4',
        'token 2 "sat" can see token 5 "mat"',
        'token 4 "the" looks nowhere: output 0',
    ]
    marked = page.locator(".attn-leak").evaluate_all(
        "all => all.map((cell) => [...cell.parentElement.children].indexOf(cell))"
    )
    assert marked == [1 * 6 + 3, 1 * 6 + 4, 2 * 6 + 5]
    assert page.locator(".attn-blind").count() == 6


PRESETS = {
    "everything": torch.ones(6, 6).bool(),
    "causal": causal_mask(6),
    "causal, window of 3": causal_mask(6) & torch.ones(6, 6).bool().triu(-2),
    "no self": ~torch.eye(6).bool(),
    "last two are padding": torch.tensor([[True] * 4 + [False] * 2] * 6),
    "nothing": torch.zeros(6, 6).bool(),
}


VERDICTS = {
    "everything": "15 looks to the right: as in an encoder, where that is no leak",
    "causal": "No leak: every token sees only itself and the past",
    "causal, window of 3": "No leak: every token sees only itself and the past",
    "no self": "15 looks to the right: as in an encoder, where that is no leak",
    "last two are padding": "6 looks to the right: as in an encoder, where that is no leak",
    "nothing": "Nobody sees anything: every output is 0",
}


def test_each_preset_paints_its_mask_and_the_alarm_answers(show):
    page = show(painter(mask=torch.eye(6).bool()))
    assert page.locator("button[aria-pressed=true]").count() == 0
    assert page.get_by_role("button").all_inner_texts() == [*PRESETS, "Undo"]
    for name, mask in PRESETS.items():
        page.get_by_role("button", name=name, exact=True).click()
        assert torch.equal(painted(page), mask)
        assert page.locator("button[aria-pressed=true]").all_inner_texts() == [name]
        assert page.locator(".attn-summary[role=status]").inner_text() == VERDICTS[name]
        assert page.get_by_label("causal").is_checked() == ("causal" in name)
        assert page.locator(".attn-leak").count() == 0
    assert page.locator(".attn-alarm li").count() == 0


def test_a_puzzle_shows_its_presets_when_it_is_solved(show):
    page = show(painter(T=3, puzzle=True, meant_causal=True))
    presets = page.get_by_role("group", name="Masks")
    verdict = page.locator(".attn-summary[role=status]")
    for row, column, said in [
        (0, 1, "Leak: 2 looks into the future"),
        (0, 2, "Leak: 1 look into the future"),
        (2, 0, "Leak: 1 look into the future"),
        (1, 2, "No leak; but 1 look is blocked without need"),
        (2, 2, "No leak; but 2 looks are blocked without need"),
        (2, 0, "No leak; but 1 look is blocked without need"),
    ]:
        assert presets.is_hidden() and page.locator(".attn-stairs").is_hidden()
        assert page.locator(".attn-leak, .attn-alarm li").count() == 0
        page.mouse.click(*point(page, row, column, T=3))
        assert verdict.inner_text() == said
    page.mouse.move(*point(page, 2, 2, T=3))
    page.mouse.down()
    assert verdict.inner_text() == "No leak: every token sees only itself and the past"
    assert presets.is_hidden()  # until the stroke ends, or the map would move below the pointer
    page.mouse.up()
    page.get_by_role("button", name="causal, window of 3").click()
    page.mouse.click(*point(page, 0, 2, T=3))
    assert presets.is_visible() and page.locator(".attn-stairs").is_visible()
    assert page.locator(".attn-leak").count() == page.locator(".attn-alarm li").count() == 1
    for mask, shown in ((causal_mask(3), True), (causal_mask(3).tril(-1), False)):
        page = show(painter(T=3, puzzle=True, mask=mask))
        assert page.get_by_role("group", name="Masks").is_visible() == shown
    page = show(painter(T=3, mask=causal_mask(3).tril(-1)))
    assert page.locator(".attn-summary").inner_text().startswith("No leak: every token")


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
    touch = page.locator(".attn-plot").evaluate("p => getComputedStyle(p).touchAction")
    assert touch == "pan-y pinch-zoom"
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


def test_two_fingers_zoom_and_paint_nothing(show):
    page = show(painter(mask=causal_mask(6)), width=360)
    (x, y), (other_x, other_y) = point(page, 0, 2), point(page, 0, 4)
    apart = [[(x - step, y), (other_x + step, other_y)] for step in (0, 10, 20, 30)]
    touch(page, [(x, y)], *apart)
    assert torch.equal(painted(page), causal_mask(6))


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
    everything = torch.ones(6, 6).bool()
    for mask, causal in [
        (everything, True),
        (everything, False),
        (stroke, True),
        (causal_mask(6), True),
    ]:
        assert undo.get_attribute("aria-disabled") == "false"
        undo.click()
        assert torch.equal(painted(page), mask)
        assert page.get_by_label("meant to be causal").is_checked() == causal
    assert undo.get_attribute("aria-disabled") == "true"
    undo.click(force=True)
    assert torch.equal(painted(page), causal_mask(6))


def test_ctrl_z_takes_back_a_stroke(show):
    page = show(painter(mask=causal_mask(6)))
    plot = page.locator(".attn-plot")
    for key in ("Control+z", "Meta+z"):
        plot.press("Space")
        assert not torch.equal(painted(page), causal_mask(6))
        plot.press(key)
        assert torch.equal(painted(page), causal_mask(6))
    plot.press("Control+z")  # there is nothing more to take back


def test_a_preset_that_moves_the_tick_says_so(show):
    page = show(painter(mask=causal_mask(6), meant_causal=True))
    said = page.locator(".attn-moved")
    for preset, words in [
        ("everything", "The tick went with \u201ceverything\u201d."),
        ("no self", ""),
        ("causal", "The tick came with \u201ccausal\u201d."),
        ("nothing", ""),
    ]:
        page.get_by_role("button", name=preset, exact=True).click()
        assert said.inner_text() == words


def test_it_speaks_of_a_leak_only_where_looks_to_the_right_are_wrong(show):
    page = show(painter())
    summary = page.locator(".attn-summary")
    assert not page.get_by_label("meant to be causal").is_checked()
    assert "no leak" in summary.inner_text()
    assert page.locator(".attn-leak").count() == 0
    assert page.get_by_text("looks into the future").is_hidden()
    page.get_by_label("meant to be causal").check()
    assert summary.inner_text() == "Leak: 15 looks into the future"
    assert page.locator(".attn-leak").count() == 15
    assert page.get_by_text("looks into the future, right of the line").is_visible()


def short(weight):
    return f"{weight:.2f}".replace("0.", ".", 1)


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
    assert page.get_by_text("All looks that stayed").inner_text() == (
        f"All looks that stayed grew by the same factor, {short(1 / (1 - before[0]))}. "
        "No other row changed."
    )
    track = page.locator(".attn-bars").nth(3).bounding_box()["width"]
    for name, weight in ((".attn-was", before[3]), (".attn-is", after[3])):
        width = page.locator(f".attn-bars {name}").nth(3).bounding_box()["width"]
        assert abs(width - track * weight) < 3.5  # a frame has its own width
    page.get_by_role("button", name="nothing").click()
    assert page.get_by_text("None of its looks has stayed. 6 rows changed").is_visible()


def test_a_row_that_looked_nowhere_is_called_as_in_the_alarm(show):
    mask = causal_mask(3) & torch.tensor([False, False, True])
    page = show(painter(T=3, tokens=["[pad]", "[pad]", "sat"], mask=mask))
    assert 'token 0 "[pad]" looks nowhere' in page.locator(".attn-alarm").inner_text()
    page.mouse.click(*point(page, 0, 0))
    assert page.get_by_text("Row of [pad] (0), before and now").is_visible()
    assert page.get_by_text("It looked nowhere before. No other row changed.").is_visible()


def test_a_line_with_hebrew_words_keeps_its_order(show):
    page = show(painter(T=2, tokens=["אימצתי", "ישן"]))
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
    live = page.locator("output[aria-live=polite]")
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Mask;")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    # JupyterLab leaves a focused element's keys alone where it finds this mark.
    assert page.evaluate("document.activeElement.hasAttribute('data-lm-suppress-shortcuts')")
    assert live.inner_text() == "The → The: may look, weight 1.00"
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    for key in ("ArrowDown", "ArrowDown", "End"):
        page.keyboard.press(key)
    assert live.inner_text() == "sat → mat: may not look"
    page.keyboard.press("Space")
    assert page.evaluate("lastKey.defaultPrevented")  # else the page would scroll away
    expected = causal_mask(6)
    expected[2, 5] = True
    assert torch.equal(painted(page), expected)
    weight = f"{expected_weights(widget, expected)[2, 5]:.2f}".replace("0.", ".", 1)
    assert live.inner_text() == f"sat → mat: may look, weight {weight}"
    assert page.locator(".attn-summary[role=status]").inner_text() == "Leak: 1 look into the future"
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


def test_views_of_one_widget_stay_together_and_others_alone(show):
    one, other = painter(seed=1), painter(seed=2)
    first, second, alone = show(one, one, other).locator(".attn-widget").all()
    first.get_by_role("button", name="no self").click()
    assert second.get_by_role("button", name="no self", pressed=True).count() == 1
    assert alone.get_by_role("button", name="everything", pressed=True).count() == 1
    assert first.page.locator("[id]").count() == 0


DAMAGES = {
    f"mask should be 36 booleans, but is [{'true,' * 7}true… (35 in all)": lambda state, _: state[
        "mask"
    ].pop(),
    "mask should be 36 booleans, but is [0.5,true": lambda state, _: state["mask"].insert(0, 0.5),
    "meant_causal should be true or false, but is 1": lambda state, _: state.update(meant_causal=1),
    'puzzle should be true or false, but is ""': lambda state, _: state.update(puzzle=""),
    "tokens should be 6 strings, but there are 5": lambda state, _: state["tokens"].pop(),
    "T and d should be at least 1, but are 6 and 0": lambda state, _: state.update(d=0),
    "q should be 24 numbers": lambda state, buffers: buffers.clear(),
}


def test_on_a_phone_the_verdict_stands_above_the_map_which_stays_where_it_is(show):
    page = show(painter(meant_causal=True), width=360)
    page.set_viewport_size({"width": 360, "height": 640})
    places = set()
    for preset in ("causal", "everything", "nothing", "no self"):
        page.get_by_role("button", name=preset, exact=True).click()
        page.get_by_label("meant to be causal").check()
        verdict, plot = (page.locator(p).bounding_box() for p in (".attn-summary", ".attn-plot"))
        assert verdict["y"] + verdict["height"] < min(plot["y"], 640)
        places.add(plot["y"])
    assert len(places) == 1
