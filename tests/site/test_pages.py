"""Every page in a real browser: light and dark, desktop and phone."""

from functools import cache
from pathlib import Path
from urllib.parse import urljoin

import pytest
from fontTools.ttLib import TTFont
from tools import ROOT
from tools.browsing import (
    AT_REST,
    audit,
    open_page,
    switch_theme,
    violations_on,
)
from tools.lesson_runs import all_lessons, all_notebooks, all_pages
from tools.site_builds import read

FONTS = Path("vendor/fontawesome/webfonts")
PAGES = [*all_pages(), "search"]
# A page opened in one theme is looked at in both: the reader presses the button. axe-core, which
# is slow, sees it in the other theme: every page in the light of a desktop and the dark of a phone.
# What stands around a page on a wide screen is the same on all, so one shows it in the dark.
# A desktop opens pages from their folder, but the search; a phone asks a server.
LOOKS = [look for page in PAGES for look in ((page, "dark", 1280), (page, "light", 360))]
LOOKS.append((PAGES[0], "light", 1280))
NOTHING_WIDE = {"book/L02_Embeddings_and_Positions"}  # its widgets have no map and no table


# Of each box that is painted apart and clips nothing itself: what in it comes within 4 pixels of
# its edge, where a frame around what has the focus would be cut off, or leaves it.
CUT_OFF = """() => {
  const isApart = (box) => getComputedStyle(box).contain.includes("paint");
  const clips = (box) => getComputedStyle(box).overflow !== "visible";
  const found = [];
  function look(node, edge) {
    for (const child of node.children) {
      const {left, right, width, height} = child.getBoundingClientRect();
      const isSeen = width * height > 0 && child.checkVisibility();
      if (isSeen && (left < edge.left + 4 || right > edge.right - 4)) found.push(child.outerHTML);
      if (!clips(child) && child.localName !== "svg") look(child, edge);
    }
  }
  const boxes = [...document.querySelectorAll(".bd-article *")].filter(isApart);
  for (const box of boxes) if (!clips(box)) look(box, box.getBoundingClientRect());
  const isWidget = (box) => box.matches(".attn-widget");
  const widgets = document.querySelectorAll(".attn-widget").length;
  return [widgets - boxes.filter(isWidget).length, found];
}"""


# How many copy buttons are seen, and which of them lie on code or its results.
COPY_BUTTONS = """() => {
  const isSeen = (node) => node.checkVisibility({visibilityProperty: true});
  const codes = [...document.querySelectorAll("article .cell pre")].filter(isSeen);
  const isOn = (button) => codes.some((code) => {
    const [one, other] = [button, code].map((node) => node.getBoundingClientRect());
    return one.bottom > other.top && one.top < other.bottom;
  });
  const seen = [...document.querySelectorAll("article button.copybtn")].filter(isSeen);
  return [seen.length, seen.filter(isOn).map((button) => button.dataset.clipboardTarget)];
}"""


# Of each part of a widget that scrolls, once it is too wide: whether it fades at the right, and
# whether it still does at its end. At the left the names of its rows stay.
FADES = """async () => {
  // What was scrolled is known in the next frame, so the one after it is asked.
  const drawn = () => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
  const fades = (box) => getComputedStyle(box).maskImage !== "none"
    && parseFloat(getComputedStyle(box).getPropertyValue("--fade-right")) > 0;
  const found = [];
  for (const box of document.querySelectorAll(".attn-scroll")) {
    if (!box.checkVisibility()) continue;
    box.firstElementChild.style.minWidth = "60rem";
    await drawn();
    const begin = fades(box);
    box.scrollLeft = box.scrollWidth;
    await drawn();
    found.push([begin, fades(box)]);
  }
  return found;
}"""


def fonts_of_formulas(page):
    """Return the fonts that drew the formulas of a page: names, and whether they are the site's."""
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    letters = "article math :is(mi, mn, mo, mtext)"  # of what holds them nothing is told
    found = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": letters})
    used = (session.send("CSS.getPlatformFontsForNode", {"nodeId": n}) for n in found["nodeIds"])
    return {(font["familyName"], font["isCustomFont"]) for some in used for font in some["fonts"]}


