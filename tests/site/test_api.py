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


def read_page(site, page):
    return (site / "book" / f"{page}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PUBLIC)
def test_everything_public_is_documented(site, page):
    """Constants are shown nowhere."""
    shown = set(re.findall(r'<dt class="sig[^>]* id="([^"]+)"', read_page(site, page)))
    offered = {
        f"{module.__name__}.{name}"
        for module in PUBLIC[page]
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
    }
    assert sorted(offered - shown) == []


def test_lessons_have_headings_over_their_exercises_and_widgets_the_signatures_of_their_init(site):
    html = read_page(site, "api_tools")
    for lesson in lessons():
        section = html[html.index(f"<h3>Of lesson {int(lesson[1:])}<") :]
        first = re.search(r'<dt class="sig[^>]* id="attncourse\.lessons\.(\w+)\.', section)
        assert first and first[1] == lesson
    signature = re.search(r'id="attncourse\.widgets\.HeadExplorer".*?</dt>', html, re.S)[0]
    assert "kwargs" not in signature
