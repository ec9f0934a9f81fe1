"""The API pages: whatever the packages offer is on one of them."""

import inspect
import re

import pytest
from tools.figures import ILLUSTRATIONS

import attndoctor
import attnlib
from attncourse import data, tasks, tokens, training, widgets
from attncourse.lessons import lessons
from attndoctor import museum
from attnlib import heatmap, interop, model, patterns, plotting

PUBLIC = {
    "api": [attnlib, model, patterns, heatmap, interop, plotting],
    "api_attndoctor": [attndoctor, museum],
    "api_tools": [tokens, tasks, training, data, *ILLUSTRATIONS, widgets, *lessons().values()],
}
# Where sections stood before each package had its page: links to them still lead somewhere.
LEFT = {
    "api": ["tokens", "made-languages", "training", "saved-weights"],
    "api_tools": ["doctor", "museum", "figures"],
}


def read_page(site, page):
    return (site / "book" / f"{page}.html").read_text(encoding="utf-8")


def undocumented(html, modules):
    """Return what the modules offer and the page doesn't show; constants are shown nowhere."""
    shown = set(re.findall(r'<dt class="sig[^>]* id="([^"]+)"', html))
    offered = {
        f"{module.__name__}.{name}"
        for module in modules
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
    }
    return sorted(offered - shown)


@pytest.mark.parametrize("page", PUBLIC)
def test_everything_public_is_documented(site, page):
    assert undocumented(read_page(site, page), PUBLIC[page]) == []


@pytest.mark.parametrize("page", LEFT)
def test_what_moved_has_left_its_anchors(site, page):
    html = read_page(site, page)
    assert [name for name in LEFT[page] if f'id="{name}"' not in html] == []


@pytest.mark.parametrize("lesson", lessons())
def test_each_lesson_has_a_heading_over_its_exercises(site, lesson):
    html = read_page(site, "api_tools")
    section = html[html.index(f"<h3>Of lesson {int(lesson[1:])}<") :]
    first = re.search(r'<dt class="sig[^>]* id="attncourse\.lessons\.(\w+)\.', section)
    assert first and first[1] == lesson


def test_a_widgets_signature_is_that_of_its_init(site):
    html = read_page(site, "api_tools")
    assert (
        "kwargs" not in re.search(r'id="attncourse\.widgets\.HeadExplorer".*?</dt>', html, re.S)[0]
    )
