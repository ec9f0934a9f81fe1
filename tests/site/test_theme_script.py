"""The theme's script asks for no sizes of boxes: reachable.js does."""

from pathlib import Path

import pydata_sphinx_theme
from theme_script import BOXES

SCRIPT = Path("scripts", "pydata-sphinx-theme.js")
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"


def test_what_is_taken_out_stands_in_the_theme_once():
    """In another edition it may be written otherwise: then pages come alive late."""
    assert len(BOXES.findall((THEME / SCRIPT).read_text(encoding="utf-8"))) == 1


def test_the_site_has_the_script_without_it(site):
    ours = (site / "_static" / SCRIPT).read_text(encoding="utf-8")
    assert not BOXES.search(ours)
    assert "scrollWidth" in ours  # the rest of it is there
