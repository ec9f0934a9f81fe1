"""Every page in a real browser: light and dark, desktop and phone."""

from functools import cache
from types import SimpleNamespace
from urllib.parse import urljoin

import pytest
from course.publishing import FONTS, SHEET, THEME
from fontTools.ttLib import TTFont
from tools import ROOT
from tools.browsing import (
    AT_REST,
    audit,
    open_page,
    problems_of,
    serve,
    switch_theme,
    violations_on,
)
from tools.lesson_runs import all_lessons, all_notebooks, all_pages

PAGES = [*all_pages(), "search"]
# A page opened in one theme is looked at in both: the reader presses the button. axe-core, which
# is slow, sees it in the other theme: every page in the light of a desktop and the dark of a phone.
# What stands around a page on a wide screen is the same on all, so one shows it in the dark.
LOOKS = [look for page in PAGES for look in ((page, "dark", 1280), (page, "light", 360))]
LOOKS.append((PAGES[0], "light", 1280))


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


@pytest.fixture(scope="session")
def look_at(browser, site_address):
    """Return a function that opens a page once, and says all that is to be known of its look."""

    @cache
    def look(page, scheme, width):
        address = f"{site_address}{page}.html"
        with open_page(browser, address, scheme=scheme, width=width) as (opened, problems):
            found = SimpleNamespace(problems=problems, cut_off=opened.evaluate(CUT_OFF))
            if width == 360:
                found.rows, found.drawings = opened.evaluate(ROWS), [opened.evaluate(DRAWINGS)]
            problems += audit(opened, scheme)
            if width == 360:
                opened.evaluate(OPEN_ALL)
                found.wide = opened.evaluate(WIDE)
                opened.set_viewport_size({"width": 320, "height": 900})
                found.smallest = opened.evaluate("document.documentElement.scrollWidth")
                opened.set_viewport_size({"width": width, "height": 900})
            other = switch_theme(opened)
            problems += [f"{other}: {problem}" for problem in audit(opened, other)]
            if width == 360:
                found.drawings.append(opened.evaluate(DRAWINGS))
            else:
                found.buttons = opened.evaluate(BUTTONS)
            found.problems, found.violations = [*problems], violations_on(opened)
            open_menus(opened)
            found.icons = opened.evaluate(ICONS)
            opened.add_style_tag(content=(THEME / SHEET).read_text(encoding="utf-8"))
            found.icons_by_the_theme = opened.evaluate(ICONS)
            return found

    return look


@pytest.mark.everyday("L04")
@pytest.mark.parametrize(("page", "opened_in", "width"), LOOKS)
def test_nothing_is_wrong_in_both_themes(look_at, page, opened_in, width):
    assert look_at(page, opened_in, width).problems == []


@pytest.mark.parametrize(("page", "opened_in", "width"), LOOKS)
def test_axe_finds_nothing_in_the_other_theme(look_at, page, opened_in, width):
    assert look_at(page, opened_in, width).violations == []


@pytest.mark.parametrize(("page", "opened_in", "width"), LOOKS)
def test_what_is_painted_apart_cuts_nothing_off(look_at, page, opened_in, width):
    assert look_at(page, opened_in, width).cut_off == [0, []]


@pytest.mark.parametrize("page", PAGES)
def test_a_phone_shows_all_whole_readable_and_within_reach(look_at, page):
    found = look_at(page, "light", 360)
    assert found.smallest == 320
    assert all(len(rows) == 1 for rows in found.rows), found.rows  # none is shortened
    for box in found.wide:
        assert box["isWide"] == box["fades"] == box["isReached"], box
    for drawings in found.drawings:
        assert drawings or page not in all_notebooks()
        for drawing in drawings:
            assert not drawing["scrolls"] and not drawing["hint"], drawing
            assert drawing["text"] >= 8.99, drawing


@pytest.mark.parametrize("page", PAGES)
def test_each_drawing_has_its_button(look_at, page):
    assert all(buttons == [True] for buttons in look_at(page, "dark", 1280).buttons)


@cache
def fonts_of(static):
    """Return what each font draws: {(brands, weight): characters}."""
    drawn = {}
    for path in (static / FONTS).glob("*.woff2"):
        _, family, weight = path.stem.split("-")
        characters = {chr(code) for code in TTFont(path).getBestCmap()}
        drawn[family == "brands", weight] = characters
    return drawn