# Of each drawing that is seen: whether it scrolls, whether words say so, and how tall its smallest
# text is in pixels. Matplotlib writes a text of 9 points as outlines of 100 points, scaled by 0.09.
DRAWINGS = r"""async () => {
  const isSeen = (element) => element.checkVisibility();
  const seen = [...document.querySelectorAll("article .drawing")].filter(isSeen);
  return Promise.all(seen.map(async (box) => {
    const image = [...box.querySelectorAll("img")].find(isSeen);
    const svg = await (await fetch(image.currentSrc)).text();
    const scales = [...svg.matchAll(/scale\(([\d.]+) -/g)].map((match) => Number(match[1]));
    const [, unit] = svg.match(/viewBox="0 0 ([\d.]+)/);
    return {
      figure: box.closest("figure").id,
      scrolls: box.scrollWidth > box.clientWidth,
      hint: box.nextElementSibling?.matches(".drawing-hint") ?? false,
      text: Math.min(...scales) * 100 * image.clientWidth / Number(unit),
    };
  }));
}"""


# Of each formula, table and listing: whether it is too wide, and whether it fades at the right and
# can be reached by the Tab key.
WIDE = """() => [...document.querySelectorAll(
    "article :is(.math:not(td *), pre, .pst-scrollable-table-container)")]
  .filter((box) => box.checkVisibility()).map((box) => ({
    isWide: box.scrollWidth > box.clientWidth + 1,
    fades: parseFloat(getComputedStyle(box).getPropertyValue("--fade-right")) > 0,
    isReached: box.tabIndex === 0,
    text: box.textContent.trim().slice(0, 40),
  }))"""


# Of each table, what its rows have: the size of the first text, how many cells are seen.
ROWS = """() => [...document.querySelectorAll("article table.table")].map((table) => [
  ...new Set([...table.tBodies[0].rows].map((row) => [
    parseFloat(getComputedStyle(row.cells[0]).fontSize),
    [...row.cells].filter((cell) => cell.checkVisibility()).length,
  ].join())),
])"""


