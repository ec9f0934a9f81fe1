"""HeadMute in a real browser, without a kernel: its sums, its bars, its manners."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools.widget_pages import numbers_in, said, style, unfold

from attncourse.widgets import HeadMute


def by_chance(h=4, T=3, d=6):
    return torch.randn(h, T, d, generator=torch.Generator().manual_seed(5))


def random_parts(h=4, T=3, d=6, **options):
    return HeadMute(by_chance(h, T, d), torch.linspace(-1, 1, d), **options)


def example(text):
    """Parts for the tests of what every widget does."""
    labels = [text, "head 2", "head 3", "head 4"]
    return random_parts(tokens=[text, "b", "c"], labels=labels, origin=text)


def largest(text):
    tokens = ["a", text, *"bcdefghijklmnop"]
    return random_parts(h=16, T=len(tokens), d=128, tokens=tokens, origin=text)


PLACES = {
    "div > p.attn-note …",
    "div.attn-row > button",
    "label > span",
    "div.attn-field > svg.attn-bars-plot aria-label …",
    "div > output.attn-live …",
    "table > caption …",
    "tr > th",
    "tr > th …",
}
KEY = ("input[type=checkbox]", "Space")
DAMAGES = {
    "parts should be 72 numbers": {"parts": bytes(284)},
    "bias should be 6 numbers": {"bias": bytes(20)},
    "h, T and d should be": {"h": 0},
    "tokens should be 3 strings": {"tokens": ["a", "b"]},
    "muted should be": {"muted": [4]},
}


def attributes(page, marks, name):
    """An attribute of marks in percent, for each mark."""
    return torch.tensor(
        page.locator(marks).evaluate_all(
            "(all, name) => all.map((mark) => parseFloat(mark.getAttribute(name)))", name
        ),
        dtype=torch.float64,
    )


# What comes behind the frame that shows a click.
AFTER_PAINT = "() => new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)))"


@pytest.mark.parametrize(
    ("h", "T", "d", "bias", "dtype"), [(3, 2, 4, 0, torch.bfloat16), (2, 3, 7, 1, torch.float64)]
)
def test_bars_dots_axis_table_and_sentence_tell_every_subset(show, h, T, d, bias, dtype):
    given, offset = by_chance(h, T, d).to(dtype), bias * torch.linspace(-1, 1, d).double()
    tokens = [f"t{i}" for i in range(T)]
    page = show(HeadMute(given, offset if bias else None, tokens=tokens, token=T - 1))
    parts = given[:, -1].double()
    unfold(page)
    full, terms = parts.sum(0) + offset, torch.cat([offset.expand(d)[None], parts])[-h - bias :]
    bars, switches = page.locator(".attn-bars g"), page.locator("label")
    for head, switch in enumerate(switches.all()):
        length = f"{parts[head].norm():.2f}"
        assert switch.inner_text().split() == ["head", f"{head + 1}", "length", length]
        color = style(switch.locator(".attn-swatch"), "backgroundColor")
        assert style(bars.nth(head + bias).locator("rect").first, "fill") == color

    def drawn():
        tops, heights = (attributes(page, ".attn-bars rect", name) for name in ("y", "height"))
        dots = (attributes(page, f".attn-{mark}", "cy") for mark in ("ghost", "dot"))
        return tops.view(-1, d), heights.view(-1, d), *dots

    unit = drawn()[1][-1, 0] / parts[-1, 0].abs()  # one scale for all
    ghosts = drawn()[2]
    zero = ghosts + unit * full
    ticks = page.locator(".attn-values span").evaluate_all(
        "all => all.map(({textContent, style}) => [textContent, parseFloat(style.top)])"
    )
    for text, top in ticks:
        assert top == pytest.approx(float(zero[0] - unit * numbers_in(text)[0]), abs=0.1)
    for muted in ([i for i in range(h) if chosen >> i & 1] for chosen in range(2**h)):
        for head, box in enumerate(page.get_by_role("checkbox").all()):
            box.set_checked(head not in muted)
        page.evaluate(AFTER_PAINT)
        tops, heights, *dots = drawn()
        kept = terms.clone()
        kept[[head + bias for head in muted]] = 0
        left = kept[bias:].sum(0) + offset
        above, below = kept.clamp(min=0).cumsum(0), kept.clamp(max=0).cumsum(0)
        ends = torch.where(terms >= 0, above, below - kept)  # the upper ones
        torch.testing.assert_close(heights, unit * kept.abs(), atol=1e-3, rtol=0)
        torch.testing.assert_close(tops, zero - unit * ends, atol=1e-3, rtol=0)
        torch.testing.assert_close(dots[0], ghosts)  # and the scale stays
        torch.testing.assert_close(dots[1], zero - unit * left, atol=1e-3, rtol=0)
        cells = numbers_in(" ".join(page.locator("tbody td").all_text_contents()))
        cells = torch.tensor(cells, dtype=torch.float64).view(d, -1)[:, -h - 2 :]
        torch.testing.assert_close(cells, torch.stack([*parts, full, left], 1), atol=6e-4, rtol=0)
        *titles, whole, rest = page.locator("thead th").all_inner_texts()
        assert [")" in title for title in titles[-h:]] == [head in muted for head in range(h)]
        assert "output" in whole and "left" in rest  # the order of the cells
        told = said(page)
        assert told in page.locator(".attn-bars-plot").get_attribute("aria-label")
        named = [int(head) - 1 for head in re.findall(r"head (\d)", told)]
        assert named == (muted or [parts.norm(dim=-1).argmax()])  # or which adds most
        if muted:
            change, size = (full - left).norm(), full.norm()
            assert f" {change:.2f} (length), {100 * change / size:.0f}% " in told
            assert ("bias" in told) == (bias == 1 and len(muted) == h)


def test_one_head_alone_is_heard_at_one_press_and_no_share_is_told_of_an_output_of_zero(show):
    widget = HeadMute(torch.tensor([[[80.0, -80]], [[-80.0, 80]], [[0.0, 0]]]), tokens=["a"])
    widget.muted = [1]  # by Python
    page = show(widget)
    boxes, swap = page.get_by_role("checkbox"), page.get_by_role("button", name="others")
    assert "%" not in said(page)
    for change, muted, length in (
        (lambda: None, [2], 113.14),
        (swap.click, [1, 3], 113.14),
        (boxes.nth(1).uncheck, [1, 2, 3], 0),
        (boxes.nth(0).check, [2, 3], 113.14),
        (boxes.nth(0).uncheck, [1, 2, 3], 0),  # in the order of heads, not of clicks
    ):
        change()
        assert [box.is_checked() for box in boxes.all()] == [i not in muted for i in (1, 2, 3)]
        assert numbers_in(said(page)) == [*muted, length]


def test_the_token_is_chosen_by_keys_and_by_touch_and_forced_colors_leave_the_dots(show):
    page = show(random_parts(tokens=["so", "and", "so"]))
    unfold(page)
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    tokens = page.get_by_role("radio")
    shown = page.locator("tbody tr").first.locator("td").nth(1)  # after the bias
    numbers = by_chance()[0, :, 0].tolist()
    page.locator(".attn-choice [tabindex='0']").focus()
    for key, chosen in (
        ("ArrowRight", 1), ("ArrowDown", 2), ("ArrowRight", 0), ("ArrowUp", 2), ("Home", 0),
        ("End", 2), ("ArrowLeft", 1),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate("lastKey.defaultPrevented")
        assert tokens.nth(chosen).get_attribute("aria-checked") == "true"
        expect(tokens.nth(chosen)).to_be_focused()
        assert numbers_in(shown.inner_text()) == pytest.approx([numbers[chosen]], abs=6e-4)
        assert f" {tokens.nth(chosen).inner_text()} " in page.locator("caption").inner_text()
    tokens.nth(0).tap()
    assert tokens.nth(0).get_attribute("aria-checked") == "true"
    page.keyboard.press("Tab")  # past the others
    page.keyboard.press("Space")
    assert not page.get_by_role("checkbox").first.is_checked()
    page.emulate_media(forced_colors="active")
    dot = style(page.locator(".attn-left"), "backgroundColor")
    assert dot == style(page.locator(".attn-dot").first, "fill")
    assert dot != style(page.locator(".attn-widget"), "backgroundColor")
    page.emulate_media(forced_colors="none")
