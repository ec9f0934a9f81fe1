"""HeadMute in a real browser, without a kernel: its sums, its bars, its manners."""

from itertools import combinations

import numpy as np
import pytest
import torch
from tools.widget_pages import asked, said, unfold

from attncourse.widgets import HeadMute
from attnlib import MultiHeadAttention, palette

SENTENCE = "The teacher gave the students their homework".split()


def random_parts(h=4, T=3, d=6, *, seed=0, scale=1.0, bias=False, **options):
    generator = torch.Generator().manual_seed(seed)
    parts = scale * torch.randn(h, T, d, generator=generator)
    options.setdefault("tokens", [f"t{i}" for i in range(T)])
    return HeadMute(parts, torch.linspace(-1, 1, d) if bias else None, **options)


def example(text):
    """Parts for the tests of what every widget does."""
    labels = [text, "head 2", "head 3", "head 4"]
    return random_parts(tokens=[text, "b", "c"], labels=labels, bias=True, origin=text)


def largest(text):
    tokens = ["a", text, *"bcdefghijklmnop"]
    return random_parts(h=16, T=len(tokens), d=128, tokens=tokens, bias=True, origin=text)


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
    "parts should be 72 numbers in": {"parts": b""},
    "bias should be 6 numbers": {"bias": bytes(20)},
    "h, T and d should be": {"h": 0},
    "tokens should be 3 strings": {"tokens": ["a", "b"]},
    "labels should be 4 strings": {"labels": None},
    "token should be": {"token": 3},
    "muted should be": {"muted": [4]},
}


def decoded(widget):
    """The parts [h, T, d] and the bias [d] of the widget's state, in float64."""
    parts = np.frombuffer(widget.parts, "<f4").astype(np.float64)
    bias = np.frombuffer(widget.bias, "<f4").astype(np.float64) if widget.bias else np.zeros(1)
    return torch.from_numpy(parts).view(widget.h, widget.T, widget.d), torch.from_numpy(bias)


def subsets(h):
    return [list(chosen) for size in range(h + 1) for chosen in combinations(range(h), size)]


CASES = {
    "random": random_parts(),
    "with a bias": random_parts(h=3, T=2, d=5, seed=1, bias=True),
    "one head, one token, one number": random_parts(h=1, T=1, d=1, seed=2),
    "large": random_parts(h=3, T=2, d=7, seed=3, scale=1e6),
    "all zero": HeadMute(torch.zeros(2, 1, 3), tokens=["a"]),
    "cancelling": HeadMute(torch.tensor([[[80.0, -80]], [[-80.0, 80]]]), tokens=["a"]),
    "a module": HeadMute.from_module(
        MultiHeadAttention(16, 4), torch.randn(7, 16), SENTENCE, causal=True
    ),
}


SUMS = """(model, subsets) => {
  const {readState} = attnModules["head_mute/widget.js"];
  const {termsOf, sumOf, lengthOf, stackBars} = attnModules["head_mute/bars.js"];
  const read = readState(model);
  return Array.from({length: read.T}, (_, token) => subsets.map((muted) => {
    const terms = termsOf(read, token);
    const left = sumOf(terms, muted);
    return {left, length: lengthOf(left), bars: stackBars(terms, muted)};
  }));
}"""


def test_the_browser_computes_what_torch_computes_for_every_subset(show):
    page = show(random_parts())
    for widget in CASES.values():
        parts, bias = decoded(widget)
        for token, of_token in enumerate(asked(page, widget, SUMS, subsets(widget.h))):
            for muted, result in zip(subsets(widget.h), of_token, strict=True):
                kept = [head for head in range(widget.h) if head not in muted]
                expected = parts[kept, token].sum(0) + bias
                left = torch.tensor(result["left"], dtype=torch.float64)
                torch.testing.assert_close(left, expected, atol=1e-6, rtol=0)
                assert abs(result["length"] - expected.norm()) < 1e-6 * (1 + expected.norm())
                # The bars of a number rise and fall by its terms, and muted heads have no height.
                bars = [[bar["to"] - bar["from"] for bar in term] for term in result["bars"]]
                bars = torch.tensor(bars, dtype=torch.float64)
                torch.testing.assert_close(bars.sum(0), expected, atol=1e-6, rtol=0)
                assert not bars[-widget.h :][muted].any()


