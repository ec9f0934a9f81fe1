"""Every page in a real browser: light and dark, desktop and phone, and on paper."""

import re
from functools import cache
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from tools.browsing import AT_REST, audit, open_page, switch_theme, violations_on
from tools.lesson_runs import all_lessons, all_notebooks, all_pages

FONTS = Path("vendor/fontawesome/webfonts")
PAGES = [*all_pages(), "search"]
A4 = {"format": "A4", "margin": dict.fromkeys(("top", "right", "bottom", "left"), "1cm")}
ON_PAPER = ["book/index", *all_lessons(), "book/museum"]
MOST_PAGES = 27  # of a lesson; a figure or widget that has no room left begins the next one
# A page opened in one theme is looked at in both: the reader presses the button. axe-core, which
# is slow, sees it in the other theme: every page in the light of a desktop and the dark of a phone.
# What stands around a page on a wide screen is the same on all, so one shows it in the dark.
# A desktop opens pages from their folder, but the search; a phone asks a server.
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

# Of each formula, table, listing and part of a widget that can scroll: whether it is too wide,
# whether it fades at the right, and still does at its end, and whether the Tab key reaches it. What
# a widget's holds is reached.
WIDE = """async () => {
  const isFading = (box) => parseFloat(getComputedStyle(box).getPropertyValue("--fade-right")) > 0;
  const boxes = [...document.querySelectorAll(
    "article :is(.math:not(td *), pre, .pst-scrollable-table-container, .attn-scroll)")]
    .filter((box) => box.checkVisibility());
  const found = boxes.map((box) => {
    const isWide = box.scrollWidth > box.clientWidth + 1;
    const isReached = box.matches(".attn-scroll") ? isWide : box.tabIndex === 0;
    return {isWide, fades: isFading(box), isReached, text: box.textContent.trim().slice(0, 40)};
  });
  for (const box of boxes) box.scrollLeft = box.scrollWidth;
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  return found.map((one, i) => ({...one, fadesAtEnd: isFading(boxes[i])}));
}"""

# Of each table, what its rows have: the size of the first text, how many cells are seen.
ROWS = """() => [...document.querySelectorAll("article table.table")].map((table) => [
  ...new Set([...table.tBodies[0].rows].map((row) => [
    parseFloat(getComputedStyle(row.cells[0]).fontSize),
    [...row.cells].filter((cell) => cell.checkVisibility()).length,
  ].join())),
])"""

# Of every element and what its style puts before and after it: what the icons' fonts are to draw.
# An icon whose rule is missing has no content.
ICONS = r"""() => {
  const icons = [];
  for (const element of document.querySelectorAll("*"))
    for (const side of ["::before", "::after"]) {
      const {content, fontFamily} = getComputedStyle(element, side);
      const isIcon = side === "::before" && element.matches('[class^="fa-"], [class*=" fa-"]');
      if (isIcon || (/^"/.test(content) && /Font Awesome/.test(fontFamily)))
        icons.push([element.className, content]);
    }
  return icons;
}"""

# What is wrong with a page as it is printed. Buttons that say what is chosen are read, too.
FAULTS = """() => {
  const faults = [];
  const isSeen = (node) => node.checkVisibility() && node.getBoundingClientRect().height > 0;
  const name = (node) => `<${node.localName} class="${node.className}"> ${node.textContent.trim()}`;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(isSeen);
  const BUTTONS = "button:not([aria-pressed], [aria-checked]), details:not([open])";
  for (const node of all(`${BUTTONS}, .bd-sidebar, .bd-header-article`))
    faults.push(`to press: ${name(node)}`);
  for (const node of all("article :is(figure, .attn-widget, .attn-panels > *, table, .cell_input)"))
    if (getComputedStyle(node).breakInside !== "avoid") faults.push(`may break: ${name(node)}`);
  for (const node of all("article *:not(span.math, mjx-container *, .attn-unseen)")) {
    const {right} = node.getBoundingClientRect();
    const isTooSmall = node.clientWidth > 0 && node.scrollWidth > node.clientWidth + 1;
    const cuts = getComputedStyle(node).overflowX !== "visible";
    if (right > innerWidth + 1 || (cuts && isTooSmall)) faults.push(`is cut: ${name(node)}`);
  }
  for (const image of all("article img.only-dark")) faults.push(`dark: ${image.src}`);
  return [...new Set(faults.map((fault) => fault.slice(0, 150)))];
}"""

# A fold's tables are filled once it is open; what fades is known in the frame after they are drawn.
OPEN_FOLDS = """async () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  await new Promise((filled) => setTimeout(filled, 0));
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
}"""


def assert_printed_whole_and_in_light_colors(page, name):
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert color == "rgb(255, 255, 255)"
    assert page.evaluate(FAULTS) == []
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    if name in all_lessons():
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(**A4))) <= MOST_PAGES
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 900})


