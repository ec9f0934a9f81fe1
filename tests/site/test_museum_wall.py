"""The museum is a wall of cards; one exhibit at a time is open, and every link to one opens it."""

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
        page.locator("details", has=page.locator(f'a[href="#{first}"]')).first.click()
        page.locator(f'li a[href="#{first}"]').first.click()  # of the symptoms
        page.wait_for_function(f"location.hash === '#{first}'")
        assert opened(page) == [first] and problems == []


def test_without_a_script_and_on_paper_all_exhibits_stand_open(browser, address):
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    assert page.locator(".course-wall").count() == 0
    assert page.locator(f"{EXHIBITS} >> visible=true").count() == len(museum.EXHIBITS)
    page.close()
    with open_page(browser, address) as (page, _):
        page.emulate_media(media="print")
        assert len(opened(page)) == len(museum.EXHIBITS)
        assert not page.locator(".course-wall").first.is_visible()


def test_an_address_that_leads_nowhere_opens_nothing_and_raises_nothing(browser, address):
    with open_page(browser, f"{address}#%") as (page, problems):
        assert opened(page) == [] and problems == []
