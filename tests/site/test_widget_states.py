"""The state of an interactive figure: sent as a link, kept over a reload, begun anew."""

import base64
import json
import re

import pytest
from playwright.sync_api import expect
from tools.browsing import AT_REST, open_page
from tools.every_widget import about
from tools.small_pages import STATES


@pytest.fixture(scope="module")
def address(small_address):
    return f"{small_address}states.html"


@pytest.fixture(scope="module")
def moved(browser, address):
    """Return a page on which each figure was moved; what each showed before and then; links."""
    with open_page(browser, address) as (page, problems):
        assert not any(anew(page, name).is_visible() for name in STATES)
        starts = shown(*all_figures(page))
        after = [move(page, name)[0] for name in STATES]
        assert shown(*all_figures(page)) == [*after, starts[-1]]  # no figure moved another
        links = {name: link_to(page, name) for name in STATES}
        page.evaluate("history.replaceState(null, '', location.pathname)")
        yield page, starts, after, links
        assert problems == []


# What a figure draws: words, controls and curves, but not what it remembers of the moves before.
SHOWN = """(root) => {
  const MEMORY = ["output", "[aria-live]", "[role=status]", ".course-states",
    "div:has(.attn-change):not(:has(.attn-plot))"].flatMap((one) => [one, `${one} *`]);
  return [...root.querySelectorAll(`*:not(${MEMORY})`)].map((node) => {
    const words = node.childElementCount ? "" : node.textContent;
    const {checked, value, ariaPressed, ariaChecked, ariaSelected} = node;
    const places = ["d", "x1", "y1", "x2", "y2"].map((name) => node.getAttribute(name));
    return [words, checked, value, ariaPressed, ariaChecked, ariaSelected, places].join();
  });
}"""

# The event comes later than the address; a figure is drawn within the next frames.
FOLLOW = """(hash) => new Promise((go) => {
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(go));
  addEventListener("hashchange", () => setTimeout(drawn, 50), {once: true});
  location.hash = hash;
})"""
SPOIL = """() => addEventListener("pagehide", () => {
  for (const key of Object.keys(sessionStorage)) sessionStorage.setItem(key, "e30");
})"""


def figure(page, name):
    return page.locator(".course-widget").nth(list(STATES).index(name))


def all_figures(page):
    """Return the places of all, the second compass being the last."""
    return [page.locator(".course-widget").nth(number) for number in range(len(STATES) + 1)]


def shown(*places):
    """Return what figures show, once all of it is there: some draw the rest bit by bit."""
    for place in places:
        expect(place.locator("[aria-busy=true]")).to_have_count(0)
    return [place.evaluate(SHOWN) for place in places]


def row(page, name):
    return page.locator(".course-states").nth(list(STATES).index(name))


def refusal(page, name):
    """Return the place of a refusal, which stands before its figure while there is one."""
    return figure(page, name).locator("xpath=preceding-sibling::*[1][@class='course-refusal']")


def move(page, name):
    """Move a figure by its key; return what it shows then."""
    selector, key = about(name).KEY
    before = shown(figure(page, name))
    figure(page, name).locator(selector).first.press(key)
    after = shown(figure(page, name))
    assert before != after
    return after


def is_in_sight(page, place):
    """Return whether a place's top is in the upper part of the window, or the page at its end."""
    page.wait_for_timeout(200)
    bar = page.locator(".bd-header-article").bounding_box()
    left = page.evaluate("document.documentElement.scrollHeight - scrollY - innerHeight")
    top = place.bounding_box()["y"]
    return bar["y"] + bar["height"] < top < (900 if left < 2 else 100)


def link_to(page, name):
    row(page, name).get_by_role("button", name="Link to this state").click()
    row(page, name).get_by_text(re.compile("Copied|address bar")).wait_for()
    return page.evaluate("location.hash")


def follow(page, hash_):
    """Follow a link on the page, until its figure is drawn."""
    page.evaluate(FOLLOW, hash_)


def anew(page, name):
    return row(page, name).get_by_role("button", name="Forget my changes")


def test_a_link_shows_what_was_shown_and_moves_no_other(browser, address, moved):
    _, starts, after, links = moved
    number = [*STATES].index("head_mute")
    with open_page(browser, f"{address}{links['head_mute']}") as (page, problems):
        assert shown(*all_figures(page)) == [*starts[:number], after[number], *starts[number + 1 :]]
        assert is_in_sight(page, figure(page, "head_mute"))
        for name, then in zip(STATES, after, strict=True):  # pasted over another
            follow(page, links[name])
            assert shown(figure(page, name)) == [then]
        assert shown(*all_figures(page)) == [*after, starts[-1]]
        assert problems == []


