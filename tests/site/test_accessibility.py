"""axe-core finds nothing on any page, in either theme, on a desktop or a phone."""

from pathlib import Path

import axe_playwright_python
import pytest
from tools.browsing import open_page, serve
from tools.lesson_runs import all_pages

LIGHT_DESK, DARK_PHONE = ("light", 1280), ("dark", 360)
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


# Every page in both themes and on both screens; what stands around a page on a wide screen is the
# same on all, so one page shows it in the dark.
SETTINGS = [(page, *look) for page in [*all_pages(), "search"] for look in [LIGHT_DESK, DARK_PHONE]]
SETTINGS.append((all_pages()[0], "dark", 1280))


@pytest.mark.parametrize(("page", "scheme", "width"), SETTINGS)
def test_axe_finds_nothing(browser, site_address, page, scheme, width):
    assert violations(browser, f"{site_address}{page}.html", scheme=scheme, width=width) == []


def test_axe_would_find_something(browser, tmp_path):
    bad = "<!doctype html><title>Bad</title><main><h1>Bad</h1><p><img src='x.png'></p></main>"
    (tmp_path / "bad.html").write_text(bad, encoding="utf-8")
    with serve(tmp_path) as address:
        found = "\n".join(violations(browser, f"{address}bad.html"))
    assert "image-alt" in found and "html-has-lang" in found
