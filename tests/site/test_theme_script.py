"""The theme's scripts ask for no sizes of boxes, and don't search the page for what was clicked."""

from pathlib import Path

import pydata_sphinx_theme
import pytest
from theme_script import CHANGES
from tools.browsing import open_page
from tools.lesson_runs import all_lessons

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static/scripts"

COUNT_SEARCHES = """() => {
  window.searches = 0;
  const search = Document.prototype.querySelectorAll;
  Document.prototype.querySelectorAll = function (selector) {
    window.searches++;
    return search.call(this, selector);
  };
}"""


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_stands_in_the_theme_once(name):
    """In another edition it may be written otherwise: then pages are slow."""
    pattern, _ = CHANGES[name]
    assert len(pattern.findall((THEME / name).read_text(encoding="utf-8"))) == 1


@pytest.mark.parametrize("name", CHANGES)
def test_the_site_has_the_rest_of_the_script(site, name):
    pattern, instead = CHANGES[name]
    theirs = pattern.sub(instead, (THEME / name).read_text(encoding="utf-8"))
    ours = (site / "_static/scripts" / name).read_text(encoding="utf-8")
    assert not pattern.search(ours)
    assert ours[:100] == theirs[:100]
    assert 0.9 < len(ours) / len(theirs) <= 1  # source maps and logs are gone as well


def test_a_click_is_not_searched_for_and_still_opens_menus(browser, site_address):
    with open_page(browser, f"{site_address}{all_lessons()[0]}.html") as (page, problems):
        page.evaluate(COUNT_SEARCHES)
        page.locator("article h1").click()
        assert page.evaluate("searches") == 0
        menu = page.locator('.bd-header-article [data-bs-toggle="dropdown"]').first
        menu.locator("*").first.click()  # not the button itself, but what it holds
        assert menu.get_attribute("aria-expanded") == "true"
        page.locator("article h1").click()
        assert menu.get_attribute("aria-expanded") == "false"
        assert problems == []