def bars_of(page):
    """The drawn heights in percent, [terms, d]."""
    groups = page.locator(".attn-bars g").all()
    return torch.tensor(
        [
            group.locator("rect").evaluate_all(
                "rects => rects.map((rect) => parseFloat(rect.getAttribute('height')))"
            )
            for group in groups
        ]
    )


def places_of(page, mark):
    """The heights of dots in percent from the top, [d]."""
    marks = page.locator(f".attn-{mark}")
    return torch.tensor(
        marks.evaluate_all("dots => dots.map((dot) => parseFloat(dot.getAttribute('cy')))")
    )


# What comes behind the frame that shows a click.
AFTER_PAINT = "() => new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)))"


@pytest.mark.parametrize("bias", [False, True])
def test_bars_dots_table_and_sentence_tell_every_subset(show, bias):
    widget = random_parts(h=3, T=2, d=4, seed=5, bias=bias, token=1)
    parts, offset = decoded(widget)
    parts = parts[:, 1]
    page = show(widget)
    unfold(page)
    boxes = page.get_by_role("checkbox").all()
    full = parts.sum(0) + offset
    ghosts, heights = places_of(page, "ghost"), bars_of(page)
    torch.testing.assert_close(places_of(page, "dot"), ghosts)
    per_unit = heights[-3:].double() / parts.abs()  # one scale for all bars
    torch.testing.assert_close(per_unit, torch.full_like(per_unit, per_unit[0, 0]))
    for muted in subsets(3):
        for head, box in enumerate(boxes):
            box.set_checked(head not in muted)
        page.evaluate(AFTER_PAINT)
        left = parts[[head for head in range(3) if head not in muted]].sum(0) + offset
        drawn = bars_of(page)[-3:]
        for head in range(3):
            assert torch.equal(drawn[head], 0 * heights[-3 + head]) == (head in muted)
        assert torch.equal(places_of(page, "ghost"), ghosts)  # and the scale stays
        moved = (places_of(page, "dot") - ghosts).double() / per_unit[0, 0]
        torch.testing.assert_close(moved, full - left, atol=1e-3, rtol=0)
        rows = page.locator("tbody tr").all()
        cells = [[float(t) for t in row.locator("td").all_text_contents()] for row in rows]
        cells = torch.tensor(cells, dtype=torch.float64)
        torch.testing.assert_close(cells[:, -1], left.expand(4), atol=0.00051, rtol=0)
        torch.testing.assert_close(cells[:, -2], full.expand(4), atol=0.00051, rtol=0)
        torch.testing.assert_close(cells[:, -5:-2], parts.T, atol=0.00051, rtol=0)
        told = said(page)
        if not muted:
            assert f" head {parts.norm(dim=-1).argmax() + 1} " in told  # which adds most
            continue
        change, size = (full - left).norm(), full.norm()
        names = [f"head {head + 1}" for head in muted]
        who = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        sentence = (
            f"Muting {who} changes this token's output by {change:.2f} (length), "
            f"{100 * change / size:.0f}% of its length."
        )
        rest = "only the bias" if bias else "nothing"
        all_muted = f" With all heads muted, {rest} is left." if len(muted) == 3 else ""
        assert told == sentence + all_muted


def test_each_head_has_its_color_and_its_length(show):
    widget = random_parts(h=3, T=1, d=4, seed=6, bias=True, labels=["a", "b", "c"])
    page = show(widget)
    lengths = decoded(widget)[0][:, 0].norm(dim=-1)
    fills = page.locator(".attn-bars g").evaluate_all(
        "groups => groups.map((g) => getComputedStyle(g.firstChild).fill)"
    )
    swatches = page.locator(".attn-swatch").evaluate_all(
        "all => all.map((swatch) => getComputedStyle(swatch).backgroundColor)"
    )
    for head, label in enumerate(page.locator("label").all()):
        assert label.inner_text().split() == ["abc"[head], "length", f"{lengths[head]:.2f}"]
        color = palette.head_color(head)
        rgb = f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})"
        assert fills[1 + head] == swatches[head] == rgb  # the bias comes first, in gray


def test_one_head_alone_is_heard_at_one_press(show):
    """Mute it, then mute the others instead; its own length is what was missing."""
    widget = random_parts(h=3, T=1, d=4, seed=6, labels=["a", "b", "c"])
    page = show(widget)
    parts = decoded(widget)[0][:, 0]
    b, swap = page.get_by_role("checkbox", name="b"), page.get_by_role("button", name="others")
    b.uncheck()
    told = said(page)
    assert told.startswith(
        f"Muting b changes this token's output by {parts[1].norm():.2f} (length)"
    )
    assert "the output moves if this head alone is muted" in page.locator(".attn-note").inner_text()
    swap.click()
    assert [box.is_checked() for box in page.get_by_role("checkbox").all()] == [False, True, False]
    moved = (parts[0] + parts[2]).norm()
    assert f"Muting a and c changes this token's output by {moved:.2f}" in (said(page))
    swap.click()
    b.check()
    swap.click()
    assert not any(box.is_checked() for box in page.get_by_role("checkbox").all())


