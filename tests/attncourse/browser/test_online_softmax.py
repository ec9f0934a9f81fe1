"""OnlineSoftmax in a real browser, without a kernel: its numbers, its words, its controls."""

import math

import pytest
import torch
from playwright.sync_api import expect
from tools.widget_pages import asked, page_source, press, said, unfold

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


def in_float32(numbers):
    return torch.tensor(numbers, dtype=torch.float32)


def expected_steps(widget, block, method):
    """The reader's ten lines in torch, in float32: the state after each block."""
    scores, values = decoded(widget)
    largest = torch.tensor(MASKED)
    total, mixed = torch.tensor(0.0), torch.zeros(widget.d)
    steps = []
    for s, v in zip(scores.split(block), values.split(block), strict=True):
        new = torch.maximum(largest, s.max())
        shift = torch.tensor(0.0) if method == "no maximum" or new == MASKED else new
        factor = (largest - shift).exp() if method == "online" else torch.tensor(1.0)
        exponentials = (s - shift).exp()
        total = total * factor + exponentials.sum()
        mixed = mixed * factor + exponentials @ v
        largest = new
        output = torch.zeros(widget.d) if new == MASKED else mixed / total
        steps.append({"largest": new, "sum": total, "mixed": mixed, "output": output})
    return steps


CASES = {
    "the lesson's": OnlineSoftmax(),
    "random": random_row(12, 3, seed=8),  # whose maximum rises early, late and between
    "one score": row([2.5]),
    "rising": row([0.0, 1.0, 2.0, 3.0, 4.0]),
    "falling": row([4.0, 3.0, 2.0, 1.0, 0.0]),
    "all equal": row([7.0] * 6),
    "one very large": row([1.0, 2.0, 100.0, 3.0]),
    "the first ones masked": row([MASKED, MASKED, MASKED, 1.0, MASKED, 2.0]),
    "all masked": row([MASKED] * 4),
    "as far apart as it gets": row([-1000.0, 1000.0, -1000.0, 0.0]),
    "all very small": row([-200.0, -201.0, -202.0]),
}


STEPS = """(model, changes) => {
  const {readState} = attnModules["online_softmax/widget.js"];
  const {stepsOf, plainSoftmax} = attnModules["online_softmax/steps.js"];
  const state = readState(new Map([...model, ...Object.entries(changes)]));
  return [stepsOf(state).slice(1), plainSoftmax(state)];
}"""


@pytest.mark.parametrize("method", METHODS)
def test_the_browser_computes_what_torch_computes(show, method):
    page = show(OnlineSoftmax())
    for widget in CASES.values():
        scores, values = decoded(widget)
        slack = {"atol": 3e-6 * max(1.0, values.abs().max().item()), "rtol": 3e-6}
        slack |= {"equal_nan": True}
        exact = torch.zeros(widget.d, dtype=torch.float64)
        if scores.max() > MASKED:
            exact = scores.double().softmax(0) @ values.double()
        for block in range(1, widget.T + 1):
            steps, plain = asked(page, widget, STEPS, {"block": block, "step": 0, "method": method})
            expected = expected_steps(widget, block, method)
            for found, wanted in zip(steps, expected, strict=True):
                for name, number in wanted.items():
                    torch.testing.assert_close(in_float32(found[name]), number, **slack)
            if method == "online":
                last = torch.tensor(steps[-1]["output"], dtype=torch.float64)
                torch.testing.assert_close(last, exact, **slack)
            torch.testing.assert_close(in_float32(plain["output"]), exact.float(), **slack)


def record(page):
    """The cells of the table of blocks, a list of texts for each row."""
    rows = page.locator(".attn-record tbody tr").all()
    return [row.locator("th, td").all_text_contents() for row in rows]


def test_step_by_step_as_on_paper(show):
    page = show(OnlineSoftmax())
    assert "Nothing is read yet" in said(page)
    assert [row[1:] for row in record(page)[:-1]] == [[""] * 4] * 4
    press(page, "Step")
    # exp(1 - 2) + exp(0) = 1.368; the values (1, 0) and (0, 1) mixed, (.27, .73).
    assert record(page)[0] == ["1", "2", "0", "1.37", "(0.27, 0.73)"]
    assert "Block 1 of 4: the largest score is 2." in said(page)
    press(page, "Step")
    assert record(page)[1][:4] == ["2", "2", "1", "1.87"]  # + exp(-2) + exp(-1)
    assert "so there is nothing to rescale" in said(page)
    press(page, "Step")
    assert record(page)[2][:4] == ["3", "4", "0.135", "1.62"]  # 1.87 exp(-2) + 1 + exp(-1)
    assert "multiplied by exp(2 \u2212 4) = 0.135." in said(page)
    press(page, "Step")
    assert record(page)[3][1:] == [*record(page)[4][1:2], "1", *record(page)[4][3:]]
    assert "is that of the plain softmax" in said(page)
    assert page.get_by_role("button", name="Step").is_disabled()
    press(page, "Back")
    assert record(page)[3][1:] == [""] * 4


def bars(page):
    heights = page.locator(".attn-bar").evaluate_all("all => all.map((bar) => bar.style.height)")
    return [float(height.rstrip("%")) / 100 for height in heights]


def test_bars_shrink_when_a_larger_score_comes(show):
    page = show(OnlineSoftmax(step=2))
    before = bars(page)
    assert before == pytest.approx([*map(math.exp, (-1, 0, -2, -1)), 0, 0, 0, 0], abs=1e-6)
    press(page, "Step")
    factor = math.exp(-2)
    assert bars(page)[:4] == pytest.approx([factor * bar for bar in before[:4]], abs=1e-6)
    press(page, "Without rescaling")
    assert bars(page)[:4] == pytest.approx(before[:4], abs=1e-6)
    assert "7.39 times too much" in said(page)


