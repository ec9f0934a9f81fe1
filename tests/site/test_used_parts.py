"""Of what others made for any page the site publishes what its own pages use: icons and rules."""

import re
from gzip import compress
from importlib.resources import files

import pytest
from fontTools.ttLib import TTFont
from icons import FONTS, SHEET, THEME
from tools.browsing import open_page, switch_theme
from tools.lesson_runs import all_pages
from tools.site_builds import build, small_project

# Of every element and what its style puts before and after it: what the icons' fonts are to draw.
# An icon whose rule is missing has no content.
ICONS = r"""() => {
  const icons = [];
  for (const element of document.querySelectorAll("*"))
    for (const side of ["::before", "::after"]) {
      const styles = getComputedStyle(element, side); // of which each is computed when asked for
      const {content} = styles;
      const isIcon = side === "::before" && element.matches('[class^="fa-"], [class*=" fa-"]');
      if (isIcon || (/^"/.test(content) && /Font Awesome/.test(styles.fontFamily)))
        icons.push([element.className, styles.fontFamily, styles.fontWeight, content]);
    }
  return icons;
}"""

DESIGNS = "sphinx-design.min.css"
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")


def classes_in(sheet):
    """Return the classes that a sheet speaks of, with words that look like one."""
    return set(CLASS.findall(sheet))


def open_menus(page):
    """Open all that opens on a page: its menus, folds and the search."""
    for button in page.locator(".dropdown > button:visible").all():
        button.click()
    page.locator("details").evaluate_all("folds => { for (const f of folds) f.open = true; }")
    page.keyboard.press("Control+k")


def fonts_of(static):
    """Return what each font draws: {(brands, weight): characters}."""
    drawn = {}
    for path in (static / FONTS).glob("*.woff2"):
        _, family, weight = path.stem.split("-")
        characters = {chr(code) for code in TTFont(path).getBestCmap()}
        drawn[family == "brands", weight] = characters
    return drawn


@pytest.fixture(scope="module")
def sheets(site):
    """Return the sheets of the theme, of designs and of notebooks: as they came, as published."""
    came = {
        SHEET: THEME / SHEET,
        DESIGNS: files("sphinx_design") / "static" / DESIGNS,
        "mystnb.*.css": files("myst_nb") / "static" / "mystnb.css",
    }
    published = [next((site / "_static").glob(str(pattern))) for pattern in came]
    return [
        [sheet.read_text(encoding="utf-8") for sheet in pair]
        for pair in zip(came.values(), published, strict=True)
    ]


def test_most_rules_are_left_out(sheets):
    came, published = map("".join, zip(*sheets, strict=True))
    assert {"row-cols-2", "sd-row-cols-2", "-Color-Bold"} <= classes_in(came)
    assert not {"row-cols-2", "sd-row-cols-2", "-Color-Bold"} & classes_in(published)
    assert 2 * len(compress(published.encode(), 6)) < len(compress(came.encode(), 6))


# The selectors that are left out and yet have an element on the page; what comes and goes, such as
# what the pointer is over, counts as there. The browser tells selectors apart, not our extension.
MISSED = r"""(sheets) => {
  const BETWEEN = /,\s*(?![^()]*\))/;
  const AT_TIMES = /:(hover|focus|focus-visible|focus-within|active|target|checked)(?![\w-])/g;
  const PARTS = /:(before|after)|::[\w-]+/g;
  function look(rules, found) {
    for (const {selectorText, cssRules} of rules) {
      for (const selector of selectorText?.split(BETWEEN) ?? []) found.add(selector);
      if (cssRules) look(cssRules, found);
    }
    return found;
  }
  function selectorsOf(text) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return look(sheet.cssRules, new Set());
  }
  const always = (selector) => selector.replace(PARTS, "").replace(AT_TIMES, ":not(.none)");
  const isThere = (selector) => document.querySelector(always(selector) || "*");
  const left = sheets.flatMap(([came, published]) => {
    const kept = selectorsOf(published);
    return [...selectorsOf(came)].filter((selector) => !kept.has(selector));
  });
  return [left.length, left.filter(isThere)];
}"""


@pytest.fixture(scope="module", params=[*all_pages(), "search"])
def page(request, browser, site_address):
    """Return a page on which all is open."""
    with open_page(browser, f"{site_address}{request.param}.html") as (page, _):
        open_menus(page)
        yield page


def test_no_rule_that_a_page_can_use_is_left_out(page, sheets):
    for _ in ("light", "dark"):
        switch_theme(page)
        left, missed = page.evaluate(MISSED, sheets)
        assert left > 2000
        assert missed == []


def test_each_icon_of_a_page_is_in_its_font(page, site):
    fonts = fonts_of(site / "_static")
    icons = page.evaluate(ICONS)
    page.add_style_tag(content=(THEME / SHEET).read_text(encoding="utf-8"))
    assert icons == page.evaluate(ICONS)  # with the theme's own rules
    assert len(icons) > 5
    for name, family, weight, content in icons:
        characters = set(content.strip('"'))
        assert content.startswith('"'), f"{name} has no icon"
        lacking = characters - fonts["Brands" in family, weight]
        assert not lacking, f"{name}: {family} {weight} lacks {sorted(map(ascii, lacking))}"


def test_what_is_used_later_is_there(tmp_path):
    project = small_project(tmp_path / "project", {"index": "# Page\n\nText.\n"})
    static = project / "_build/html/_static"
    rules = {SHEET: "fa-rocket", DESIGNS: "sd-badge"}

    def built():
        result = build(project, project, "-W", "--keep-going")
        assert result.returncode == 0, result.stderr
        found = [rules[name] in classes_in((static / name).read_text()) for name in rules]
        return [*found, "\uf135" in fonts_of(static)[False, "900"]]

    assert built() == [False, False, False]
    text = "# Page\n\n{fas}`rocket` {bdg}`new`\n"
    (project / "book/index.md").write_text(text, encoding="utf-8")
    assert built() == [True, True, True]
