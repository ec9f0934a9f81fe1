"""The museum is a wall of cards; one exhibit at a time is open, and every link to one opens it."""

from base64 import b64decode
from struct import unpack_from

import pytest
from tools.browsing import open_page

from attndoctor import museum

EXHIBITS = 'article section:has(> [id^="exhibit-"])'


@pytest.fixture
def address(site_address):
    return f"{site_address}book/museum.html"


def opened(page):
    """Return the anchors of the exhibits that can be seen."""
    return page.locator(f"{EXHIBITS} h3").evaluate_all(
        "all => all.filter(h => h.checkVisibility({contentVisibilityAuto: true}))"
        ".map(h => h.parentElement.querySelector('[id]').id)"
    )


def test_every_exhibit_has_a_card_and_one_is_open_at_a_time(browser, address):
    first, second = (exhibit.anchor for exhibit in museum.EXHIBITS[:2])
    with open_page(browser, f"{address}#{second}") as (page, problems):
        cards = page.locator(".course-wall a").evaluate_all("all => all.map(a => a.hash.slice(1))")
        assert sorted(cards) == sorted(exhibit.anchor for exhibit in museum.EXHIBITS)
        assert opened(page) == [second]
        card = page.locator(f'.course-wall a[href="#{first}"]')
        card.click()
        page.wait_for_function(f"location.hash === '#{first}'")
        assert opened(page) == [first] and card.get_attribute("aria-expanded") == "true"
        page.go_back()
        page.wait_for_function(f"location.hash === '#{second}'")
        assert opened(page) == [second]
        page.locator(f'.course-wall a[href="#{second}"]').press("Enter")
        assert opened(page) == []
        page.locator(f'.course-wall a[href="#{second}"]').press("Enter")  # the address is the same
        assert opened(page) == [second]
        page.locator(f'article p a[href="#{first}"]').first.click()  # of another symptom
        page.wait_for_function(f"location.hash === '#{first}'")
        assert opened(page) == [first] and problems == []


def test_back_leads_to_where_the_reader_was_and_forward_opens_the_exhibit_again(browser, address):
    anchor = museum.EXHIBITS[-1].anchor
    with open_page(browser, f"{address}#%") as (page, problems):
        assert opened(page) == []  # that address leads nowhere
        page.goto(address)
        card = page.locator(f'.course-wall a[href="#{anchor}"]')
        card.scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        card.click()
        page.wait_for_function(f"location.hash && scrollY !== {before}")
        page.go_back()
        page.wait_for_function(f"!location.hash && scrollY === {before}")
        assert opened(page) == []
        page.go_forward()
        page.wait_for_function(f"location.hash && scrollY !== {before}")
        assert opened(page) == [anchor]
        page.locator(".course-back >> visible=true").click()
        page.wait_for_function(f"location.hash !== '#{anchor}'")
        assert opened(page) == [] and problems == []


def test_an_opened_exhibit_leads_from_its_head_to_its_neighbors_and_back(browser, address):
    with open_page(browser, address) as (page, problems):
        wall = page.locator(".course-wall").first
        cards = wall.locator("a").evaluate_all("all => all.map(a => a.hash.slice(1))")
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


def test_a_card_shows_maps_alone_says_what_they_show_and_is_not_on_paper(browser, address):
    with open_page(browser, address) as (page, _):
        cards = page.locator(".course-wall svg").evaluate_all(
            "all => all.map(svg => [svg.ariaLabel, "
            "[...svg.querySelectorAll('image')].map(map => map.href.baseVal.split(',')[1])])"
        )
        page.emulate_media(media="print")  # all of them stand open on paper
        assert len(opened(page)) == len(museum.EXHIBITS)
        assert not page.locator(".course-wall").first.is_visible()
    assert len(cards) == len(museum.EXHIBITS) and all(words for words, _ in cards)
    for _, maps in cards:
        sides = [unpack_from(">II", b64decode(picture), 16) for picture in maps]  # of a PNG
        assert sides and max(map(max, sides)) <= 8  # one picture element per cell, no color bar
    alone = [words for words, maps in cards if len(maps) == 1]
    assert len(alone) == 1  # where the broken one is an error


def test_without_a_script_all_exhibits_stand_open(browser, address):
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    assert page.locator(".course-wall a >> visible=true").count() == len(museum.EXHIBITS)
    assert page.locator(f"{EXHIBITS} >> visible=true").count() == len(museum.EXHIBITS)
    page.close()