def test_an_output_of_zero_has_no_share_and_what_python_has_muted_is_shown(show):
    widget = HeadMute(torch.tensor([[[80.0, -80]], [[-80.0, 80]]]), tokens=["a"])
    widget.muted = [1]
    page = show(widget)
    assert [box.is_checked() for box in page.get_by_role("checkbox").all()] == [True, False]
    told = said(page)
    assert "head 2" in told and "113.14" in told and "%" not in told


def test_the_token_is_chosen_by_keys_and_by_touch(show):
    widget = random_parts(T=3, tokens=["so", "and", "so"])
    page = show(widget)
    unfold(page)
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    tokens = page.get_by_role("radio")
    page.locator(".attn-choice [tabindex='0']").focus()
    visited = []
    for key in "ArrowRight ArrowDown ArrowRight ArrowLeft Home ArrowUp End ArrowLeft".split():
        page.keyboard.press(key)
        assert page.evaluate("lastKey.defaultPrevented")
        chosen = [token.get_attribute("aria-checked") for token in tokens.all()].index("true")
        assert tokens.nth(chosen).evaluate("token => token === document.activeElement")
        visited.append(chosen)
    assert visited == [1, 2, 0, 2, 0, 2, 2, 1]
    shown = page.locator("tbody tr").first.locator("td").first
    assert shown.inner_text() == f"{decoded(widget)[0][0, 1, 0]:.3f}"
    tokens.nth(2).tap()
    assert shown.inner_text() == f"{decoded(widget)[0][0, 2, 0]:.3f}"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # the first checkbox
    assert said(page).startswith("Muting head 1 changes")


def test_in_forced_colors_the_dots_are_seen_and_the_chosen_token_is_framed(show):
    page = show(random_parts(bias=True))
    page.emulate_media(forced_colors="active")
    style = "(node, name) => getComputedStyle(node)[name]"
    dot = page.locator(".attn-left").evaluate(style, "backgroundColor")
    assert dot == page.locator(".attn-dot").first.evaluate(style, "fill")
    assert dot != page.locator(".attn-widget").evaluate(style, "backgroundColor")
    chosen = page.locator("[role=radio]")
    assert [node.evaluate(style, "outlineStyle") for node in chosen.all()] == [
        "solid",
        *["none"] * 2,
    ]
    page.emulate_media(forced_colors="none")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_click_is_seen_before_the_bars_set_off(show, motion):
    page = show(random_parts())
    page.emulate_media(reduced_motion=motion)
    before = bars_of(page)
    click = """() => {
        document.querySelector("[type=checkbox]").click();
        const heights = [...document.querySelectorAll(".attn-bars rect")].map(
            (rect) => parseFloat(rect.getAttribute("height")));
        return [document.querySelector("output").textContent, heights];
    }"""
    sentence, heights = page.evaluate(click)
    assert sentence.startswith("Muting head 1 changes")
    assert torch.equal(torch.tensor(heights), before.flatten()) == (motion == "no-preference")
    page.evaluate(AFTER_PAINT)
    assert not bars_of(page)[0].any()


def test_two_quick_clicks_move_the_bars_once(show):
    page = show(random_parts())
    page.evaluate("""() => {
        window.moves = 0;
        new MutationObserver((records) => (moves += records.length)).observe(
            document.querySelector(".attn-bars rect"), {attributeFilter: ["height"]});
        const box = document.querySelector("[type=checkbox]");
        box.click();
        box.click();
    }""")
    page.evaluate(AFTER_PAINT)
    assert page.evaluate("moves") == 1


def test_very_many_bars_jump_for_a_browser_could_not_keep_up(show):
    for widget, seconds in ((random_parts(), 0.25), (largest("word"), 0)):
        gliding = "rect => getComputedStyle(rect).transitionDuration"
        times = show(widget).locator(".attn-bars rect").first.evaluate(gliding)
        assert {float(time.rstrip("s")) for time in times.split(", ")} == {seconds}
