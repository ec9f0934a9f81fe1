"""Pages live in Firefox and WebKit, too; tests/attncourse/browser asks each widget."""

import pytest
from tools.engines import FOCUS, wait_for
from tools.lesson_runs import all_lessons

DRAWN = """() => document.readyState === "complete" && [
  ...document.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]')
].every((view) => view.nextElementSibling?.hasChildNodes())"""
# A formula that isn't understood has no size, or shows its TeX.
WRONG_FORMULAS = """() => [...document.querySelectorAll("article .math")].filter((formula) => {
  const {width, height} = formula.getBoundingClientRect();
  const isSeen = formula.checkVisibility();
  return isSeen && !(width > 2 && height > 5 && formula.querySelector("math"));
}).map((formula) => formula.outerHTML)"""
OPEN_ALL = """() => {
  for (const fold of document.querySelectorAll("article details")) fold.open = true;
}"""
SWITCH = "[role=switch]"
# The start page, a lesson with the most formulas, one with a wide lab, and a wall.
PAGES = ["book/index", *all_lessons()[2:4], "book/museum"]


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_alive(engine, site_address, name):
    engine.open(f"{site_address}{name}.html")
    wait_for(engine, DRAWN)
    assert engine.evaluate("() => document.querySelectorAll('[role=alert]').length") == 0
    engine.evaluate(OPEN_ALL)
    assert engine.evaluate(WRONG_FORMULAS) == []
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert engine.evaluate(wide) <= 0
    if engine.evaluate("(selector) => document.querySelector(selector) !== null", SWITCH):
        assert engine.evaluate(FOCUS, SWITCH)
        engine.press("Space")
        checked = f"document.querySelector('{SWITCH}').ariaChecked"
        assert engine.evaluate(f"() => {checked}") == "true"
        engine.press("Space")
        assert engine.evaluate(f"() => {checked}") == "false"
