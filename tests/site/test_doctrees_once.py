"""Other pages' trees are read once while references are resolved, and afresh by anybody else."""

from collections import Counter

import pytest
from doctrees_once import READERS
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import ReferencesResolver, SphinxPostTransform

TABLES = "".join(
    f".. _table-{n}:\n\n.. table:: Of {n}\n\n   = =\n   1 2\n   = =\n\n" for n in (1, 2, 3)
)
NAMES = "Read :numref:`table-3`, :numref:`table-1` and :numref:`table-2`.\n"
PAGES = {
    "index": f"Start\n=====\n\n{NAMES}\n.. toctree::\n\n   other\n   tables\n",
    "other": f"Other\n=====\n\n{NAMES}",
    "tables": f"Tables\n======\n\n{TABLES}",
}


@pytest.fixture
def asked(monkeypatch):
    """How often each page's tree is read."""
    asked, reads = Counter(), BuildEnvironment.get_doctree

    def counted(env, name):
        asked[name] += 1
        return reads(env, name)

    monkeypatch.setattr(BuildEnvironment, "get_doctree", counted)
    return asked


def test_numbers_of_another_page_are_found_in_one_reading(tmp_path, asked):
    for name, text in PAGES.items():
        (tmp_path / f"{name}.rst").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    options = {"extensions": ["doctrees_once"], "numfig": True}
    app = Sphinx(tmp_path, None, out, tmp_path / "trees", "html", options, status=None)
    app.build()
    assert asked["tables"] <= 2  # for its numbers, and to be written
    for name in ("index", "other"):
        page = (out / f"{name}.html").read_text(encoding="utf-8")
        places = [page.index(f">Table {n}<") for n in (3, 1, 2)]
        assert places == sorted(places)
    assert app.env.get_doctree("tables") is not app.env.get_doctree("tables")
    assert "get_doctree" not in vars(app.env) and not READERS


def test_a_build_that_breaks_off_keeps_no_trees(tmp_path):
    (tmp_path / "index.rst").write_text("Start\n=====\n", encoding="utf-8")
    options = {"extensions": ["doctrees_once"]}
    app = Sphinx(tmp_path, None, tmp_path / "out", tmp_path / "trees", "html", options, status=None)

    class Breaks(SphinxPostTransform):
        default_priority = ReferencesResolver.default_priority

        def run(self, **_):
            raise RuntimeError("in between")

    app.add_post_transform(Breaks)
    with pytest.raises(RuntimeError, match="in between"):
        app.build()
    assert "get_doctree" not in vars(app.env) and not READERS
