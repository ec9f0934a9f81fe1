"""A site that is edited and built again: numbers stay with their pages, nothing is stale.

Figures and exercises are numbered within their page, by the name of its file.
"""

import re
from types import SimpleNamespace

import pytest
from course.counts import prefix_of
from course.publishing import SHEET
from tools import ROOT
from tools.site_builds import build, small_project
from tools.small_pages import SAID

PAGE = """# {page}

```{{figure}} square.svg
:name: fig-{name}-1
:alt: A square.

First.
```

```{{figure}} square.svg
:name: fig-{name}-2
:alt: A square.

Second.
```

```{{exercise}} Begin
:label: ex-{name}-1
Try.
```

```{{exercise}} Go on
:label: ex-{name}-2
Try.
```

```{{solution}} ex-{name}-2
:label: sol-{name}-2
Done.
```

See {{numref}}`fig-{other}-2` and {{ref}}`ex-{other}-2`.
"""
TOLD = """# Told

```{{myths}}
Only in the source.
```

{icon}
"""


def page(name, other):
    return PAGE.format(page=name, name=name.lower(), other=other.lower())


PAGES = {
    "index": page("index", "L04_Heads"),
    "L04_Heads": page("L04_Heads", "museum"),
    "museum": page("museum", "index"),
    "told": TOLD.format(icon="No icon."),
    "L78_Said": SAID,
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build a site; again with more in it; and again as it is. Return what was there each time."""
    project = small_project(tmp_path_factory.mktemp("edited") / "project", PAGES)
    book = project / "book"
    (book / "square.svg").symlink_to(ROOT / "book/assets/favicon.svg")
    found = []

    def again():
        result = build(project, project, "-W", "--keep-going")
        assert result.returncode == 0, result.stderr
        html = project / "_build/html"
        paths = [*(html / "book").glob("*.html")]
        pages = {path.stem: path.read_text(encoding="utf-8") for path in paths}
        times = {path.stem: path.stat().st_mtime_ns for path in paths}
        style = (html / "_static" / SHEET).read_text(encoding="utf-8")
        found.append(SimpleNamespace(pages=pages, times=times, style=style))

    again()
    (book / "L01_Tokens.md").write_text(page("L01_Tokens", "index"), encoding="utf-8")
    (book / "told.md").write_text(TOLD.format(icon="{fas}`rocket`"), encoding="utf-8")
    (book / "L78_Said.md").write_text(SAID.replace("have cells", "have no cells"), encoding="utf-8")
    toc = project / "_toc.yml"
    text = toc.read_text(encoding="utf-8")
    toc.write_text(text.replace("- file", "- file: book/L01_Tokens\n- file", 1), encoding="utf-8")
    again()
    again()
    return found


def numbers_on(html):
    """Return the numbers of a page's captions, titles and references, in their order."""
    article = re.sub("<[^>]+>", "", html[html.index("<article") : html.index("</article")])
    return re.findall(r"(?:Figure|Exercise) (?:\w+\.)?\d+", article)


def expected(prefix, other):
    own = [f"{kind} {prefix}{n}" for kind in ("Figure", "Exercise") for n in (1, 2)]
    return [*own, f"Exercise {prefix}2", f"Figure {other}2", f"Exercise {other}2"]


def test_numbers_are_the_pages_own_on_it_and_on_others_also_when_a_page_comes_before(built):
    for now in built[:2]:
        assert numbers_on(now.pages["index"]) == expected("", "L04.")
        assert numbers_on(now.pages["L04_Heads"]) == expected("L04.", "M.")
        assert numbers_on(now.pages["museum"]) == expected("M.", "")
    assert numbers_on(built[1].pages["L01_Tokens"]) == expected("L01.", "")


def test_an_edited_lesson_changes_the_page_that_tells_of_it(built):
    assert ["Rows have no cells" in now.pages["told"] for now in built] == [False, True, True]
    assert ["Rows have cells" in now.pages["told"] for now in built] == [True, False, False]


def test_an_icon_that_is_used_later_is_there(built):
    assert [".fa-rocket" in now.style for now in built] == [False, True, True]


def test_pages_that_have_not_changed_are_not_written_again(built):
    _, before, after = (now.times for now in built)
    for name in ("L01_Tokens", "L04_Heads", "museum"):
        assert before[name] == after[name]


@pytest.mark.parametrize(
    ("name", "prefix"), [("book/L10_Fast", ("L10",)), ("book/Later", ()), ("L1_Short", ())]
)
def test_lessons_are_known_by_their_names(name, prefix):
    assert prefix_of(name) == prefix
