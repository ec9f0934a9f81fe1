"""axe-core finds nothing on any page, in either theme, on a desktop or a phone."""

from pathlib import Path

import axe_playwright_python
import pytest
from browsing import open_page, serve
from lesson_runs import all_pages

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")


def violations(browser, address: str, **options) -> list[str]:
    """Return what axe-core finds on a page: rule, place and what to do."""
    with open_page(browser, address, **options) as (page, _):
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run().then((results) => results.violations)")
    return [
        f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("dark", 360)])
@pytest.mark.parametrize("page", [*all_pages(), "search"])
def test_axe_finds_nothing(browser, site_address, page, scheme, width):
    assert violations(browser, f"{site_address}{page}.html", scheme=scheme, width=width) == []


def test_axe_would_find_something(browser, tmp_path):
    bad = "<!doctype html><title>Bad</title><main><h1>Bad</h1><p><img src='x.png'></p></main>"
    (tmp_path / "bad.html").write_text(bad, encoding="utf-8")
    with serve(tmp_path) as address:
        found = "\n".join(violations(browser, f"{address}bad.html"))
    assert "image-alt" in found and "html-has-lang" in found
