"""The state of an interactive figure: sent as a link, kept over a reload, begun anew."""

import base64
import contextlib
import json
import re

import pytest
from playwright.sync_api import expect
from tools.browsing import AT_REST, open_page
from tools.every_widget import NAMES, about
from tools.small_pages import STATES


@pytest.fixture
def open_at(browser, small_address):
    """Return a function that opens the page at a hash in a browser of its own."""
    with contextlib.ExitStack() as stack:
        found = []

        def open_hash(hash_=""):
            address = f"{small_address}states.html{hash_}"
            page, problems = stack.enter_context(open_page(browser, address))
            found.append(problems)
            return page

        yield open_hash
        assert not any(found)


@pytest.fixture(scope="module")
def moved(browser, small_address):
    """Return a page on which each figure was moved; what each showed before and then; links."""
    with open_page(browser, f"{small_address}states.html") as (page, problems):
        for name in STATES:
            assert anew(page, name).is_hidden()
        starts = shown(*all_figures(page))
        after = [move(page, name)[0] for name in STATES]
        assert shown(*all_figures(page)) == [*after, starts[-1]]  # no figure moved another
        links = {name: link_to(page, name) for name in STATES}
        page.evaluate("history.replaceState(null, '', location.pathname)")
        yield page, starts, after, links
        assert problems == []


# What a figure draws, without where the focus was and what it remembers of the moves before.
SHOWN = """(root) => {
  const drawn = root.cloneNode(true);
  const MEMORY = "output, [aria-live], [role=status], div:has(.attn-change):not(:has(.attn-plot))";
  drawn.querySelector(".course-states").remove();
  // What scrolls, if only for a moment, is in reach of keys and has a name.
  for (const box of drawn.querySelectorAll(".attn-scroll"))
    for (const name of ["role", "aria-label"]) box.removeAttribute(name);
  for (const node of drawn.querySelectorAll(MEMORY)) node.remove();
  const FOCUS = ["style", "class", "tabindex", "data-lm-suppress-shortcuts"];
  for (const node of drawn.querySelectorAll("*"))
    for (const name of [...FOCUS, "aria-disabled", "hidden"]) node.removeAttribute(name);
  const inputs = [...root.querySelectorAll("input")];
  return [drawn.innerHTML, ...inputs.map(({checked, value}) => `${checked} ${value}`)];
}"""


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
    """Return the place of a refusal, which stands before its figure only while there is one."""
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


def test_each_figure_is_asked():
    assert {*STATES, "predict", "answer"} == {*NAMES}


def anew(page, name):
    return row(page, name).get_by_role("button", name="Forget my changes")


@pytest.mark.parametrize("name", STATES)
def test_a_link_shows_what_was_shown_and_moves_no_other(open_at, moved, name):
    _, starts, after, links = moved
    number = [*STATES].index(name)
    linked = open_at(links[name])
    expected = [*starts[:number], after[number], *starts[number + 1 :]]
    assert shown(*all_figures(linked)) == expected
    assert is_in_sight(linked, figure(linked, name))


def test_a_reload_keeps_all_and_one_press_each_brings_the_start_back(moved):
    page, starts, after, _ = moved
    figures = all_figures(page)

    def reload():
        page.reload()
        page.evaluate(AT_REST)

    reload()
    assert shown(*figures) == [*after, starts[-1]]
    for name in STATES:
        anew(page, name).click()
        figure(page, name).locator(".attn-widget").wait_for()
        assert anew(page, name).is_hidden()
    assert shown(*figures) == starts
    reload()
    assert shown(*figures) == starts


def test_a_link_that_is_pasted_over_another_is_followed(open_at):
    page = open_at()
    once = move(page, "query_compass")
    first = link_to(page, "query_compass")
    move(page, "query_compass")
    assert link_to(page, "query_compass") != first
    page.evaluate("hash => { location.hash = hash; }", first)
    page.wait_for_timeout(100)
    assert shown(figure(page, "query_compass")) == once


