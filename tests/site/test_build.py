"""The build: what it runs, what it refuses, what it writes."""

import re

import pytest
from tools import ROOT
from tools.browsing import open_page
from tools.lesson_runs import all_notebooks
from tools.site_builds import read

from attnlib import palette


def test_the_site_is_built_from_the_lessons_as_they_were_executed(site_build):
    assert "Executing" not in site_build.stdout
    assert site_build.stdout.count("Using cached notebook") == len(all_notebooks())


@pytest.mark.parametrize("page", all_notebooks())
def test_each_page_can_be_downloaded_as_a_notebook_and_as_text(site, page):
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    assert (site / "_sources" / f"{page}.md").read_text(encoding="utf-8") == source
    html = (site / f"{page}.html").read_text(encoding="utf-8")
    for suffix in (".ipynb", ".md"):
        assert f'href="../_sources/{page}{suffix}"' in html
        assert (site / "_sources" / f"{page}{suffix}").is_file()


def test_each_mistake_of_a_page_is_a_warning(warnings):
    """With -W every warning is fatal, so each mistake must be one."""
    for mistake in (
        "fig-nowhere",
        "L00_Nowhere.md",
        "nobody1900",
        "no-such-heading",
        "stderr was found in the cell outputs",
    ):
        assert re.search(rf"index\.md:\d+: .*WARNING: .*{mistake}", warnings), mistake


def test_figures_have_a_dark_copy_and_one_caption(small):
    html = read(small / "figures.html")
    [figure] = html.select("#fig-wide")
    assert len(figure.select("figcaption")) == 1
    images = figure.select("img")
    assert [image["class"] for image in images] == [["only-light"], ["only-dark"]]
    assert {image["alt"] for image in images} == {"A wide rectangle of one color."}
    assert {(image["width"], image["height"]) for image in images} == {("200", "67")}
    assert all(image["loading"] == "lazy" for image in images)
    files = [small / image["src"] for image in images]
    assert all(len(file.name) == len("0123456789ab.svg") for file in files)
    drawings = [file.read_text(encoding="utf-8") for file in files]
    assert ["#1F2328" in svg for svg in drawings] == [True, False]
    assert ["#e6e8eb" in svg for svg in drawings] == [False, True]


SOURCE = re.compile(
    r'<source width="(\d+)" height="(\d+)" media="([^"]+)" srcset="([^"]+)" ?/?>'
    r'<img width="(\d+)" [^>]*class="only-(light|dark)"'
)


def test_a_phone_has_drawings_of_its_own_in_both_themes(small):
    found = SOURCE.findall((small / "figures.html").read_text(encoding="utf-8"))
    assert [theme for *_, theme in found] == ["light", "dark"]  # of the one that attnlib draws
    for width, height, media, address, page_width, theme in found:
        assert int(width) <= 312 < int(page_width)
        assert media == "(max-width: 36rem)"
        svg = (small / address).read_text(encoding="utf-8")
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
        assert [round(float(side) * 96 / 72) for side in size.groups()] == [int(width), int(height)]
        assert (palette.MUTED in svg) == (theme == "light")
        assert (palette.DARK[palette.MUTED] in svg) == (theme == "dark")


def test_what_a_phone_cannot_show_whole_says_so(browser, small):
    with open_page(browser, (small / "figures.html").as_uri(), width=360) as (page, _):
        wider = "box => box.scrollWidth > box.clientWidth"
        for width, name, scrolls in (
            (360, "maps", False), (360, "line", True), (1280, "maps", False), (1280, "line", False),
        ):  # fmt: skip
            page.set_viewport_size({"width": width, "height": 900})
            figure = page.locator(f"#fig-{name}")
            assert figure.locator(".drawing").evaluate(wider) == scrolls
            assert figure.locator(".drawing-hint >> visible=true").count() == scrolls