def assert_drawings_can_be_read(page, name):
    drawings = page.evaluate(DRAWINGS)
    assert drawings or name not in all_notebooks()
    for drawing in drawings:
        assert not drawing["scrolls"] and not drawing["hint"], drawing
        assert drawing["text"] >= 8.99, drawing


def assert_shown_whole_and_within_reach(page, name):
    seen, on_code = page.evaluate(COPY_BUTTONS)
    assert on_code == [] and (seen > 1 or name not in all_lessons())
    page.evaluate(OPEN_FOLDS)
    rows = page.evaluate(ROWS)
    assert all(len(some) == 1 for some in rows), rows  # none is shortened
    for box in page.evaluate(WIDE):
        assert box["isWide"] == box["fades"] == box["isReached"] and not box["fadesAtEnd"], box
    page.set_viewport_size({"width": 320, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    page.set_viewport_size({"width": 360, "height": 900})


@cache
def icons_of(static):
    """Return the characters of which the fonts of icons have drawings."""
    fonts = (static / FONTS).glob("*.woff2")
    return {chr(code) for path in fonts for code in TTFont(path).getBestCmap()}


def assert_icons_are_drawn(page, drawn):
    """Fail unless each icon of a page, its menus and folds and the search open, is in a font."""
    for button in page.locator(".dropdown > button:visible").all():
        button.click()
    page.evaluate(OPEN_FOLDS)
    page.keyboard.press("Control+k")
    icons = page.evaluate(ICONS)
    assert len(icons) > 5
    for name, content in icons:
        assert content.startswith('"'), f"{name} has no icon"
        lacking = set(content.strip('"')) - drawn
        assert not lacking, f"{name}: no font has {sorted(map(ascii, lacking))}"


@pytest.mark.everyday("L04")
@pytest.mark.parametrize(("name", "scheme", "width"), LOOKS)
def test_a_page_is_whole_in_both_themes(browser, site, site_address, name, scheme, width):
    on_phone = width == 360
    from_server = on_phone or name == "search"
    address = f"{site_address if from_server else site.as_uri() + '/'}{name}.html"
    options = {"scheme": scheme, "width": width, "touch": on_phone}
    with open_page(browser, address, **options) as (page, problems):
        assert page.evaluate(CUT_OFF) == [0, []]
        if on_phone:
            assert_drawings_can_be_read(page, name)
        if (scheme, width) == ("dark", 1280) and name in ON_PAPER:
            assert_printed_whole_and_in_light_colors(page, name)
        assert [*problems, *audit(page, scheme)] == []
        if on_phone:
            assert_shown_whole_and_within_reach(page, name)
        other = switch_theme(page)
        assert [*problems, *audit(page, other)] == []
        if on_phone:
            assert_drawings_can_be_read(page, name)
        assert violations_on(page) == []  # it and what follows write into the console
        if not on_phone:
            assert_icons_are_drawn(page, icons_of(site / "_static"))


WATCH = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const {value} of list.getEntries()) shift += value;
}).observe({type: "layout-shift", buffered: true});
document.addEventListener("readystatechange", () => {
  window.themeWhenRead ??= document.documentElement.dataset.theme;
})"""  # "interactive" comes before the theme's own script
# Of each drawing with a copy for phones: that copy, the other, and its theme.
COPIES = """all => all.map((one) => {
  const image = one.querySelector("img");
  const forPhones = new URL(one.querySelector("source").srcset, document.baseURI).href;
  return [forPhones, image.src, image.className];
})"""


def test_a_phone_loads_only_the_drawings_that_it_shows_and_nothing_moves(browser, site_address):
    """Neither wide or far drawings nor those of the other theme, nor the index of the search."""
    window = {"width": 360, "height": 800}
    with browser.new_context(viewport=window, color_scheme="light") as context:
        page, loaded = context.new_page(), set()
        page.add_init_script(WATCH)
        page.goto(f"{site_address}book/house.html")
        assert page.evaluate("themeWhenRead") == "light"
        page.emulate_media(color_scheme="dark")
        page.on("request", lambda request: loaded.add(request.url))
        page.goto(f"{site_address}book/L03_The_Attention_Mechanism.html")  # it has many
        assert page.evaluate("themeWhenRead") == "dark"
        drawings = page.locator("picture:has(source)").evaluate_all(COPIES)
        shown = page.locator("article figure img.only-dark:visible").last
        assert not shown.evaluate("image => image.complete")
        height = shown.bounding_box()["height"]
        page.evaluate(AT_REST)
        assert height > 100 and abs(shown.bounding_box()["height"] - height) <= 1
        assert page.evaluate("shift") < 0.05
    seen = {for_phones for for_phones, _, theme in drawings if "dark" in theme}
    assert len(loaded & seen) > 3
    assert not loaded & ({file for *files, _ in drawings for file in files} - seen)
    assert not any("searchindex" in address for address in loaded)
