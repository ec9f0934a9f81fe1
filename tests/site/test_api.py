"""The API pages: whatever attnlib offers is on one of them."""

import inspect
import re

import pytest

import attnlib
from attnlib import heatmap, interop, museum, plotting, widgets
from attnlib.exercises import l03, l04, l05

PUBLIC = {
    "api": {module: module.__all__ for module in (attnlib, heatmap, interop)},
    "api_tools": {
        **{module: module.__all__ for module in (museum, plotting, widgets)},
        **{module: module.EXERCISES for module in (l03, l04, l05)},
    },
}


@pytest.mark.parametrize("page", PUBLIC)
def test_everything_public_is_documented(site, page):
    html = (site / "book" / f"{page}.html").read_text(encoding="utf-8")
    shown = set(re.findall(r'<dt class="sig[^>]* id="([^"]+)"', html))
    wanted = {
        f"{module.__name__}.{name}"
        for module, names in PUBLIC[page].items()
        for name in names
        if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
    }
    assert sorted(wanted - shown) == []


def test_a_widgets_signature_is_that_of_its_init(site):
    html = (site / "book" / "api_tools.html").read_text(encoding="utf-8")
    assert "kwargs" not in re.search(r'id="attnlib\.widgets\.HeadExplorer".*?</dt>', html, re.S)[0]
