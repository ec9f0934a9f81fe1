"""The theme's own scripts are at work: listings are copied, words that were searched for marked."""

import pytest
from tools.browsing import open_page
from tools.lesson_runs import all_lessons


@pytest.fixture
def lesson(site_address):
    return f"{site_address}{all_lessons()[0]}.html"


def test_each_listing_gets_one_button_that_copies_it(browser, lesson):
    with open_page(browser, lesson) as (page, problems):
        listings = page.locator("div.highlight pre")
        assert page.locator("button.copybtn").count() == listings.count() > 3
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        seen = page.locator("div.highlight:has(pre:visible)").first
        seen.hover()
        seen.locator("button.copybtn").click()
        page.locator("button.copybtn.success").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.split() == seen.locator("pre").text_content().split()
        assert problems == []


def test_a_word_that_was_searched_for_is_marked(browser, lesson):
    with open_page(browser, f"{lesson}?highlight=token") as (page, _):
        page.locator("article .highlighted").first.wait_for(state="attached")
        assert "highlight" not in page.url


def test_the_search_marks_its_words(browser, site_address):
    with open_page(browser, f"{site_address}search.html?q=softmax") as (page, problems):
        page.locator("#search-results .highlighted").first.wait_for()
        assert problems == []
