"""ClockHands in a real browser, without a kernel: its numbers, its hands, its controls."""

import math

import pytest
import torch
from tools.widget_pages import box, numbers_in, said, swipe

from attncourse.widgets import ClockHands
from attncourse.widgets.clock_hands.widget import LAST, WIDTHS
from attnlib.positions import RotaryPositions, sinusoidal_positions


def example(text):
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
    """The vectors of all positions for m and for n, each [64, d], as attnlib computes them."""
    if not rotary:
        return [sinusoidal_positions(LAST + 1, d, dtype=torch.float64)] * 2
    starts = ((1.0, 0.0), (0.6, 0.8))  # the pairs of a query and of a key
    given = [torch.tensor(pair * (d // 2), dtype=torch.float64) for pair in starts]
    return [RotaryPositions()(vector.expand(LAST + 1, d)) for vector in given]


def close(found, expected, within):
    torch.testing.assert_close(torch.tensor(found).double(), expected, atol=within, rtol=0)


def assert_shows(page, m, n, *, d=8, rotary=False):
    """Fail unless clocks, product and curve are those of attnlib's vectors."""
    queries, keys = vectors(d, rotary)
    product, distance = numbers_in(said(page).split("=", 1)[1])
    close(product, queries[m] @ keys[n], 0.005001)
    assert distance == m - n
    assert "\u22120.00" not in page.locator(".attn-widget").inner_text()
    for told, hands, vector in (
        (".attn-query", ".attn-wide", queries[m]),
        (".attn-key", ".attn-narrow", keys[n]),
    ):
        texts = page.locator(f".attn-clocks {told}").all_inner_texts()
        close(numbers_in(" ".join(texts)), vector, 0.005001)
        turns = page.locator(hands).evaluate_all("all => all.map((one) => one.style.transform)")
        angles = numbers_in(" ".join(turns))  # clockwise from the top
        pairs = [
            (math.cos(a), math.sin(a)) if rotary else (math.sin(a), math.cos(a)) for a in angles
        ]
        close(pairs, vector.view(-1, 2), 1e-4)
    turns = numbers_in(" ".join(page.locator(".attn-turn").all_inner_texts()))
    periods = [2 * math.pi * 10_000 ** (2 * i / d) for i in range(d // 2)]
    assert turns == [round(turn, 1 if turn < 10 else None) for turn in periods]

    points = numbers_in(page.locator("polyline").get_attribute("points").replace(",", " "))
    places, points = points[::2], points[1::2]
    by_distance = torch.cat([queries[0] @ keys.T.flip(1), queries[1:] @ keys[0]])  # -63 to 63
    zero = float(page.locator(".attn-products line").first.get_attribute("y1"))
    close([(zero - y) / zero for y in points], by_distance / (d / 2), 1e-6)
    dot = numbers_in(page.locator(".attn-products-dot").get_attribute("d"))
    assert dot[:2] == [places[LAST + m - n], points[LAST + m - n]]


@pytest.mark.parametrize("rotary", [False, True])
def test_keys_move_positions_and_both_together_leave_the_product(show, rotary):
    page = show(ClockHands(5, 33, d=4, rotary=rotary))
    m, n, width = (
        page.get_by_role("slider", name=name) for name in ("Place m", "Place n", "Width")
    )
    back, on = (page.get_by_role("button", name=name) for name in ("\u2212 both", "both +"))
    assert_shows(page, 5, 33, d=4, rotary=rotary)
    for _ in range(3):
        on.press("Enter")
    assert_shows(page, 8, 36, d=4, rotary=rotary)
    m.press("ArrowRight")
    n.press("Home")
    width.press("End")
    assert_shows(page, 9, 0, d=16, rotary=rotary)
    m.press("End")
    width.press("ArrowLeft")
    for stopped in (back, on):  # one of them stands at each end
        assert stopped.is_disabled()
        stopped.dispatch_event("click")
    assert_shows(page, LAST, 0, rotary=rotary)
    m.press("ArrowLeft")
    assert back.is_disabled() and on.is_enabled()


def test_a_finger_moves_a_hand_as_its_numbers_say_and_the_width_moves_nothing(show):
    page = show(ClockHands(1, 0, d=4), width=360)
    page.add_style_tag(content="* { transition: none !important }")
    slider = box(page, "[type=range]")
    y = slider["top"] + slider["height"] / 2
    swipe(page, (slider["left"] + 9, y), (slider["left"] + slider["width"] / 2, y))
    m = int(page.get_by_role("slider", name="Place m").input_value())
    assert 20 < m < 44
    hand, face = box(page, ".attn-clocks .attn-wide"), box(page, ".attn-clocks circle")
    right = (hand["left"] + hand["right"] - face["left"] - face["right"]) / 2
    down = (hand["top"] + hand["bottom"] - face["top"] - face["bottom"]) / 2
    assert math.atan2(right, -down) == pytest.approx(math.remainder(m, 2 * math.pi), abs=0.1)
    curve = box(page, ".attn-products")
    page.get_by_role("slider", name="Width d").press("End")
    assert box(page, ".attn-products") == curve
