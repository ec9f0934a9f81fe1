"""The museum is a wall of cards; one exhibit at a time is open, and every link to one opens it."""

from base64 import b64decode
from struct import unpack_from

import pytest
from tools.browsing import open_page
from tools.site_builds import read

from attndoctor import museum

EXHIBITS = 'article section:has(> [id^="exhibit-"])'
ANCHORS = "all => all.map(a => a.hash.slice(1))"


@pytest.fixture
def address(site_address):
    return f"{site_address}book/museum.html"


def opened(page):
    """Return the anchors of the exhibits that can be seen."""
    return page.locator(f"{EXHIBITS} h3").evaluate_all(
        "all => all.filter(h => h.checkVisibility({contentVisibilityAuto: true}))"
        ".map(h => h.parentElement.querySelector('[id]').id)"
    )


def test_one_exhibit_is_open_at_a_time_by_its_card_a_link_the_history_or_its_neighbors(
    browser, address
):
    first, second = (exhibit.anchor for exhibit in museum.EXHIBITS[:2])
    with open_page(browser, address) as (page, problems):
        assert opened(page) == []
        card, other = (page.locator(f'.course-wall a[href="#{name}"]') for name in (second, first))
        card.scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        card.click()
        page.wait_for_function(f"location.hash === '#{second}' && scrollY !== {before}")
        assert opened(page) == [second]
        page.go_back()  # to where the reader was
        page.wait_for_function(f"!location.hash && scrollY === {before}")
        assert opened(page) == []
        page.go_forward()
        page.wait_for_function(f"location.hash && scrollY !== {before}")
        assert opened(page) == [second]
        other.click()
        page.wait_for_function(f"location.hash === '#{first}'")
        assert opened(page) == [first] and other.get_attribute("aria-expanded") == "true"
        other.press("Enter")
        assert opened(page) == []
        other.press("Enter")  # the address is the same
        assert opened(page) == [first]
        page.reload()
        assert opened(page) == [first]
        page.locator(f'article p a[href="#{second}"]').first.click()  # of another symptom
        page.wait_for_function(f"location.hash === '#{second}'")
        assert opened(page) == [second]

        wall = page.locator(".course-wall").first
        cards = wall.locator("a").evaluate_all(ANCHORS)
        ways = page.locator(".course-ways >> visible=true")
        wall.locator("a").nth(-3).press("Enter")
        for words, anchor in (("Next", cards[-2]), ("Next", cards[-1]), ("Previous", cards[-2])):
            if words == "Previous":
                assert not ways.get_by_text("Next").is_visible()
            ways.get_by_text(words).press("Enter")
            page.wait_for_function(f"location.hash === '#{anchor}'")
            assert opened(page) == [anchor]
        ways.get_by_text("Back").click()
        page.wait_for_function(f"location.hash !== '#{cards[-2]}'")
        assert opened(page) == [] and problems == []


def test_every_exhibit_has_a_card_of_maps_alone_and_on_paper_or_without_a_script_stands_open(
    browser, address, site
):
    page = browser.new_page()
    page.goto(address)
    anchors = page.locator(".course-wall a").evaluate_all(ANCHORS)
    assert sorted(anchors) == sorted(exhibit.anchor for exhibit in museum.EXHIBITS)
    cards = page.locator(".course-wall svg").evaluate_all(
        "all => all.map(svg => [svg.ariaLabel, "
        "[...svg.querySelectorAll('image')].map(map => map.href.baseVal.split(',')[1])])"
    )
    page.emulate_media(media="print")
    assert len(opened(page)) == len(museum.EXHIBITS)
    assert not page.locator(".course-wall").first.is_visible()
    page.close()
    museum_page = read(site / "book/museum.html")
    for (_, maps), card in zip(cards, museum_page.select(".course-wall a"), strict=True):
        exhibit = museum_page.find(id=card["href"][1:]).find_parent("section")
        figure = (site / "book" / exhibit.select("img.only-light")[-1]["src"]).read_text("utf-8")
        places = [figure.replace("\n", "").index(picture) for picture in maps]
        assert places == sorted(places), card["href"]  # right, then broken
    assert len(cards) == len(museum.EXHIBITS) and all(words for words, _ in cards)
    for _, maps in cards:
        sides = [unpack_from(">II", b64decode(picture), 16) for picture in maps]  # of a PNG
        assert sides and max(map(max, sides)) <= 8  # one picture element per cell, no color bar
    assert [len(maps) for _, maps in cards].count(1) == 1  # where the broken one is an error
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    assert page.locator(".course-wall a >> visible=true").count() == len(museum.EXHIBITS)
    assert page.locator(f"{EXHIBITS} >> visible=true").count() == len(museum.EXHIBITS)
    page.close()
