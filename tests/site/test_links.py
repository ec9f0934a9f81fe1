"""Every link inside the site leads somewhere, and no page names another host's files."""

from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tools.lesson_runs import all_pages
from tools.site_builds import read

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


@cache
def anchors_of(page: Path) -> set[str]:
    return {element["id"] for element in read(page).find_all(id=True)}


@pytest.mark.parametrize("page", [*all_pages(), "search", "genindex"])
def test_links_lead_somewhere_and_no_file_is_loaded_from_elsewhere(site, page):
    here = site / f"{page}.html"
    problems = []
    for element in read(here).find_all([*LOADED, "a"]):
        address = element.get(LOADED.get(element.name, "href"))
        if address is None:
            continue
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            if element.name != "a" and parts.scheme != "data":
                problems.append(f"loads {address}")
            continue
        target = (here.parent / unquote(parts.path)).resolve() if parts.path else here
        if not target.is_file():
            problems.append(f"no file {address}")
        elif target.suffix == ".html" and unquote(parts.fragment) not in anchors_of(target) | {""}:
            problems.append(f"no anchor {address}")
    assert problems == []