# Of each figure with a drawing, its buttons: what they are called, and whether they are seen when
# the drawing is. One that stands in for a widget is hidden where that is drawn.
BUTTONS = """() => [...document.querySelectorAll("article figure:has(.drawing)")].map((figure) => {
  const buttons = [...figure.querySelectorAll(":scope > button")];
  const number = figure.querySelector(".caption-number").textContent.trim();
  const drawing = figure.querySelector(".drawing");
  return buttons.map((button) => button.ariaLabel === `Full screen: ${number}` &&
    button.checkVisibility() === drawing.checkVisibility());
})"""
# Of every element and what its style puts before and after it: what the icons' fonts are to draw.
# An icon whose rule is missing has no content.
ICONS = r"""() => {
  const icons = [];
  for (const element of document.querySelectorAll("*"))
    for (const side of ["::before", "::after"]) {
      const styles = getComputedStyle(element, side); // computed one by one, when read
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


OPEN_ALL = """() => {
  for (const fold of document.querySelectorAll("article details")) fold.open = true;
  return new Promise(requestAnimationFrame);
}"""


def assert_drawings_can_be_read(page, name):
    """Fail unless a phone shows each drawing whole, with texts of 9 pixels or more."""
    drawings = page.evaluate(DRAWINGS)
    assert drawings or name not in all_notebooks()
    for drawing in drawings:
        assert not drawing["scrolls"] and not drawing["hint"], drawing
        assert drawing["text"] >= 8.99, drawing


def assert_shown_whole_and_within_reach(page, name, formulas):
    """Fail unless a phone shows tables, formulas and code whole, or lets them be pushed."""
    seen, on_code = page.evaluate(COPY_BUTTONS)
    assert on_code == [] and (seen > 1 or name not in all_lessons())
    page.evaluate(OPEN_ALL)
    rows = page.evaluate(ROWS)
    assert all(len(some) == 1 for some in rows), rows  # none is shortened
    for box in page.evaluate(WIDE):
        assert box["isWide"] == box["fades"] == box["isReached"], box
    assert fonts_of_formulas(page) == ({("CourseMath", True)} if formulas else set())
    width = page.viewport_size["width"]
    page.set_viewport_size({"width": 320, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    page.set_viewport_size({"width": width, "height": 900})


@cache
def fonts_of(static):
    """Return what each font draws: {(brands, weight): characters}."""
    drawn = {}
    for path in (static / FONTS).glob("*.woff2"):
        _, family, weight = path.stem.split("-")
        characters = {chr(code) for code in TTFont(path).getBestCmap()}
        drawn[family == "brands", weight] = characters
    return drawn


def assert_icons_are_drawn(page, fonts):
    """Fail unless each icon of a page is in its font."""
    open_menus(page)
    icons = page.evaluate(ICONS)
    assert len(icons) > 5
    for name, family, weight, content in icons:
        assert content.startswith('"'), f"{name} has no icon"
        lacking = set(content.strip('"')) - fonts["Brands" in family, weight]
        assert not lacking, f"{name}: {family} {weight} lacks {sorted(map(ascii, lacking))}"


@pytest.mark.everyday("L04")
@pytest.mark.parametrize(("name", "scheme", "width"), LOOKS)
def test_a_page_is_whole_in_both_themes(browser, site, site_address, name, scheme, width):
    file, on_phone = site / f"{name}.html", width == 360
    from_server = on_phone or name == "search"
    address = f"{site_address}{name}.html" if from_server else file.as_uri()
    options = {"scheme": scheme, "width": width, "touch": on_phone}
    with open_page(browser, address, **options) as (page, problems):
        assert page.evaluate(CUT_OFF) == [0, []]
        if on_phone:
            assert_drawings_can_be_read(page, name)
        assert [*problems, *audit(page, scheme)] == []
        if on_phone:
            assert_shown_whole_and_within_reach(page, name, read(file).select("article math"))
        other = switch_theme(page)
        assert [*problems, *audit(page, other)] == []
        if on_phone:
            assert_drawings_can_be_read(page, name)
        else:
            assert all(buttons == [True] for buttons in page.evaluate(BUTTONS))
        assert violations_on(page) == []  # it and what follows write into the console
        if on_phone:
            fades = page.evaluate(FADES)
            assert all(fade == [True, False] for fade in fades)
            assert bool(fades) == (name not in NOTHING_WIDE) or name not in all_lessons()
        assert_icons_are_drawn(page, fonts_of(site / "_static"))


def test_fonts_of_icons_that_browsers_load_are_small_and_their_license_lies_beside_them(site):
    fonts = [*(site / "_static" / FONTS).glob("*.woff2")]
    assert len(fonts) == 3 and sum(path.stat().st_size for path in fonts) < 10_000
    license_text = (site / "_static" / FONTS.parent / "LICENSE.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE" in license_text
    for path in fonts:  # which reserves its name for what wasn't changed
        names = {str(record) for record in TTFont(path)["name"].names if record.nameID in {1, 4, 6}}
        assert not any("awesome" in name.lower() for name in names)


def test_the_address_of_the_site_leads_to_its_first_page(browser, site_address):
    page = browser.new_page()
    page.goto(site_address)
    page.wait_for_url(f"{site_address}{all_pages()[0]}.html")
    page.close()


@pytest.mark.everyday
def test_search_finds_a_word_of_a_lesson(browser, site, site_address):
    lesson = all_lessons()[0]
    title = (ROOT / f"{lesson}.md").read_text(encoding="utf-8").split("\n# ", 1)[1].split("\n")[0]
    with open_page(browser, f"{site_address}{all_pages()[0]}.html") as (page, problems):
        page.keyboard.press("Control+k")
        page.keyboard.type(title.split()[-1])
        page.keyboard.press("Enter")
        result = page.locator(f'#search-results a[href*="{lesson.split("/")[-1]}"]').first
        result.wait_for()
        assert problems == []


def test_search_shows_lessons_first_each_with_a_passage_of_its_text(browser, site_address):
    with open_page(browser, f"{site_address}search.html?q=causal+mask") as (page, problems):
        results = page.locator("#search-results li")
        page.get_by_text("Search finished").wait_for()
        page.wait_for_function("document.querySelectorAll('#search-results .context').length > 8")
        links = results.locator("a").evaluate_all("all => all.map((a) => a.pathname)")
        pages = [link.split("/")[-1] for link in links]
        is_lesson, is_api = ([name.startswith(one) for name in pages] for one in ("L", "api"))
        assert sum(is_lesson) > 3 and sum(is_api) > 1
        assert is_lesson == sorted(is_lesson, reverse=True)
        assert is_api == sorted(is_api)
        for excerpt in results.filter(has=page.locator(".context")).locator(".context").all():
            words = excerpt.inner_text().lower()
            assert ("causal" in words or "mask" in words) and "on this page" not in words
        assert problems == []


def test_a_drawing_fades_towards_what_lies_beyond_its_edge(browser, site_address):
    fades = """drawing => ["--fade-left", "--fade-right"].map(
        side => parseFloat(getComputedStyle(drawing).getPropertyValue(side)) > 0)"""
    address = site_address + "book/museum.html"
    with open_page(browser, address, width=360) as (page, _):
        drawing = page.locator(".drawing:visible").first
        widen = "image => { image.style.maxWidth = 'none'; image.style.width = '30rem'; }"
        drawing.locator("img:visible").evaluate(widen)
        assert drawing.evaluate(fades) == [False, True]
        drawing.evaluate("drawing => { drawing.scrollLeft = drawing.scrollWidth; }")
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert drawing.evaluate(fades) == [True, False]
    with open_page(browser, address) as (page, _):
        assert page.locator(".drawing:visible").first.evaluate(fades) == [False, False]


def test_a_lesson_loads_what_is_looked_at(browser, site_address):
    """Neither far drawings nor the hidden copies nor the index of the search; and nothing moves."""
    page = browser.new_page(color_scheme="dark", viewport={"width": 1280, "height": 900})
    loaded = []
    page.on("request", lambda request: loaded.append(request.url.split("/")[-1]))
    page.goto(f"{site_address}{all_lessons()[0]}.html")
    show = "async (image) => { image.scrollIntoView(); await image.decode(); }"
    shown = page.locator("article figure img.only-dark")
    hidden = page.locator("article figure img.only-light")
    shown.first.evaluate(show)
    for source in hidden.evaluate_all("images => images.map((image) => image.src)"):
        assert source.split("/")[-1] not in loaded
    assert "searchindex.js" not in loaded
    assert not shown.last.evaluate("image => image.complete")
    height = shown.last.bounding_box()["height"]
    shown.last.evaluate(show)
    assert height > 100
    assert abs(shown.last.bounding_box()["height"] - height) <= 1
    page.close()


WATCH_SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const {value} of list.getEntries()) shift += value;
}).observe({type: "layout-shift", buffered: true})"""