@pytest.mark.parametrize(("page", "opened_in", "width"), LOOKS)
def test_each_icon_of_a_page_is_in_its_font(look_at, site, page, opened_in, width):
    found, fonts = look_at(page, opened_in, width), fonts_of(site / "_static")
    assert found.icons == found.icons_by_the_theme and len(found.icons) > 5
    for name, family, weight, content in found.icons:
        assert content.startswith('"'), f"{name} has no icon"
        lacking = set(content.strip('"')) - fonts["Brands" in family, weight]
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


@pytest.mark.parametrize("page", all_pages())
def test_works_when_opened_from_a_folder(browser, site, page):
    assert problems_of(browser, (site / f"{page}.html").as_uri()) == []


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


def test_the_theme_button_changes_colors_and_drawings(browser, site_address):
    address = f"{site_address}{all_lessons()[0]}.html"
    with open_page(browser, address) as (page, problems):
        dark_drawing = page.locator("article figure img.only-dark").first
        assert dark_drawing.is_hidden()
        assert switch_theme(page) == "dark"
        assert dark_drawing.is_visible()
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
def test_nothing_moves_while_a_page_loads(browser, site_address, width):
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.add_init_script(WATCH_SHIFTS)
        page.goto(f"{site_address}{all_lessons()[0]}.html")
        page.evaluate(AT_REST)
        assert page.evaluate("shift") < 0.05


@pytest.mark.parametrize("width", [360, 1280])
def test_a_window_loads_only_the_drawings_that_fit_it(browser, site_address, width):
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page, loaded = context.new_page(), set()
        page.on("request", lambda request: loaded.add(request.url))
        page.goto(f"{site_address}book/L03_The_Attention_Mechanism.html")  # it has many
        page.evaluate(AT_REST)
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


@pytest.mark.parametrize("kind", ["notebook", "source"])
def test_the_download_menu_offers_both_files(browser, site_address, kind):
    address = f"{site_address}{all_lessons()[0]}.html"
    with open_page(browser, address) as (page, problems):
        page.locator(".dropdown-download-buttons > button").click()
        link = page.locator(f".btn-download-{kind}-button")
        link.wait_for()
        answer = page.request.get(urljoin(page.url, link.get_attribute("href")))
        assert answer.ok
        assert problems == []


BAD_PAGE = """<!doctype html><html lang="en" data-theme="light"><title>Bad</title>
<main><article><h1>One</h1><h1>Two</h1><div id="twice"></div><div id="twice"></div>
<img src="picture.svg" alt="0123456789abcdef0123.svg"><div style="width: 2000px">wide</div>
<span class="math">x^2</span><math><mi style="padding-left: 2000px">x</mi></math>
<p>|&mdash;|</p><p>| --- |</p><p>:::{note} c</p><p><code>{fine}</code></p>
<script src="https://example.org/library.js"></script><script src="missing.js"></script>
<script>console.log("hello"); throw new Error("oops");</script>
</article></main></html>"""


def test_each_fault_of_a_page_is_noticed(browser, tmp_path):
    (tmp_path / "bad.html").write_text(BAD_PAGE, encoding="utf-8")
    (tmp_path / "picture.svg").write_bytes((ROOT / "book/assets/favicon.svg").read_bytes())
    with serve(tmp_path) as address:
        problems = "\n".join(problems_of(browser, f"{address}bad.html", width=360))
    for fault in (
        "request to another host: https://example.org/library.js",
        "status 404",
        "console log: hello",
        "page error: oops",
        "2 main headings",
        "page is 20",
        "sticks out: <div",
        "sticks out: <mi",
        "two elements with id twice",
        "image without meaningful alt text",
        "figure without caption",
        "raw: x^2",
        "raw: |—|",
        "raw: | --- |",
        "raw: :::",
        "raw: {note}",
    ):
        assert fault in problems
    assert "raw: {fine}" not in problems


def test_axe_would_find_something(browser, tmp_path):
    bad = "<!doctype html><title>Bad</title><main><h1>Bad</h1><p><img src='x.png'></p></main>"
    words = "<span>fine</span><span class='pale'>(</span><span class='pale'>pale</span>"
    pale = f"<style>.pale {{color: #ddd}}</style><pre>{words}</pre>"
    (tmp_path / "bad.html").write_text(bad + pale * 2, encoding="utf-8")
    with serve(tmp_path) as address, open_page(browser, f"{address}bad.html") as (page, _):
        found = "\n".join(violations_on(page))
    assert "image-alt" in found and "html-has-lang" in found
    assert found.count("color-contrast: <span") == 1  # once for each color