def test_without_rescaling_the_output_is_wrong_by_what_torch_says(show):
    widget = OnlineSoftmax(step=4, method="no rescaling")
    page = show(widget)
    scores, values = decoded(widget)
    wrong = expected_steps(widget, 2, "no rescaling")[-1]["output"]
    off = (wrong - scores.softmax(0) @ values).abs().max().item()
    assert f"is wrong by {off:.3g}" in said(page)
    page.get_by_role("slider", name="Block size").press("End")
    assert "nothing had to be rescaled" in said(page)
    # A right output of a wrong sum is called luck.
    alike = OnlineSoftmax(
        torch.tensor([0.0, 1.0, 2.0, 0.0]), torch.full((4, 2), 3.0), step=2, method="no rescaling"
    )
    wrong = expected_steps(alike, 2, "no rescaling")[-1]["sum"]
    right = decoded(alike)[0].sub(2).exp().sum()
    assert abs(wrong - right) > 0.1
    assert f"the sum is {wrong:.3g} instead of {right:.3g}." in said(show(alike))


def test_a_very_large_score_overflows_only_where_nothing_is_subtracted(show):
    page = show(OnlineSoftmax(step=4))
    press(page, "Score 5: 100")
    assert "is that of the plain softmax" in said(page)
    assert record(page)[-1][-1] == "(2.8e\u221242, 2)"  # its value; exp(-96) of the next one's
    press(page, "Without subtracting the maximum")
    assert record(page)[3][3:] == ["∞", "(NaN, NaN)"]
    assert "isn't a number (NaN). The plain softmax gives (2.8e\u221242, 2)." in said(page)
    press(page, "Back")
    assert "exp(100) is larger than float32's largest number" in said(page)
    press(page, "Back to the start", "Step")
    assert "no exponential" in said(page)


def test_very_small_scores_vanish_where_nothing_is_subtracted(show):
    page = show(row([-200.0, -201.0, -202.0], block=3, step=1, method="no maximum"))
    assert "exp(\u2212200) is smaller than float32's smallest number, and becomes 0." in said(page)
    assert "0 / 0 isn't a number (NaN)" in said(page)
    press(page, "Online softmax")
    assert "is that of the plain softmax" in said(page)


def test_what_is_masked_counts_nothing_also_where_all_of_a_block_is(show):
    page = show(row([MASKED, MASKED, 1.0], step=1))
    assert record(page)[0] == ["1", "\u2212∞", "0", "0", "(0, 0)"]
    assert "all scores so far are masked" in said(page)
    press(page, "Step")
    assert record(page)[1][1:4] == ["1", "0", "1"]
    assert "is that of the plain softmax, to the last digit." in said(page)
    field = page.get_by_label("Score, token 3")
    field.fill("-inf")
    assert record(page)[-1][1:] == ["\u2212∞", "", "0", "(0, 0)"]
    assert "NaN" not in page.locator(".attn-widget").inner_text()


def test_a_reader_types_a_score_or_is_told_why_not(show):
    page = show(OnlineSoftmax(step=4))
    field = page.get_by_label("Score, token 1")
    before = said(page)
    for half in ("-", "-i", "-in"):
        field.fill(half)
        assert page.locator(".attn-refusal").inner_text() == ""
        assert said(page) == before
    field.fill("-inf")
    assert said(page) != before
    field.fill("2000")
    told = "token 1: only \u22121000 to 1000 or \u2212∞ is possible; it is still \u2212∞."
    assert page.locator(".attn-refusal").text_content() == told
    field.fill("x")
    assert "“x” is not a number" in page.locator(".attn-refusal").text_content()
    press(page, "Back to the start")
    assert field.input_value() == "1"
    assert page.locator(".attn-refusal").inner_text() == ""
    assert said(page) == before
    field.press("ArrowUp")
    assert field.input_value() == "2"


def test_blocks_are_as_large_as_the_slider_says(show):
    page = show(OnlineSoftmax())
    slider = page.get_by_role("slider", name="Block size")
    for key, sizes in [("ArrowRight", [3, 3, 2]), ("End", [8]), ("Home", [1] * 8)]:
        slider.press(key)
        assert (
            page.locator(".attn-block").evaluate_all(
                "all => all.map((block) => block.querySelectorAll('input').length)"
            )
            == sizes
        )
        assert len(record(page)) == len(sizes) + 1
    slider.press("End")
    press(page, "Step")
    assert "Block 1 of 1" in said(page)
    assert "is that of the plain softmax" in said(page)


def test_it_plays_to_the_end_and_begins_anew(show):
    page = show(OnlineSoftmax(step=2))
    page.clock.install()
    press(page, "Play")
    assert page.locator("output.attn-live").get_attribute("aria-live") == "off"
    page.clock.run_for(20_000)
    assert "All blocks are read." in said(page)
    assert page.locator("output.attn-live").get_attribute("aria-live") == "polite"
    press(page, "Play")
    assert "Nothing is read yet" in said(page)
    press(page, "Pause")
    page.clock.run_for(20_000)
    assert "Nothing is read yet" in said(page)


def test_who_wants_no_motion_has_no_play(show):
    page = show(OnlineSoftmax())
    page.emulate_media(reduced_motion="reduce")
    expect(page.get_by_role("button", name="Play")).to_have_count(0)  # told a frame later
    page.set_content(page_source(OnlineSoftmax()))  # nor one that opens so
    press(page, "Step")
    assert page.get_by_role("button", name="Play").count() == 0
    assert "Block 1 of 4" in said(page)


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