@pytest.mark.parametrize("width", [360, 1280])
def test_a_window_loads_only_the_drawings_that_fit_it_and_nothing_moves(
    browser, site_address, width
):
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page, loaded = context.new_page(), set()
        page.add_init_script(WATCH_SHIFTS)
        page.on("request", lambda request: loaded.add(request.url))
        page.goto(f"{site_address}book/L03_The_Attention_Mechanism.html")  # it has many
        page.evaluate(AT_REST)
        assert page.evaluate("shift") < 0.05
        drawings = page.locator("picture:has(source)").evaluate_all("""all => all.map((one) => [
          new URL(one.querySelector("source").srcset, document.baseURI).href,
          one.querySelector("img").src,
          one.querySelector("img").checkVisibility(),
        ])""")
    seen = [drawing for *drawing, is_seen in drawings if is_seen]
    fits, unfit = (0, 1) if width == 360 else (1, 0)
    assert len(seen) > 3
    assert {drawing[fits] for drawing in seen} <= loaded
    assert not loaded.intersection(drawing[unfit] for drawing in drawings)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_chosen_before_anything_is_drawn(browser, site_address, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.add_init_script("""document.addEventListener("readystatechange", () => {
      window.themeWhenRead ??= document.documentElement.dataset.theme;
    })""")  # "interactive" comes before the theme's own script
    page.goto(f"{site_address}{all_pages()[0]}.html")
    assert page.evaluate("themeWhenRead") == scheme
    page.close()


def test_the_download_menu_offers_both_files(browser, site_address):
    with open_page(browser, f"{site_address}{all_lessons()[0]}.html") as (page, problems):
        page.locator(".dropdown-download-buttons > button").click()
        for kind in ("notebook", "source"):
            link = page.locator(f".btn-download-{kind}-button")
            link.wait_for()
            assert page.request.get(urljoin(page.url, link.get_attribute("href"))).ok
        assert problems == []
