"""What a site with an address offers to search engines, chats, phones and the lost."""

import re
import struct
from urllib.parse import urljoin
from xml.etree import ElementTree
from zipfile import ZipFile

import nbformat
import pytest
from tools import ROOT
from tools.browsing import audit, open_page
from tools.lesson_runs import all_notebooks, all_pages
from tools.site_builds import read
from tools.small_pages import ADDRESS, RIGHT

TITLE = "Multi-Head Attention: an interactive course"


def size_of(png):
    """Return width and height, from where PNG has them (its specification, section 11.2.1)."""
    return struct.unpack(">II", png.read_bytes()[16:24])


def test_a_page_tells_what_it_is_and_search_engines_find_every_page(small):
    head = read(small / "plain.html").head
    told = {tag["property"]: tag["content"] for tag in head.select("meta[property]")}
    assert told["og:title"] == "Plain"
    assert told["og:site_name"] == TITLE
    assert told["og:url"] == f"{ADDRESS}book/plain.html"
    described = told["og:description"]
    assert described == "A page that speaks of aardvarks & “ants”, and has no code."
    assert told["og:image:alt"].startswith(TITLE)
    assert head.select_one("meta[name=description]")["content"] == described
    assert head.select_one("link[rel=canonical]")["href"] == told["og:url"]
    assert size_of(small.parent / told["og:image"].removeprefix(ADDRESS)) == (1200, 630)
    touch = urljoin(told["og:url"], head.select_one("link[rel=apple-touch-icon]")["href"])
    assert size_of(small.parent / touch.removeprefix(ADDRESS)) == (180, 180)
    listed = ElementTree.parse(small.parent / "sitemap.xml").iter()
    found = [place.text for place in listed if place.text]
    assert sorted(found) == sorted(f"{ADDRESS}book/{name}.html" for name in RIGHT)
    for name in RIGHT:  # each says once how wide it is
        assert len(read(small / f"{name}.html").head.select("meta[name=viewport]")) == 1


def test_who_is_lost_finds_the_search_and_the_start(browser, small, small_address):
    """A server shows the page in place of one that is missing, however deep that would be."""
    missing = small / "deep" / "nowhere.html"
    missing.parent.mkdir()
    missing.write_bytes((small.parent / "404.html").read_bytes())
    with open_page(browser, f"{small_address}deep/nowhere.html", width=360) as (page, problems):
        assert audit(page, "light") == []
        article = page.locator("article")
        assert "no such page" in article.get_by_role("heading").inner_text()
        article.get_by_role("link", name="start page").click()
        page.wait_for_url(f"{small_address}index.html")
        page.go_back()
        article.get_by_role("searchbox", name="Search the course").fill("aardvarks")
        article.get_by_role("button", name="Search").click()
        page.locator('#search-results a[href*="plain"]').first.wait_for()
        assert problems == []


def test_a_page_with_cells_opens_where_it_runs_and_others_do_not(browser, small, small_address):
    with open_page(browser, f"{small_address}switch.html") as (page, problems):
        page.get_by_role("button", name="Run this page").click()
        places = (page.get_by_role("link", name=name) for name in ("Colab", "Binder"))
        links = [place.get_attribute("href") for place in places]
        assert problems == []
    # These are the forms that the two programs document.
    colab, binder = "https://colab.research.google.com/github/", "https://mybinder.org/v2/gh/"
    assert links == [
        f"{colab}OWNER/COURSE/blob/notebooks/book/switch.ipynb",
        f"{binder}OWNER/COURSE/notebooks?urlpath=lab/tree/book/switch.ipynb",
    ]
    assert "Run this page" not in (small / "plain.html").read_text(encoding="utf-8")
    workflow = (ROOT / ".github/workflows/course.yml").read_text(encoding="utf-8")
    assert "HEAD:notebooks" in workflow and "_sources" in workflow  # it fills that branch


def test_its_notebooks_install_the_wheel_that_it_serves(small):
    downloaded = nbformat.read(small.parent / "_sources/book/switch.ipynb", as_version=4)
    first = downloaded.cells[1]
    assert first.cell_type == "code"
    [wheel] = re.findall(r'^%pip install -q "attnlib\[lessons\] @ (.*)"$', first.source)
    with ZipFile(small.parent / wheel.removeprefix(ADDRESS)) as served:
        assert "attnlib/__init__.py" in served.namelist()


def test_without_an_address_nothing_pretends_to_have_one(site):
    head = read(site / "book/index.html").head
    assert head.select("meta[property], link[rel=canonical]") == []
    assert not any((site / name).exists() for name in ("404.html", "sitemap.xml"))
    assert not list(site.rglob("*.whl"))
    text = (site / "book/index.html").read_text(encoding="utf-8")
    assert "Run this page" not in text and "source-repository-button" not in text
    notebook = nbformat.read(site / f"_sources/{all_notebooks()[0]}.ipynb", as_version=4)
    assert 'pip install -e ".[lessons]"' in notebook.cells[1].source


@pytest.mark.parametrize("page", all_pages())
def test_without_an_address_too_a_page_says_with_what_words_it_begins(site, page):
    [described] = read(site / f"{page}.html").head.select("meta[name=description]")
    text = " ".join(read(site / f"{page}.html").article.text.split())
    words = described["content"].removesuffix(" …")
    assert 30 < len(words) <= 200
    assert words.split(". ")[0] in text
