"""OnlineSoftmax in a real browser, without a kernel: its numbers, its words, its controls."""

import math

import pytest
import torch
from playwright.sync_api import expect
from tools.widget_pages import numbers_in, page_source, press, said, unfold

from attncourse.widgets import OnlineSoftmax
from attncourse.widgets.online_softmax.widget import METHODS

MASKED = -math.inf


def row(scores, *, d=2, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(len(scores), d, generator=generator)
    return OnlineSoftmax(torch.tensor(scores), values, **options)


def random_row(T, d, *, seed, scale=3.0, **options):
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(T, generator=generator)
    return row(scores.tolist(), d=d, seed=seed + 1, **options)


def example(text):
    """A row for the tests of what every widget does."""
    return row([1.0, MASKED, 3.0], origin=text)


def largest(text):
    numbers = torch.full((12,), -999.25)
    return OnlineSoftmax(numbers, numbers[:, None].repeat(1, 3), block=12, origin=text)


PLACES = {"div > p.attn-note …"}
KEY = ("[type=range]", "ArrowRight")
DAMAGES = {
    "scores holds a number that isn't finite": {"scores": b"\xff" * 12},
    "start_scores should be 3 numbers": {"start_scores": bytes(4)},
    # Minus infinity is a score, and no value.
    "values holds a number that isn't finite": {"values": b"\0\0\x80\xff" * 6},
    "block should be": {"block": 4},
    "step should be": {"step": -1},
    'but is "safe"': {"method": "safe"},
    "d should be": {"d": 9},
}


def decoded(widget):
    values = torch.frombuffer(bytearray(widget.values), dtype=torch.float32)
    return widget.scores, values.view(widget.T, widget.d)


def expected_steps(widget, block, method):
    """The reader's ten lines in torch, in float32: the state after each block."""
    scores, values = decoded(widget)
    largest = torch.tensor(MASKED)
    total, mixed, counts = torch.tensor(0.0), torch.zeros(widget.d), torch.zeros(0)
    steps = []
    for s, v in zip(scores.split(block), values.split(block), strict=True):
        new = torch.maximum(largest, s.max())
        shift = torch.tensor(0.0) if method == "no maximum" or new == MASKED else new
        factor = (largest - shift).exp() if method == "online" else torch.tensor(1.0)
        exponentials = (s - shift).exp()
        total = total * factor + exponentials.sum()
        mixed = mixed * factor + exponentials @ v
        counts = torch.cat([counts * factor, exponentials])
        largest = new
        output = torch.zeros(widget.d) if new == MASKED else mixed / total
        known = {"largest": new, "factor": factor, "sum": total, "mixed": mixed, "output": output}
        steps.append(
            known | {"counts": torch.nn.functional.pad(counts, (0, widget.T - len(counts)))}
        )
    return steps


def plain_softmax(widget):
    """The state of a softmax that needs all scores at once."""
    scores, values = decoded(widget)
    largest = scores.max()
    if largest == MASKED:
        return {"largest": largest, "sum": 0.0, "output": torch.zeros(widget.d)}
    return {
        "largest": largest,
        "sum": (scores - largest).exp().sum(),
        "output": scores.softmax(0) @ values,
    }


def assert_written(text, number, digits=0.0051):
    expected = torch.as_tensor(number).double().flatten()
    found = torch.tensor(numbers_in(text)).double()
    torch.testing.assert_close(found, expected, atol=digits, rtol=0.005, equal_nan=True)


def record(page):
    """The cells of the table of blocks, a list of texts for each row."""
    rows = page.locator(".attn-record tbody tr").all()
    return [row.locator("th, td").all_text_contents() for row in rows]


def assert_shows(page, widget, *, block=2, step=0, method="online"):
    """Fail unless blocks, bars and the record are those of torch after so many blocks."""
    steps = expected_steps(widget, block, method)
    *rows, last = record(page)
    for i, (row, state) in enumerate(zip(rows, steps, strict=True)):
        _, largest, factor, total, output = row
        if i >= step:
            assert row[1:] == [""] * 4
            continue
        assert_written(total, state["sum"])
        assert_written(output, state["output"])
        for text, name, is_told in (
            (largest, "largest", method != "no maximum"), (factor, "factor", method == "online"),
        ):  # fmt: skip
            assert_written(text, state[name] if is_told else [])
    for text, number in zip((last[1], *last[3:]), plain_softmax(widget).values(), strict=True):
        assert_written(text, number)
    parts = page.locator(".attn-block")
    own = "all => all.map((block) => block.querySelectorAll('input').length)"
    assert parts.evaluate_all(own) == [len(part) for part in widget.scores.split(block)]
    looks = [part.get_attribute("class") for part in parts.all()]
    assert ["attn-now" in look for look in looks] == [i == step - 1 for i in range(len(steps))]
    assert ["attn-ahead" in look for look in looks] == [i >= step for i in range(len(steps))]
    counts = steps[step - 1]["counts"] if step else torch.zeros(widget.T)
    heights = page.locator(".attn-bar").evaluate_all("all => all.map((bar) => bar.style.height)")
    most = counts.nan_to_num(posinf=torch.inf).max().clamp(min=1)
    bars = (100 * counts / most).nan_to_num(100.0 if most == torch.inf else 0.0)
    assert_written(" ".join(heights), bars, 1e-3)
    told = page.locator(".attn-cell > span:first-child").all_text_contents()
    assert_written(" ".join(told), counts[: block * step])
    assert numbers_in(said(page))[:2] == ([step, len(steps)] if step else [0])
    for name, is_over in (("Back", step == 0), ("Step", step == len(steps))):
        assert page.get_by_role("button", name=name, exact=True).is_disabled() == is_over


ROWS = [
    random_row(12, 3, seed=8).scores.tolist(),  # whose maximum rises early, late and between
    [2.5],
    [0.0, 1.0, 2.0, 3.0, 4.0],
    [4.0, 3.0, 2.0, 1.0, 0.0],
    [7.0] * 6,
    [1.0, 2.0, 100.0, 3.0],
    [MASKED, MASKED, MASKED, 1.0, MASKED, 2.0],
    [MASKED] * 4,
    [-1000.0, 1000.0, -1000.0, 0.0],  # as far apart as it gets
    [-200.0, -201.0, -202.0],
]


@pytest.mark.parametrize("method", METHODS)
def test_the_browser_computes_what_torch_computes(show, method):
    cases = [row(scores, d=3, method=method, step=len(scores)) for scores in ROWS]
    page = show(*cases)
    for root, widget in zip(page.locator(".attn-widget").all(), cases, strict=True):
        assert_shows(root, widget, step=-(-widget.T // 2), method=method)


def test_by_keys_blocks_are_read_as_torch_does(show):
    widget = OnlineSoftmax()
    page = show(widget)
    slider = page.get_by_role("slider", name="Block size")
    at = {"block": 2, "step": 0, "method": "online"}
    assert_shows(page, widget, **at)
    for name, key, changes in [
        ("Step", "Enter", {"step": 1}),
        ("Step", "Space", {"step": 2}),
        ("Step", "Enter", {"step": 3}),  # a larger score
        ("Without rescaling", "Enter", {"method": "no rescaling"}),
        ("Step", "Enter", {"step": 4}),
        ("Step", "Enter", {}),
        ("Without subtracting the maximum", "Enter", {"method": "no maximum"}),
        ("Online softmax", "Enter", {"method": "online"}),
        ("Back", "Enter", {"step": 3}),
        (None, "ArrowRight", {"block": 3}),
        (None, "End", {"block": 8, "step": 1}),  # there is no third one
        ("Back", "Enter", {"step": 0}),
        ("Back", "Enter", {}),
        (None, "Home", {"block": 1}),
    ]:
        control = page.get_by_role("button", name=name, exact=True) if name else slider
        control.press(key)
        at |= changes
        assert_shows(page, widget, **at)


def test_what_is_wrong_is_told_by_how_much_and_luck_is_called_luck(show):
    widget = OnlineSoftmax(step=4, method="no rescaling")
    page = show(widget)
    wrong = expected_steps(widget, 2, "no rescaling")[-1]
    off = (wrong["output"] - plain_softmax(widget)["output"]).abs().max()
    assert f"{off:.3g}" in said(page)
    # A right output of a wrong sum.
    alike = OnlineSoftmax(
        torch.tensor([0.0, 1.0, 2.0, 0.0]), torch.full((4, 2), 3.0), step=2, method="no rescaling"
    )
    told = said(show(alike))
    for state in (expected_steps(alike, 2, "no rescaling")[-1], plain_softmax(alike)):
        assert f"{state['sum']:.3g}" in told


def test_taps_try_scores_that_overflow_or_are_masked(show):
    page = show(OnlineSoftmax(step=4), width=360)
    scores, values = decoded(OnlineSoftmax())
    start = said(page)
    for place, number, method in ((4, 100.0, "no maximum"), (1, MASKED, "no maximum")):
        scores[place] = number
        widget = OnlineSoftmax(scores, values)
        minus = str(number).replace(".0", "").replace("-inf", "\u2212∞")
        page.get_by_role("button", name=f"Score {place + 1}: {minus}").tap()
        assert_shows(page, widget, step=4)
        page.get_by_role("button", name="Without subtracting the maximum").tap()
        assert_shows(page, widget, step=4, method=method)
        right = plain_softmax(widget)["output"].tolist()
        assert numbers_in(said(page))[-2:] == pytest.approx(right, rel=0.05, abs=0.0051)
        page.get_by_role("button", name="Online softmax").tap()
    page.get_by_role("button", name="Back to the start").tap()
    assert_shows(page, OnlineSoftmax(), step=4)
    assert said(page) == start


def test_what_is_masked_everywhere_is_0_and_what_vanishes_is_no_number(show):
    for scores, method, is_number in (
        ([-200.0, -201.0, -202.0], "no maximum", False),
        ([MASKED, MASKED, 1.0], "online", True),
        ([MASKED] * 3, "no maximum", True),
    ):
        page = show(row(scores, method=method, step=2))
        unfold(page)
        assert ("NaN" in page.locator(".attn-widget").inner_text()) != is_number


def test_a_reader_types_a_score_or_is_told_why_not(show):
    page = show(OnlineSoftmax(step=4))
    field = page.get_by_label("Score, token 1")
    refusal = page.locator(".attn-refusal")
    before = said(page)
    for half in ("-", "-i", "-in"):
        field.fill(half)
        assert refusal.inner_text() == "" and said(page) == before
    field.fill("-inf")
    scores, values = decoded(OnlineSoftmax())
    scores[0] = MASKED
    assert_shows(page, OnlineSoftmax(scores, values), step=4)
    for refused, facts in (("2000", ["\u22121000", "1000", "\u2212∞"]), ("x", ["“x”"])):
        field.fill(refused)
        assert all(fact in refusal.inner_text() for fact in ["Token 1", *facts])
    press(page, "Back to the start")
    assert field.input_value() == "1" and refusal.inner_text() == ""
    assert said(page) == before
    field.press("ArrowUp")
    assert field.input_value() == "2"


def test_it_plays_to_the_end_and_begins_anew(show):
    page = show(OnlineSoftmax(step=2))
    page.clock.install()
    press(page, "Play")
    assert page.locator("output.attn-live").get_attribute("aria-live") == "off"
    page.clock.run_for(20_000)
    assert_shows(page, OnlineSoftmax(), step=4)
    assert page.locator("output.attn-live").get_attribute("aria-live") == "polite"
    press(page, "Play", "Pause")
    page.clock.run_for(20_000)
    assert_shows(page, OnlineSoftmax())


def test_who_wants_no_motion_has_no_play(show):
    page = show(OnlineSoftmax())
    page.emulate_media(reduced_motion="reduce")
    expect(page.get_by_role("button", name="Play")).to_have_count(0)  # told a frame later
    page.set_content(page_source(OnlineSoftmax()))  # nor one that opens so
    press(page, "Step")
    assert page.get_by_role("button", name="Play").count() == 0
    assert_shows(page, OnlineSoftmax(), step=1)


def test_a_table_has_all_digits(show):
    widget = OnlineSoftmax(step=4)
    page = show(widget)
    unfold(page)
    scores, _ = decoded(widget)
    steps, each = page.locator("details table").all()
    cells = [
        [cell.text_content() for cell in row.locator("th, td").all()]
        for row in each.locator("tbody tr").all()
    ]
    weights = torch.tensor([float(row[4].replace("\u2212", "-")) for row in cells])
    torch.testing.assert_close(weights, scores.softmax(0), atol=1e-7, rtol=1e-5)
    assert steps.locator("tbody tr").count() == 4
    difference = steps.locator("caption").text_content().split(": ")[1].replace("\u2212", "-")
    assert float(difference) < 1e-6
