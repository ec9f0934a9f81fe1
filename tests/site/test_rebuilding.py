"""A site that is edited and built again: numbers stay with their pages, nothing is stale.

Figures and exercises are numbered within their page, by the name of its file. Pages show widgets as
the package has them, whatever the cache of executed cells holds.
"""

import json
import re
from types import SimpleNamespace

import nbformat
import pytest
from course.counts import prefix_of
from myst_nb.core.render import WIDGET_STATE_MIMETYPE
from tools import ROOT
from tools.browsing import open_page
from tools.site_builds import build, copied_packages, small_project
from tools.small_pages import SAID, cell, notebook, predict

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

```{myths}
Only in the source.
```
"""
STREAMED = """import sys, time
for word in ("one", "two"):
    print(word)
    sys.stdout.flush()
    time.sleep(0.3)"""
COMPASS = """import torch
from attncourse.widgets import QueryCompass
QueryCompass(torch.eye(2), torch.eye(2), labels=["a", "b"], origin="hand-built")"""
WIDGETS = notebook(
    "# Page\n\nText.\n", cell("from attnlib import causal_mask\ncausal_mask(4).sum()"),
    cell(STREAMED), cell(COMPASS), predict("What is <b>6 * 7</b>?", '"41", "42"', 1),
    predict("Never shown?", tags="remove-output"),
)  # fmt: skip
FILES = ["shared.css", "predict.css", "query_compass.css"]
FILES += ["shared.js", "predict.js", "query_compass.js"]


def page(name, other):
    return PAGE.format(page=name, name=name.lower(), other=other.lower())


PAGES = {
    "index": page("index", "L04_Heads"),
    "L04_Heads": page("L04_Heads", "museum"),
    "museum": page("museum", "index"),
    "told": TOLD,
    "L78_Said": SAID,
    "widgets": WIDGETS,
}


def edit(path, old, new):
    """Replace words in a file by others."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """Return the folder of the pages of `built`."""
    return tmp_path_factory.mktemp("edited") / "project/_build/html"


@pytest.fixture(scope="module")
def built(html):
    """Build a site; with edits of its pages and of browser code; with one of the package.

    Return what was there each time.
    """
    project, imported = html.parents[1], copied_packages(html.parents[2] / "imported")
    book, found = small_project(project, PAGES) / "book", []
    (book / "square.svg").symlink_to(ROOT / "book/assets/favicon.svg")

    def again():
        result = build(project, imports_from=imported)
        assert result.returncode == 0, result.stderr
        paths = [*(html / "book").glob("*.html")]
        now = SimpleNamespace(executed=re.findall(r"Executing (\d+) page", result.stdout))
        now.pages = {path.stem: path.read_text(encoding="utf-8") for path in paths}
        now.times = {path.stem: path.stat().st_mtime_ns for path in paths}
        now.notebook = (html / "_sources/book/widgets.ipynb").read_text(encoding="utf-8")
        found.append(now)

    again()
    (book / "L01_Tokens.md").write_text(page("L01_Tokens", "index"), encoding="utf-8")
    edit(project / "_toc.yml", "- file", "- file: book/L01_Tokens\n- file")
    edit(book / "L78_Said.md", "have cells", "have no cells")
    edit(book / "widgets.md", "Text.", "Better text.")
    edit(imported / "attncourse/widgets/predict/widget.js", '"Think again"', '"Once more"')
    edit(imported / "attncourse/widgets/predict/widget.css", "weight: 700", "weight: 800")
    (imported / "attncourse/lessons/l04/__init__.py").unlink()
    again()
    with (imported / "attnlib/masks.py").open("a", encoding="utf-8") as masks:
        masks.write("\n\ndef causal_mask(size): return torch.zeros(size)\n")
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


def test_pages_that_have_not_changed_are_not_written_again(built):
    _, before, after = (now.times for now in built)
    for name in ("L01_Tokens", "L04_Heads", "museum"):
        assert before[name] == after[name]


def test_only_an_edit_of_the_package_executes_cells_again(built):
    assert [now.executed for now in built] == [["2"], [], ["2"]]
    results = ["tensor(10)", "tensor(10)", "tensor(0.)"]
    assert all(result in now.pages["widgets"] for now, result in zip(built, results, strict=True))
    assert "Better text." in built[1].pages["widgets"]


def test_what_is_executed_again_is_the_same_to_the_last_letter(built):
    _, before, after = built
    assert after.pages["widgets"] == before.pages["widgets"].replace("tensor(10)", "tensor(0.)")
    assert after.notebook == before.notebook.replace("tensor(10)", "tensor(0.)")


def files_of(page):
    """The widgets' files that a page loads, with the mark of what is in them, in order."""
    return re.findall(r'(?:src|href)="\.\./_static/widgets/([\w.]+)\?v=(\w+)"', page)


def test_a_page_loads_the_files_of_its_widgets_once_and_holds_no_code(built, html):
    page = built[0].pages["widgets"]
    assert [name for name, _ in files_of(page)] == FILES
    assert sorted(path.name for path in (html / "_static/widgets").iterdir()) == sorted(FILES)
    assert "_esm" not in page and "_css" not in page
    assert page.index("widgets/predict.js") < page.index("widget-state+json")
    assert "_static/widgets" not in built[0].pages["museum"]


def test_an_edit_of_browser_code_is_asked_for_anew_and_alone(built):
    marks, new_marks, _ = (dict(files_of(now.pages["widgets"])) for now in built)
    changed = {name for name in FILES if marks[name] != new_marks[name]}
    assert changed == {"predict.css", "predict.js"}


def test_a_state_cannot_end_the_script_that_holds_it(built):
    state = re.search(r'widget-state\+json">(.*?)</script>', built[0].pages["widgets"], re.S)[1]
    assert "<" not in state
    asked = [one["state"].get("question") for one in json.loads(state)["state"].values()]
    assert "What is <b>6 * 7</b>?" in asked


def test_a_downloaded_notebook_carries_the_code_of_today(built):
    for now, words in zip(built, ("Think again", "Once more", "Once more"), strict=True):
        saved = nbformat.reads(now.notebook, as_version=4).metadata.widgets
        states = [one["state"] for one in saved[WIDGET_STATE_MIMETYPE]["state"].values()]
        codes = [state["_esm"] for state in states if state.get("_model_name") == "AnyModel"]
        assert sum(f'"{words}"' in code for code in codes) == 2  # of three widgets
        assert not any("_module" in state for state in states)


def test_the_restyled_widget_lives_also_in_a_page_opened_from_its_folder(built, html, browser):
    with open_page(browser, (html / "book/widgets.html").as_uri()) as (page, problems):
        page.get_by_label("42").check()
        page.get_by_role("button", name="Commit").click()
        assert page.get_by_role("button", name="Once more").is_visible()
        title = page.locator(".attn-predict .attn-title")
        assert title.evaluate("node => getComputedStyle(node, '::before').fontWeight") == "800"
        assert problems == []


@pytest.mark.parametrize(
    ("name", "prefix"), [("book/L10_Fast", ("L10",)), ("book/Later", ()), ("L1_Short", ())]
)
def test_lessons_are_known_by_their_names(name, prefix):
    assert prefix_of(name) == prefix