def test_a_reload_keeps_all_and_one_press_each_brings_the_start_back(moved):
    page, starts, after, _ = moved
    figures = all_figures(page)

    def after_a_reload():
        page.reload()
        page.evaluate(AT_REST)
        return shown(*figures)

    assert after_a_reload() == [*after, starts[-1]]
    for name in STATES:
        anew(page, name).click()
        figure(page, name).locator(".attn-widget").wait_for()
        assert anew(page, name).is_hidden()
        expect(row(page, name).locator(":focus")).to_have_count(1)
    assert shown(*figures) == starts == after_a_reload()
    move(page, "query_compass")
    page.evaluate(SPOIL)  # as if the storage held nonsense
    assert after_a_reload() == starts
    row(page, "flow").get_by_role("button", name="Full screen").click()
    page.wait_for_function("document.fullscreenElement?.matches('.course-widget')")
    page.evaluate("document.exitFullscreen()")
    page.wait_for_function("document.fullscreenElement === null")


def packed(values):
    """Return the values of a link as its text."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def parts(hash_):
    """Return what stands before the values of a link, and the values."""
    head, _, text = hash_.partition("=")
    return head, json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def spoiled(hash_, **changes):
    """A link whose values are others."""
    head, values = parts(hash_)
    return f"{head}={packed(values | changes)}"


REFUSED = {
    "cut off": lambda h: h[:-5],
    "no values": lambda h: h.partition("-")[0] + "-" + h.split("-")[1],
    "a wrong kind": lambda h: spoiled(h, temperature="2"),
    "another trait": lambda h: spoiled(h, k="AAAA"),
    "too long": lambda h: h + "A" * 9000,
    "older edition": lambda h: re.sub(r"-[0-9a-f]+=", "-0123456789ab=", h),
}


def test_a_link_that_cannot_be_used_is_refused_in_place(browser, address, moved):
    _, starts, _, links = moved
    start = [starts[[*STATES].index("query_compass")]]
    link = REFUSED["cut off"](links["query_compass"])
    with open_page(browser, f"{address}{link}") as (page, problems):
        compass, told = figure(page, "query_compass"), refusal(page, "query_compass")
        words = set()
        for damage, spoil in REFUSED.items():
            if damage != "cut off":
                follow(page, spoil(links["query_compass"]))
            expect(told).to_have_count(1)
            assert shown(compass) == start, damage
            assert is_in_sight(page, told), damage
            assert told.bounding_box()["y"] < compass.bounding_box()["y"]
            words.add(told.inner_text())
            move(page, "query_compass")
            assert told.count() == 0
        assert len(words) == 3  # damaged, too long, of another edition
        anew(page, "query_compass").click()
        page.evaluate("history.replaceState(null, '', location.pathname)")
        for hash_ in ("#page", "#figure-zz-00=e30", "#figure-", "#%E0%A4%A"):  # of no figure here
            follow(page, hash_)
        assert shown(*all_figures(page)) == starts and told.count() == 0
        assert problems == []


# A link made before the figure said what was trained: its mark, values, and what is shown then.
FLOWN = {"matrix": "weights", "place": [1, 0, 0], "num_heads": 4, "causal": True}
EARLIER = ("d15cd568fd09", FLOWN | {"sequence": [1, 0]}, "4 of width 1")


def test_links_name_a_forbidden_look_and_those_of_earlier_editions_are_followed(
    browser, address, moved
):
    *_, links = moved
    with open_page(browser, address) as (page, problems):
        mark, values, words = EARLIER
        follow(page, re.sub("-[0-9a-f]+=.*", f"-{mark}={packed(values)}", links["flow"]))
        expect(figure(page, "flow")).to_contain_text(words)
        assert refusal(page, "flow").count() == 0
        assert mark not in link_to(page, "flow")

        lab, told = figure(page, "head_lab"), refusal(page, "head_lab")
        chosen = {"Forbid a look:": "verb → object", "Forbidden in": "head 1"}
        for label, value in chosen.items():
            lab.get_by_label(label).select_option(value)
        link = link_to(page, "head_lab")
        follow(page, spoiled(link, forbidden="verb>verb"))
        assert "damaged" in told.inner_text()
        follow(page, link)
        assert {label: lab.get_by_label(label).input_value() for label in chosen} == chosen

        for name in ("head_lab", "name_lab"):  # to a model that isn't trained so any more
            head, values = parts(links[name])
            assert values.pop("digest") == ""  # nothing is trained
            values |= {"trained": True, "seed": 7}
            follow(page, f"{re.sub('-[0-9a-f]+$', '-0123456789ab', head)}={packed(values)}")
            told = refusal(page, name).inner_text()
            assert "earlier edition" in told
            expect(figure(page, name).locator(".attn-progress-text")).to_contain_text("Training")
            assert refusal(page, name).inner_text() == told  # while it trains, and afterwards
            figure(page, name).get_by_role("button", name="Another seed").click()
            assert refusal(page, name).count() == 0
        assert problems == []
