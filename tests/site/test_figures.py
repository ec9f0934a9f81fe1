"""A figure has a copy for the dark and one for phones, fades where it goes on, and can be large."""

import re

from tools.browsing import open_page
from tools.site_builds import read

from attnlib import palette

LARGE = "document.fullscreenElement?.id === 'fig-wide'"
SMALL = "document.fullscreenElement === null"
PLACES = """() => [...document.querySelectorAll("article :is(p, img, figcaption)")]
    .map((node) => Object.values(node.getBoundingClientRect().toJSON()).join())"""
COLOR = "node => getComputedStyle(node).backgroundColor"
FRAME = "button => [getComputedStyle(button).opacity, getComputedStyle(button).outlineStyle]"
DRAWN = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
FADES = """drawing => ["--fade-left", "--fade-right"].map(
    side => parseFloat(getComputedStyle(drawing).getPropertyValue(side)) > 0)"""


def test_figures_have_a_dark_copy_and_one_caption(small):
    html = read(small / "figures.html")
    [figure] = html.select("#fig-wide")
    assert len(figure.select("figcaption")) == 1
    images = figure.select("img")
    assert [image["class"] for image in images] == [["only-light"], ["only-dark"]]
    assert {image["alt"] for image in images} == {"A wide rectangle of one color."}
    assert {(image["width"], image["height"]) for image in images} == {("200", "67")}
    assert all(image["loading"] == "lazy" for image in images)
    drawings = [(small / image["src"]).read_text(encoding="utf-8") for image in images]
    assert ["#1F2328" in svg for svg in drawings] == [True, False]
    assert ["#e6e8eb" in svg for svg in drawings] == [False, True]


def test_what_attnlib_draws_has_a_copy_for_phones(small):
    html = read(small / "figures.html")
    found = html.select("picture:has(source)")  # of the figure that attnlib draws alone
    assert [picture.img["class"] for picture in found] == [["only-light"], ["only-dark"]]
    for picture, muted in zip(found, (palette.MUTED, palette.DARK[palette.MUTED]), strict=True):
        source = picture.source
        assert source["media"] == "(max-width: 36rem)"
        assert int(source["width"]) <= 312 < int(picture.img["width"])
        svg = (small / source["srcset"]).read_text(encoding="utf-8")
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()
        shown = [int(source["width"]), int(source["height"])]
        assert [round(float(side) * 96 / 72) for side in size] == shown
        assert muted in svg


def test_what_a_phone_cannot_show_whole_says_so_and_fades_towards_the_rest(browser, small):
    with open_page(browser, (small / "figures.html").as_uri(), width=360) as (page, _):
        wider = "box => box.scrollWidth > box.clientWidth"
        looks = ((1280, "line", False), (360, "maps", False), (360, "line", True))
        for width, name, scrolls in looks:
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(DRAWN)
            figure = page.locator(f"#fig-{name}")
            drawing = figure.locator(".drawing")
            assert drawing.evaluate(wider) == scrolls
            assert figure.locator(".drawing-hint >> visible=true").count() == scrolls
            assert drawing.evaluate(FADES) == [False, scrolls]
            drawing.evaluate("drawing => { drawing.scrollLeft = drawing.scrollWidth; }")
            page.evaluate(DRAWN)
            assert drawing.evaluate(FADES) == [scrolls, False]


def test_a_press_shows_it_large_in_its_theme_and_leads_back_and_so_does_a_button(browser, small):
    address = (small / "figures.html").as_uri()
    with open_page(browser, address, scheme="dark") as (page, problems):
        figure = page.locator("#fig-wide")
        drawing, button = figure.locator(".drawing"), figure.locator("> button")
        before = page.evaluate(PLACES)
        drawing.click()
        page.wait_for_function(LARGE)
        box = drawing.locator("img.only-dark").bounding_box()
        assert box["width"] > 1000 and box["height"] > 500
        assert figure.locator("figcaption").is_visible()
        assert figure.evaluate(COLOR) == page.locator("body").evaluate(COLOR)
        drawing.click()
        page.wait_for_function(SMALL)
        assert page.evaluate(PLACES) == before

        page.mouse.move(1, 1)
        assert button.evaluate(FRAME)[0] == "0"
        figure.locator("figcaption").hover()
        assert button.evaluate(FRAME)[0] == "1"
        page.emulate_media(media="print")
        assert button.is_hidden()
        page.emulate_media(media="screen")
        assert button.get_attribute("aria-label") == "Full screen: Figure 1"
        page.locator("article h1").click()  # from there the keyboard goes on
        for _ in range(40):
            page.keyboard.press("Tab")
            if button.evaluate("button => button === document.activeElement"):
                break
        assert button.evaluate(FRAME) == ["1", "solid"]
        page.keyboard.press("Enter")
        page.wait_for_function(LARGE)
        figure.locator("> button[aria-label='Leave the full screen: Figure 1']").wait_for()
        page.evaluate("document.exitFullscreen()")  # a browser with a window does so at Escape
        page.wait_for_function(SMALL)
        figure.locator("> button[aria-label='Full screen: Figure 1']").wait_for()
        page.add_init_script('Object.defineProperty(document, "fullscreenEnabled", {value: false})')
        page.reload()  # in a browser that shows nothing so, nothing is offered
        assert figure.count() == 1 and button.count() == 0
        assert problems == []