def packed(values):
    """Return the values of a link as its text."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def parts(hash_):
    """Return what stands before the values of a link, and the values."""
    head, _, text = hash_.partition("=")
    return head, json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def older(head, values):
    """Return a link of an edition that had another mark."""
    return f"{re.sub('-[0-9a-f]+$', '-0123456789ab', head)}={packed(values)}"


# Links made before these two said what was trained: their mark, values, and what is shown then.
EXPLORED = {"source": 0, "num_heads": 6, "causal": True, "to_largest": False, "head": 5}
EXPLORED |= {"pinned": -1, "token": 0, "sentence": []}
FLOWN = {"matrix": "weights", "place": [1, 0, 0], "num_heads": 4, "causal": True}
FLOWN |= {"sequence": [1, 0]}
EARLIER_LINKS = {
    "head_explorer": ("06c380b154d3", EXPLORED, "6 heads of width 8"),
    "flow": ("d15cd568fd09", FLOWN, "4 of width 1"),
}


@pytest.mark.parametrize("name", EARLIER_LINKS)
def test_a_link_made_before_trainings_were_told_is_followed(open_at, moved, name):
    mark, values, words = EARLIER_LINKS[name]
    linked = open_at(re.sub("-[0-9a-f]+=.*", f"-{mark}={packed(values)}", moved[-1][name]))
    expect(figure(linked, name)).to_contain_text(words)
    assert refusal(linked, name).count() == 0
    assert mark not in link_to(linked, name)


def spoiled(hash_, **changes):
    """A link whose values are others."""
    head, values = parts(hash_)
    return f"{head}={packed(values | changes)}"


REFUSED = {
    "cut off": lambda h: h[:-5],
    "no values": lambda h: h.partition("-")[0] + "-" + h.split("-")[1],
    "no base64": lambda h: h.partition("=")[0] + "=%%%",
    "no such number": lambda h: spoiled(h, query=[1e400, 0]),
    "a wrong kind": lambda h: spoiled(h, temperature="2"),
    "null": lambda h: spoiled(h, query=None),
    "another trait": lambda h: spoiled(h, k="AAAA"),
    "too long": lambda h: h + "A" * 9000,
    "older edition": lambda h: re.sub(r"-[0-9a-f]+=", "-0123456789ab=", h),
}


def test_a_link_that_cannot_be_used_is_refused_in_place(open_at, moved):
    """Be it opened, or followed on the page."""
    _, starts, _, links = moved
    start = [starts[[*STATES].index("query_compass")]]
    page = open_at(REFUSED["cut off"](links["query_compass"]))
    compass, told = figure(page, "query_compass"), refusal(page, "query_compass")
    words = set()
    for damage, spoil in REFUSED.items():
        page.evaluate("hash => { location.hash = hash; }", spoil(links["query_compass"]))
        expect(told).to_have_count(1)
        assert shown(compass) == start, damage
        assert is_in_sight(page, told), damage
        assert told.bounding_box()["y"] < compass.bounding_box()["y"]
        words.add(told.inner_text())
        move(page, "query_compass")
        assert told.count() == 0
    assert len(words) == 3  # damaged, too long, of another edition


@pytest.mark.parametrize("name", ["head_lab", "name_lab"])
def test_a_link_to_a_model_of_an_earlier_edition_is_followed_and_told(open_at, moved, name):
    head, values = parts(moved[-1][name])
    assert values.pop("digest") == ""  # nothing is trained
    values |= {"trained": True, "seed": 7}
    linked = open_at(older(head, values))
    told = refusal(linked, name).inner_text()
    assert "earlier edition" in told
    progress = figure(linked, name).locator(".attn-progress-text")
    expect(progress).to_contain_text("Training")
    assert refusal(linked, name).inner_text() == told  # while it trains, and afterwards
    figure(linked, name).get_by_role("button", name="Another seed").click()
    assert refusal(linked, name).count() == 0


def test_a_link_made_before_looks_were_forbidden_is_followed(open_at, moved):
    _, _, after, links = moved
    head, values = parts(links["head_lab"])
    assert values.pop("forbidden") == "" and values.pop("forbidden_in") is None
    linked = open_at(older(head, values))
    assert shown(figure(linked, "head_lab")) == [after[[*STATES].index("head_lab")]]
    assert refusal(linked, "head_lab").count() == 0


def test_a_link_names_the_look_that_is_forbidden(open_at):
    page = open_at()
    figure(page, "head_lab").get_by_label("Forbid a look:").select_option("verb → object")
    figure(page, "head_lab").get_by_label("Forbidden in").select_option("head 1")
    link = link_to(page, "head_lab")
    linked = figure(open_at(link), "head_lab")
    assert linked.get_by_label("Forbid a look:").input_value() == "verb → object"
    assert linked.get_by_label("Forbidden in").input_value() == "head 1"
    refused = open_at(spoiled(link, forbidden="verb>verb"))
    assert "damaged" in refusal(refused, "head_lab").inner_text()


def test_a_link_to_another_place_or_page_changes_nothing(open_at, moved):
    starts = moved[1]
    for hash_ in ("#page", "#figure-zz-00=e30", "#figure-", "#%E0%A4%A"):
        linked = open_at(hash_)
        assert shown(*all_figures(linked)) == starts
        assert not any(linked.locator(".course-states [role=status]").all_inner_texts())
        assert not linked.locator(".course-refusal:visible").count()


def test_a_storage_that_holds_nonsense_is_as_if_it_were_empty(open_at):
    page = open_at()
    start = shown(figure(page, "query_compass"))
    move(page, "query_compass")
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    page.evaluate("""() => {
      addEventListener("pagehide", () => {
        for (const key of Object.keys(sessionStorage)) sessionStorage.setItem(key, "e30");
      });
    }""")
    page.reload()
    figure(page, "query_compass").locator(".attn-widget").wait_for()
    assert shown(figure(page, "query_compass")) == start


def test_a_figure_fills_the_screen_and_comes_back(open_at):
    page = open_at()
    row(page, "flow").get_by_role("button", name="Full screen").click()
    page.wait_for_function("document.fullscreenElement?.matches('.course-widget')")
    page.evaluate("document.exitFullscreen()")
    page.wait_for_function("document.fullscreenElement === null")
