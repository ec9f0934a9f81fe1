"""QueryCompass in a real browser, without a kernel: its numbers, its planes, its controls."""

import math

import pytest
import torch
from tools.head_labs import CELLS
from tools.widget_pages import box, numbers_in, said, swipe, unfold

from attncourse.lessons.l03.figures.lookups import convex_hull
from attncourse.widgets import QueryCompass

KEYS = torch.tensor([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
VALUES = torch.tensor([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0]])


def by_chance(T, seed, scale=1.0):
    """Keys and values, [2, T, 2]."""
    return scale * torch.randn(2, T, 2, generator=torch.Generator().manual_seed(seed))


def example(text):
    return QueryCompass(KEYS, VALUES, labels=[text, "b", "c"], origin=text)


def largest(text):
    options = {"temperature": 0.00123, "query": (-1e4, 1e4)}
    return QueryCompass(*by_chance(8, 0), labels=[text] * 8, origin=text, **options)


PLACES = {"div.attn-widget > p.attn-note …", "tr > th"}
KEY = (".attn-handle", "ArrowUp")
DAMAGES = {
    "k should be 6 numbers": lambda _, buffers: buffers.clear(),
    "query should be": {"query": [1]},
    "temperature should be": {"temperature": 0},
    "goals should be": {"goals": [3]},
}


def expected(keys, values, query, temperature=1.0):
    """Torch's weights [T] and output [2] in float64."""
    query = torch.tensor(query, dtype=torch.float64)
    weights = (keys.double() @ query / (temperature * math.sqrt(2))).softmax(-1)
    return weights, weights @ values.double()


def drawn(page, name, attribute):
    """Numbers in an attribute of a drawing's parts."""
    texts = page.locator(f"svg .{name}").evaluate_all(
        "(all, attribute) => all.map((part) => part.getAttribute(attribute))", attribute
    )
    return torch.tensor([numbers_in(text.replace(",", " ")) for text in texts])


def query_of(page):
    return numbers_in(page.locator(".attn-heading").first.inner_text())


def assert_shows(page, query, temperature=1.0, keys=KEYS, values=VALUES, *, details=True):
    """Fail unless words and planes have a query, torch's weights [T] and its output [2]."""
    assert query_of(page) == list(query)
    assert numbers_in(page.locator(".attn-handle").get_attribute("aria-label"))[:2] == list(query)
    weights, output = expected(keys, values, query, temperature)
    told = [torch.tensor(numbers_in(part)).double() for part in said(page).split("; ")]
    names = page.locator(".attn-name").all_text_contents()[: len(keys)]
    told.append(torch.tensor([numbers_in(name)[-1] for name in names]).double())
    for numbers, exact in zip(told, (weights, output, weights), strict=True):
        torch.testing.assert_close(numbers, exact, atol=0.0050001, rtol=0)
    radii = drawn(page, "attn-dot", "r")[:, 0]
    areas = (13**2 * weights).clamp(min=2.5**2).float()
    torch.testing.assert_close(radii**2, areas.repeat(2), rtol=1e-4, atol=1e-4)
    places = torch.cat([drawn(page, "attn-dot", axis) for axis in ("cx", "cy")], 1)[len(keys) :]
    diamond = drawn(page, "attn-output", "transform")[0]
    torch.testing.assert_close(diamond, weights.float() @ places, rtol=1e-4, atol=1e-2)
    corners = [places[(values == corner).all(1)][0] for corner in convex_hull(values)]
    hull = drawn(page, "attn-hull", "points").view(-1, 2)
    torch.testing.assert_close(hull, torch.stack(corners), rtol=1e-4, atol=1e-2)
    if details:
        path = drawn(page, "attn-path", "points").view(-1, 2)
        scores = keys @ torch.tensor(query)
        best = scores >= scores.max() - 1e-6 * scores.abs().max()
        told = page.locator(".attn-note").last.inner_text()
        assert all((f"v{j}" in told) == (a and not best.all()) for j, a in enumerate(best.tolist()))
        ends = torch.stack([places.mean(0), places[best].mean(0)])  # of no query, of an endless one
        torch.testing.assert_close(path[[0, -1]], ends, rtol=1e-4, atol=1e-2)


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_browser_computes_what_torch_computes_of_what_it_is_given(show):
    for (keys, values), query, temperature in [
        (by_chance(8, 1), (1.5, -2.0), 0.1),
        (by_chance(5, 3, scale=60.0), (0.25, 3.5), 1.0),  # scores to +-80 and beyond
        ((torch.full((4, 2), 3.0), by_chance(4, 4)[0]), (1.0, 2.0), 1.0),  # all keys equal
        ((KEYS, VALUES), (-2.0, 0.0), 10.0),  # two keys have the largest score
        ((KEYS.double(), VALUES.T.contiguous().T), (-0.6, 1.3), 1.0),
    ]:
        page = show(QueryCompass(keys, values, query=query, temperature=temperature))
        assert_shows(page, query, temperature, keys.float(), values)
    unfold(page)
    *_, scores, weights = zip(*page.locator("tbody tr").evaluate_all(CELLS), strict=True)
    exact = (KEYS @ torch.tensor(query) / math.sqrt(2)).double()
    for column, numbers in ((scores, exact), (weights, exact.softmax(0))):
        assert numbers_in(" ".join(column)) == pytest.approx(numbers.tolist(), abs=0.00051)


def test_a_goal_says_its_weight_and_stays_reached(show):
    options = {"labels": ["a", "b", "c"], "goals": ["a", "c"], "query": (-1.0, 0.0)}
    page = show(QueryCompass(KEYS, VALUES, **options, goal_weight=0.6))
    weights, _ = expected(KEYS, VALUES, [-1.0, 0.0])
    told = page.locator(".attn-goal-weight").all_inner_texts()
    assert [*map(float, told)] == [round(float(weights[place]), 2) for place in (0, 2)]
    reached = page.locator(".attn-goal:has([aria-label='reached']) bdi")
    for keys, names in (("Right", []), ("Right", []), ("Right Right", ["a"]), ("Left " * 8, ["a"])):
        for key in keys.split():
            page.locator(".attn-handle").press(f"Shift+Arrow{key}")
        assert reached.all_inner_texts() == names  # at the second step the largest, but not enough


def test_without_details_two_planes_are_seen_at_once_on_a_small_phone_and_tell_no_answer(show):
    page = show(QueryCompass(KEYS, VALUES, query=(-0.6, 1.3), details=False), width=360)
    assert page.locator("input, button, details, .attn-path[points*=',']").count() == 0
    words = page.locator(".attn-widget").inner_text()
    assert not any(word in words for word in ("temperature", "τ", "Dashed", "mean"))
    page.locator(".attn-handle").press("Shift+ArrowRight")
    assert_shows(page, (0.4, 1.3), details=False)
    below = page.locator(".attn-plane").last.bounding_box()
    bars = 2 * 56  # of the course's pages, which stays, and a telephone's own
    assert below["y"] + below["height"] - box(page, ".attn-heading")["top"] <= 640 - bars


def test_keys_move_the_query_make_it_longer_and_change_the_temperature(show):
    page = show(QueryCompass(KEYS, VALUES, query=(0.3, 0.0), temperature=500.0))
    handle, slider = page.locator(".attn-handle"), page.get_by_role("slider", name="Temperature")
    longer, shorter = (page.get_by_role("button", name=name) for name in ("longer", "shorter"))
    page.evaluate("addEventListener('keydown', (event) => (window.lastKey = event))")
    start = [0.3, 0.0]
    assert_shows(page, start, 500.0)  # beyond the slider
    for control, keys, query, temperature in [
        (slider, "Home", start, 0.1),
        (slider, "End", start, 10.0),
        (slider, "ArrowLeft", start, 8.91),
        (handle, "ArrowLeft ArrowLeft ArrowLeft", [0.0, 0.0], 8.91),
        (longer, "Enter", [0.0, 0.0], 8.91),  # it stays 0
        (handle, "ArrowUp ArrowRight Shift+ArrowRight", [1.1, 0.1], 8.91),
        (handle, "ArrowDown Shift+ArrowDown Shift+ArrowDown", [1.1, -2.0], 8.91),
        (handle, "Shift+ArrowDown Shift+ArrowDown", [1.1, -4.0], 8.91),  # beyond the plane
        (longer, "Enter Enter Enter Enter", [1100.0, -4000.0], 8.91),  # the last does nothing
        (shorter, "Enter", [110.0, -400.0], 8.91),
        (page.get_by_role("button", name="query 0"), "Enter", [0.0, 0.0], 8.91),
    ]:
        for key in keys.split():
            control.press(key)
            # Else an arrow key would scroll the page away.
            assert control is not handle or page.evaluate("lastKey.defaultPrevented")
        assert_shows(page, query, temperature)
        assert float(slider.get_attribute("aria-valuetext")) == temperature
        assert (page.locator(".attn-cut").count() == 1) == (max(map(abs, query)) > 3)
        stopped = [button.is_disabled() for button in (longer, shorter)]
        assert stopped == [query == [0.0, 0.0] or query[0] > 1000, query == [0.0, 0.0]]


def test_the_query_is_dragged_by_its_tip(show):
    page = show(QueryCompass(KEYS, VALUES, query=(1.0, 1.0)))
    handle, live = page.locator(".attn-handle"), page.locator("output")
    frame = page.locator(".attn-frame").first.bounding_box()
    unit = (frame["width"] - 1) / 6  # from -3 to 3
    x, y = middle(handle.bounding_box())
    assert math.dist((x - unit, y + unit), middle(frame)) < 2  # (1, 1) is where it should be
    page.mouse.move(x + 5, y + 5)
    page.mouse.down()
    assert query_of(page) == [1.0, 1.0]  # grasping it moves nothing
    page.mouse.move(x + 5 - 2 * unit, y + 5 + unit)
    assert live.get_attribute("aria-live") == "off"
    assert query_of(page) == pytest.approx([-1, 0], abs=0.02)
    page.mouse.move(x - 5000, y - 5000)  # far outside, the edge is the end
    page.mouse.up()
    assert live.get_attribute("aria-live") == "polite"
    page.mouse.move(x, y)  # let go is let go
    assert query_of(page) == [-3.0, 3.0]
    page.mouse.click(x, y)  # a click in the plane brings the query there
    assert query_of(page) == pytest.approx([1, 1], abs=0.03)


def test_a_finger_drags_the_tip_taps_the_plane_and_else_scrolls(show):
    page = show(QueryCompass(KEYS, VALUES, query=(1.0, 1.0)), width=360)
    handle = page.locator(".attn-handle")
    x, y = middle(handle.bounding_box())
    page.touchscreen.tap(x - 50, y + 50)
    page.wait_for_function("document.querySelector('.attn-heading').textContent.includes('−0')")
    start = query_of(page)
    x, y = middle(handle.bounding_box())
    swipe(page, (x, y), (x + 40, y - 60))
    dragged = query_of(page)
    assert min(now - before for now, before in zip(dragged, start, strict=True)) > 0.5
    assert page.evaluate("scrollY") == 0
    swipe(page, (x, y + 60), (x, y))
    page.wait_for_function("scrollY > 0")
    assert query_of(page) == dragged
