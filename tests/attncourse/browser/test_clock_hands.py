"""ClockHands in a real browser, without a kernel: its numbers, its hands, its controls."""

import itertools
import math
import re

import pytest
import torch

from attncourse.widgets import ClockHands
from attncourse.widgets.clock_hands.widget import LAST, WIDTHS
from attnlib.positions import RotaryPositions, sinusoidal_positions


def example(text):
    """Clocks for the tests of what every widget does: they show no text that is given."""
    return ClockHands()


def largest(text):
    return ClockHands(LAST, 0, d=max(WIDTHS), rotary=True)


PLACES = set()
KEY = ("[type=range]", "ArrowRight")
DAMAGES = {
    "position should be": {"position": 64},
    "other should be": {"other": 1.5},
    "d should be": {"d": 6},
    "rotary should be": {"rotary": "yes"},
}


def vectors(d, rotary):
    """The vectors of all positions for p and for q, each [64, d], as attnlib computes them."""
    if not rotary:
        return [sinusoidal_positions(LAST + 1, d, dtype=torch.float64)] * 2
    starts = ((1.0, 0.0), (0.6, 0.8))  # the pairs of a query and of a key
    given = [torch.tensor(pair * (d // 2), dtype=torch.float64) for pair in starts]
    return [RotaryPositions()(vector.expand(LAST + 1, d)) for vector in given]


def product(p, q, d=8, rotary=False):
    queries, keys = vectors(d, rotary)
    return (queries[p] @ keys[q]).item()


ANGLES = """({last, d, rotary}) => {
  const {anglesOf, pairsOf} = attnModules["clock_hands/widget.js"];
  return Array.from({length: last + 1}, (_, p) =>
    anglesOf({position: p, other: p, d, rotary}).map((angles) => pairsOf(angles, rotary).flat()));
}"""


def test_the_browser_computes_what_attnlib_computes(show):
    page = show(ClockHands())
    for d, rotary in itertools.product(WIDTHS, (False, True)):
        computed = page.evaluate(ANGLES, {"last": LAST, "d": d, "rotary": rotary})
        computed = torch.tensor(computed, dtype=torch.float64)  # [64, 2, d]
        torch.testing.assert_close(computed, torch.stack(vectors(d, rotary), dim=1))


def said(page):
    """The dot product and the distance that the page tells."""
    text = page.locator("output").first.inner_text().replace("\u2212", "-")
    return [float(n) for n in re.findall(r"-?\d*\.?\d+", text.split("=", 1)[1])]


def assert_says(page, p, q, **options):
    number, distance = said(page)
    assert abs(number - product(p, q, **options)) <= 0.005001
    assert distance == p - q


def turned(page, name):
    """The angles of the hands that are drawn."""
    texts = page.locator(name).evaluate_all("all => all.map((hand) => hand.style.transform)")
    return [float(re.search(r"rotate\((.*)rad\)", text)[1]) for text in texts]


def test_hands_and_numbers_are_those_of_the_positions(show):
    page = show(ClockHands(5, 2, d=4))
    assert_says(page, 5, 2, d=4)
    assert turned(page, ".attn-wide") == pytest.approx([5, 0.05])
    assert turned(page, ".attn-narrow") == pytest.approx([2, 0.02])
    told = page.locator(".attn-clocks .attn-query").all_inner_texts()
    assert told == ["\u22120.96 0.28", "0.05 1.00"]
    assert page.locator(".attn-turn").all_inner_texts() == ["turn: 6.3", "turn: 628"]


def test_a_hand_points_to_the_right_and_up_as_its_numbers_say(show):
    page = show(ClockHands(2, 0, d=4))
    page.add_style_tag(content="* { transition: none !important }")
    wide, face = (page.locator(f".attn-clocks {name}").first for name in (".attn-wide", "circle"))
    hand, around = wide.bounding_box(), face.bounding_box()
    center = [around["x"] + around["width"] / 2, around["y"] + around["height"] / 2]
    # At angle 2, to the right (sin 2 > 0) and downward (cos 2 < 0).
    assert hand["x"] + hand["width"] / 2 > center[0]
    assert hand["y"] + hand["height"] / 2 > center[1]
    ratio = hand["height"] / hand["width"]
    assert ratio == pytest.approx(abs(math.cos(2) / math.sin(2)), abs=0.15)


@pytest.mark.parametrize("rotary", [False, True])
def test_both_together_leave_the_dot_product_as_it_is(show, rotary):
    page = show(ClockHands(3, 1, rotary=rotary))
    before = said(page)
    for _ in range(3):
        page.get_by_role("button", name="both +").click()
    assert said(page) == before
    assert_says(page, 6, 4, rotary=rotary)
    page.get_by_role("slider", name="Place m").press("ArrowRight")
    assert said(page) != before
    assert_says(page, 7, 4, rotary=rotary)
    assert page.locator(".attn-clocks svg").count() == 4
    page.get_by_role("slider", name="Width").press("End")
    assert page.locator(".attn-clocks svg").count() == 8
    assert_says(page, 7, 4, d=16, rotary=rotary)
    assert ("query" in page.locator(".attn-note").inner_text()) == rotary


def test_nothing_moves_beyond_the_ends(show):
    page = show(ClockHands(3, 0))
    back = page.get_by_role("button", name="\u2212 both")
    assert back.is_disabled()
    back.dispatch_event("click")
    assert_says(page, 3, 0)
    page.get_by_role("slider", name="Place m").press("End")
    page.get_by_role("slider", name="Place n").press("ArrowRight")
    assert_says(page, LAST, 1)
    assert page.get_by_role("button", name="both +").is_disabled()
    assert not back.is_disabled()


@pytest.mark.parametrize("rotary", [False, True])
def test_the_curve_is_the_product_at_each_distance(show, rotary):
    page = show(ClockHands(5, 30, rotary=rotary))
    [points] = [line.get_attribute("points") for line in page.locator("polyline").all()]
    drawn = [float(point.split(",")[1]) for point in points.split()]
    queries, keys = vectors(8, rotary)
    expected = torch.cat([queries[0] @ keys.T.flip(1), queries[1:] @ keys[0]])  # -63 to 63
    zero, one = (float(page.locator(".attn-products line").first.get_attribute("y1")), drawn[LAST])
    scale = (zero - one) / expected[LAST]
    torch.testing.assert_close(torch.tensor(drawn, dtype=torch.float64), zero - scale * expected)
    dot = page.locator(".attn-products-dot").get_attribute("d")
    assert float(re.findall(r"[\d.]+", dot)[1]) == drawn[LAST + 5 - 30]


@pytest.mark.parametrize("width", [360, 722])
def test_few_clocks_are_large_and_the_width_moves_nothing(show, width):
    page = show(ClockHands(5, 2, d=4), width=width)
    clocks, curve = page.locator(".attn-clocks"), page.locator(".attn-products")
    size, place = clocks.locator("svg").first.bounding_box()["width"], curve.bounding_box()
    assert 2 * size > clocks.bounding_box()["width"] / 2
    for _ in WIDTHS[1:]:
        page.get_by_role("slider", name="Width d").press("ArrowRight")
        assert curve.bounding_box() == place
    assert clocks.locator("svg").first.bounding_box()["width"] < size
