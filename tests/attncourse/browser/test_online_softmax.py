"""OnlineSoftmax in a real browser, without a kernel: its numbers, its words, its controls."""

import math

import pytest
import torch
from tools.head_labs import CELLS
from tools.widget_pages import numbers_in, press, said, unfold

from attncourse.widgets import OnlineSoftmax
from attncourse.widgets.online_softmax.widget import METHODS

MASKED = -math.inf


def row(scores, *, d=2, **options):
    values = torch.randn(len(scores), d, generator=torch.Generator().manual_seed(0))
    return OnlineSoftmax(torch.tensor(scores), values, **options)


def example(text):
    return row([1.0, MASKED, 3.0], origin=text)


def largest(text):
    numbers = torch.full((12,), -999.25)
    return OnlineSoftmax(numbers, numbers[:, None].repeat(1, 3), block=12, origin=text)


PLACES = {"div > p.attn-note …"}
KEY = ("[type=range]", "ArrowRight")
DAMAGES = {
    "scores holds a number that isn't finite": {"scores": b"\xff" * 12},
    # Minus infinity is a score, and no value.
    "values holds a number that isn't finite": {"values": b"\0\0\x80\xff" * 6},
    "step should be": {"step": -1},
    'but is "safe"': {"method": "safe"},
}


def values_of(widget):
    return torch.frombuffer(bytearray(widget.values), dtype=torch.float32).view(widget.T, widget.d)


def expected_steps(widget, block, method):
    """The reader's ten lines in torch, in float32: the state after each block."""
    scores, values = widget.scores, values_of(widget)
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
        known = {"largest": new, "factor": factor, "sum": total, "output": output}
        steps.append(known | {"counts": counts})
    return steps


def plain_softmax(widget):
    """The state of a softmax that needs all scores at once."""
    scores, largest = widget.scores, widget.scores.max()
    if largest == MASKED:
        return {"largest": largest, "sum": 0.0, "output": torch.zeros(widget.d)}
    output = scores.softmax(0) @ values_of(widget)
    return {"largest": largest, "sum": (scores - largest).exp().sum(), "output": output}


def assert_written(text, number, digits=0.0051):
    expected = torch.as_tensor(number).double().flatten()
    found = torch.tensor(numbers_in(text)).double()
    torch.testing.assert_close(found, expected, atol=digits, rtol=0.005, equal_nan=True)


def assert_shows(page, widget, *, block=2, step=0, method="online"):
    """Fail unless blocks, bars and the record are those of torch after so many blocks."""
    steps = expected_steps(widget, block, method)
    *rows, last = page.locator(".attn-record tbody tr").evaluate_all(CELLS)
    for i, (row, state) in enumerate(zip(rows, steps, strict=True)):
        _, largest, factor, total, output = row
        if i >= step:
            assert row[1:] == [""] * 4
            continue
        assert_written(total, state["sum"])
        assert_written(output, state["output"])
        assert_written(largest, state["largest"] if method != "no maximum" else [])
        assert_written(factor, state["factor"] if method == "online" else [])
    for text, number in zip((last[1], *last[3:]), plain_softmax(widget).values(), strict=True):
        assert_written(text, number)
    parts = page.locator(".attn-block")
    own = "all => all.map((block) => block.querySelectorAll('input').length)"
    assert parts.evaluate_all(own) == [len(part) for part in widget.scores.split(block)]
    looks = [part.get_attribute("class") for part in parts.all()]
    assert ["attn-now" in look for look in looks] == [i == step - 1 for i in range(len(steps))]
    assert ["attn-ahead" in look for look in looks] == [i >= step for i in range(len(steps))]
    counts = steps[step - 1]["counts"] if step else torch.zeros(0)
    told = page.locator(".attn-cell > span:first-child").all_text_contents()
    assert_written(" ".join(told), counts)
    counts = torch.nn.functional.pad(counts, (0, widget.T - len(counts)))
    most = counts.nan_to_num(posinf=torch.inf).max().clamp(min=1)
    bars = (100 * counts / most).nan_to_num(100.0 if most == torch.inf else 0.0)
    heights = page.locator(".attn-bar").evaluate_all("all => all.map((bar) => bar.style.height)")
    assert_written(" ".join(heights), bars, 1e-3)
    assert numbers_in(said(page))[:2] == ([step, len(steps)] if step else [0])
    for name, is_over in (("Back", step == 0), ("Step", step == len(steps))):
        assert page.get_by_role("button", name=name, exact=True).is_disabled() == is_over


