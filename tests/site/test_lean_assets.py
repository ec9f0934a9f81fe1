"""The site's own scripts and sheets are published without comments and indents."""

import re
from pathlib import Path

import pytest
from lean_assets import ASSETS, MAKE_LEAN
from tools import ROOT
from tools.site_builds import build, small_project

from attnlib.widgets import _browser_code

NAMES = sorted(path.name for path in (ROOT / ASSETS).iterdir() if path.suffix in MAKE_LEAN)


@pytest.fixture(scope="module")
def static(tmp_path_factory) -> Path:
    """The static files of a site with one page."""
    folder = tmp_path_factory.mktemp("lean")
    project = small_project(folder / "project", {"index": "# Page\n\n```python\nx = (1, 2)\n```\n"})
    result = build(project, project, "-W")
    assert result.returncode == 0, result.stderr
    return project / "_build" / "html" / "_static"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_no_comments_and_no_indents(static, name):
    text = (static / name).read_text(encoding="utf-8")
    assert text and not re.search(r"^\s|/\*|(^|;)//", text, re.MULTILINE)


def test_no_text_stands_within_a_text():
    """What takes comments and spaces away takes them from a template in a template, too."""
    within = re.compile(r"`[^`]*\$\{[^}`]*`")
    scripts = [*(ROOT / ASSETS).glob("*.js"), *_browser_code.FOLDER.rglob("*.js")]
    assert len(scripts) > 50
    for path in scripts:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not any(within.search(line) for line in lines), path.name


def test_code_of_a_page_is_marked_where_its_color_changes(static):
    """The extension code_colors is at work."""
    html = (static.parent / "book" / "index.html").read_text(encoding="utf-8")
    assert 'x <span class="o">=</span> (<span class="l">1</span>, <span class="l">2</span>)' in html
