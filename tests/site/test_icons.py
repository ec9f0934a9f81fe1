"""The icons of the theme that pages use are published, with their license."""

import pytest
from course.publishing import FONTS, SHEET, THEME
from fontTools.ttLib import TTFont
from tools.browsing import open_page
from tools.lesson_runs import all_pages

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


@pytest.fixture(scope="module", params=[*all_pages(), "search"])
def page(request, browser, site_address):
    """Return a page on which all is open."""
    with open_page(browser, f"{site_address}{request.param}.html") as (page, _):
        open_menus(page)
        yield page


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


def test_fonts_are_small_and_their_license_lies_beside_them(site):
    folder = site / "_static" / FONTS
    assert {path.suffix for path in folder.iterdir()} == {".woff2"}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 10_000
    license_text = (folder.parent / "LICENSE.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE" in license_text
    for path in folder.iterdir():  # which reserves its name for what wasn't changed
        names = {str(record) for record in TTFont(path)["name"].names if record.nameID in {1, 4, 6}}
        assert not any("awesome" in name.lower() for name in names)