ROWS = [
    [1.0, -2.0, 2.5, 0.0, -1.5, 2.0, 4.5, -3.0, 0.5, 1.5, 6.25, 5.0],  # often a larger one
    [2.5],
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
    unfold(page)
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
        ("Block size", "ArrowRight", {"block": 3}),
        ("Block size", "End", {"block": 8, "step": 1}),  # there is no second one
    ]:
        role = "slider" if name == "Block size" else "button"
        page.get_by_role(role, name=name, exact=role == "button").press(key)
        at |= changes
        assert_shows(page, widget, **at)
    steps, each = page.locator("details table").all()  # which have all digits
    weights = [row[4] for row in each.locator("tbody tr").evaluate_all(CELLS)]
    exact = widget.scores.softmax(0).tolist()
    assert numbers_in(" ".join(weights)) == pytest.approx(exact, rel=1e-5)
    assert numbers_in(steps.locator("caption").text_content())[0] < 1e-6


def test_what_is_wrong_is_told_by_how_much_and_luck_is_called_luck(show):
    widget = OnlineSoftmax(step=4, method="no rescaling")
    wrong = expected_steps(widget, 2, "no rescaling")[-1]
    off = (wrong["output"] - plain_softmax(widget)["output"]).abs().max()
    assert f"{off:.3g}" in said(show(widget))
    # A right output of a wrong sum.
    scores, values = torch.tensor([0.0, 1.0, 2.0, 0.0]), torch.full((4, 2), 3.0)
    alike = OnlineSoftmax(scores, values, step=2, method="no rescaling")
    told = said(show(alike))
    for state in (expected_steps(alike, 2, "no rescaling")[-1], plain_softmax(alike)):
        assert f"{state['sum']:.3g}" in told


def test_taps_try_scores_and_a_reader_types_one_or_is_told_why_not(show):
    page = show(OnlineSoftmax(step=4), width=360)
    start = OnlineSoftmax()
    scores, values, words = start.scores.clone(), values_of(start), said(page)
    for place, number in ((4, 100.0), (1, MASKED)):
        scores[place] = number
        widget = OnlineSoftmax(scores, values)
        page.get_by_role("button", name=f"Score {place + 1}").tap()
        assert_shows(page, widget, step=4)
    page.get_by_role("button", name="Without subtracting the maximum").tap()
    assert_shows(page, widget, step=4, method="no maximum")
    right = plain_softmax(widget)["output"].tolist()
    assert numbers_in(said(page))[-2:] == pytest.approx(right, rel=0.05, abs=0.0051)
    page.get_by_role("button", name="Online softmax").tap()
    field, refusal = page.get_by_label("Score, token 1"), page.locator(".attn-refusal")
    field.fill("-in")  # which may become a mask
    assert refusal.inner_text() == ""
    field.fill("2000")
    assert all(fact in refusal.inner_text() for fact in ["Token 1", "\u22121000", "\u2212∞"])
    page.get_by_role("button", name="Back to the start").tap()
    assert_shows(page, start, step=4)
    assert (field.input_value(), refusal.inner_text(), said(page)) == ("1", "", words)
    field.fill("-inf")
    scores = start.scores.clone()
    scores[0] = MASKED
    assert_shows(page, OnlineSoftmax(scores, values), step=4)


def test_it_plays_to_the_end_and_begins_anew_unless_motion_is_unwanted(show):
    page = show(OnlineSoftmax(step=2))
    page.clock.install()
    live = page.locator("output.attn-live")
    press(page, "Play")
    assert live.get_attribute("aria-live") == "off"
    page.clock.run_for(20_000)
    assert_shows(page, OnlineSoftmax(), step=4)
    assert live.get_attribute("aria-live") == "polite"
    press(page, "Play", "Pause")
    page.clock.run_for(20_000)
    assert_shows(page, OnlineSoftmax())
    press(page, "Play")
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Pause").wait_for(state="detached")  # told a frame later
    assert page.get_by_role("button", name="Play").count() == 0
    page.clock.run_for(20_000)
    press(page, "Step")
    assert_shows(page, OnlineSoftmax(), step=1)
