"""What a site with an address offers to search engines, chats, phones and the lost."""

import re
import struct
import subprocess
import sys
from urllib.parse import urljoin
from xml.etree import ElementTree

import nbformat
import pytest
from tools import ROOT
from tools.browsing import open_page, problems_of, serve
from tools.lesson_runs import all_pages
from tools.site_builds import build, read, small_project
from tools.small_pages import cell, exercise, notebook

TITLE = "Multi-Head Attention: an interactive course"
REPOSITORY = "https://github.com/OWNER/COURSE"
PAGES = {
    "index": "# Start\n\nHere the course begins, with a question.\n",
    "L99_Deep": """# Deep

A page that speaks \\
of *aardvarks* & "ants".

Of 2 formulas $x^2$ nothing is said.

```{note}
A box isn't how it begins.
```

- Nor is a list.
""",
    "L98_Cells": notebook(
        "# Cells\n\n[Deep](L99_Deep.md)\n", exercise("cells", cell("1", "exercise-stub"))
    ),
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Build a small site for a folder of a server, and serve it there: address and folder."""
    root = tmp_path_factory.mktemp("server")
    with serve(root) as server:
        address = f"{server}course/"
        project = small_project(root / "project", PAGES, address=address, repository=REPOSITORY)
        result = build(project)
        assert result.returncode == 0, result.stderr
        (root / "course").symlink_to(project / "_build/html")
        yield address, root / "course"


def head_of(folder, page):
    return read(folder / page).head


def size_of(png):
    """Return width and height, from where PNG has them (its specification, section 11.2.1)."""
    return struct.unpack(">II", png.read_bytes()[16:24])


def test_a_page_tells_what_it_is(published):
    address, folder = published
    head = head_of(folder, "book/L99_Deep.html")
    told = {tag["property"]: tag["content"] for tag in head.select("meta[property]")}
    assert told["og:title"] == "Deep"
    assert told["og:site_name"] == TITLE
    assert told["og:url"] == f"{address}book/L99_Deep.html"
    assert told["og:description"] == "A page that speaks of aardvarks & “ants”."
    assert told["og:image:alt"].startswith(TITLE)
    assert head.select_one("meta[name=description]")["content"] == told["og:description"]
    assert head.select_one("link[rel=canonical]")["href"] == told["og:url"]
    assert size_of(folder / told["og:image"].removeprefix(address)) == (1200, 630)
    touch = urljoin(told["og:url"], head.select_one("link[rel=apple-touch-icon]")["href"])
    assert size_of(folder / touch.removeprefix(address)) == (180, 180)


def test_search_engines_find_every_page_and_nothing_else_and_each_says_once_how_wide_it_is(
    published,
):
    address, folder = published
    for name in PAGES:
        assert len(head_of(folder, f"book/{name}.html").select("meta[name=viewport]")) == 1
    found = [place.text for place in ElementTree.parse(folder / "sitemap.xml").iter() if place.text]
    assert sorted(found) == sorted(f"{address}book/{name}.html" for name in PAGES)


def test_who_is_lost_finds_the_search_and_the_start(browser, published):
    """A server shows the page in place of one that is missing, however deep that would be."""
    address, folder = published
    missing = folder / "book" / "deep" / "nowhere.html"
    missing.parent.mkdir()
    missing.write_bytes((folder / "404.html").read_bytes())
    with open_page(browser, f"{address}book/deep/nowhere.html") as (page, problems):
        article = page.locator("article")
        assert article.get_by_role("heading").inner_text().strip() == "There is no such page"
        article.get_by_role("link", name="start page").click()
        page.wait_for_url(f"{address}book/index.html")
        page.go_back()
        article.get_by_role("searchbox", name="Search the course").fill("aardvarks")
        article.get_by_role("button", name="Search").click()
        page.locator('#search-results a[href*="L99_Deep"]').first.wait_for()
        assert problems == []
    missing.unlink()


def test_the_page_for_the_lost_is_as_whole_as_any(browser, published):
    for scheme, width in (("light", 360), ("dark", 1280)):
        address = f"{published[0]}404.html"
        assert problems_of(browser, address, scheme=scheme, width=width) == []


def test_without_an_address_nothing_pretends_to_have_one(site):
    head = head_of(site, "book/index.html")
    assert head.select("meta[property], link[rel=canonical]") == []
    for name in ("404.html", "sitemap.xml"):
        assert not (site / name).exists()
    text = (site / "book/index.html").read_text(encoding="utf-8")
    assert "Run this page" not in text and "source-repository-button" not in text


@pytest.mark.parametrize("page", all_pages())
def test_without_an_address_too_a_page_says_with_what_words_it_begins(site, page):
    described = head_of(site, f"{page}.html").select("meta[name=description]")
    assert len(described) == 1
    text = " ".join(read(site / f"{page}.html").article.text.split())
    words = described[0]["content"].removesuffix(" …")
    assert 30 < len(words) <= 200
    assert words.split(". ")[0] in text


def test_a_page_with_cells_opens_where_it_runs_and_others_do_not(browser, published):
    address, folder = published
    with open_page(browser, f"{address}book/L98_Cells.html") as (page, problems):
        page.get_by_role("button", name="Run this page").click()
        links = [
            page.get_by_role("link", name=name).get_attribute("href")
            for name in ("Colab", "Binder")
        ]
        assert problems == []
    # These are the forms that the two programs document.
    colab, binder = "https://colab.research.google.com/github/", "https://mybinder.org/v2/gh/"
    assert links == [
        f"{colab}OWNER/COURSE/blob/notebooks/book/L98_Cells.ipynb",
        f"{binder}OWNER/COURSE/notebooks?urlpath=lab/tree/book/L98_Cells.ipynb",
    ]
    assert "Run this page" not in (folder / "book/L99_Deep.html").read_text(encoding="utf-8")


def test_its_notebooks_install_the_wheel_that_it_serves_and_link_to_its_pages(published, tmp_path):
    address, folder = published
    downloaded = nbformat.read(folder / "_sources/book/L98_Cells.ipynb", as_version=4)
    first = downloaded.cells[1]
    assert first.cell_type == "code"
    [wheel] = re.findall(r'^%pip install -q "attnlib\[lessons\] @ (.*)"$', first.source)
    assert wheel.startswith(address)
    assert any(f"[Deep]({address}book/L99_Deep.html)" in c.source for c in downloaded.cells)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--target", tmp_path, f"attnlib @ {wheel}"], check=True)
    assert (tmp_path / "attnlib/__init__.py").is_file()
    how = read(folder / "book/L98_Cells.html").select(".course-how-to-run a")[1]
    assert how["href"] == "index.html"  # for the start page has no section of it


def test_the_workflow_fills_the_branch_that_the_links_name():
    workflow = (ROOT / ".github/workflows/course.yml").read_text(encoding="utf-8")
    assert "HEAD:notebooks" in workflow and "_sources" in workflow
