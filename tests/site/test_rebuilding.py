"""A site that is edited and built again: what failed is repaired, and nothing is stale.

Pages are executed side by side and once, and each cell that fails is told. Figures and exercises
are numbered within their page, by the name of its file. Pages show widgets as the package has them,
whatever the cache of executed cells holds.
"""

import json
import os
import re
from shutil import copytree
from types import SimpleNamespace

import nbformat
import pytest
from course.pages import PACKAGES, source_folder
from myst_nb.core.render import WIDGET_STATE_MIMETYPE
from tools import ROOT
from tools.browsing import open_page
from tools.site_builds import build, small_project
from tools.small_pages import SAID, SMALL, cell, drawing, notebook, predict, svg

TOGETHER = min(2, os.cpu_count() or 1)
# A cell of two pages, which waits until the kernel of the other one is there, too.
MEETS = cell(f"""import os, time
from pathlib import Path

Path(f"there.{{os.getpid()}}").touch()
end = time.monotonic() + 60
while len([*Path().glob("there.*")]) < {TOGETHER} and time.monotonic() < end:
    time.sleep(0.05)
print("met others:", len([*Path().glob("there.*")]) >= {TOGETHER})""")
# A failing cell with a figure; one with a number, which the page doesn't show; and one after them.
FAILS = notebook(
    "# Page",
    drawing("dot", "A dot.", "Dot.", 'tries = open("tries", "a")\n'
            'print("x", file=tries, flush=True)\n1 / 0'),
    "In the text.\n",
    cell('assert not tries, "there are no tries"\nfrom attncourse.glue import glue\n'
         'glue("share", "3 of 5")', "remove-cell"),
    "They share {eval}`share` of it: {numref}`fig-dot`.\n",
    cell('print("executed", "afterwards")\nassert (\n    tries is None\n)'), MEETS,
)  # fmt: skip
REPAIRS = {"1 / 0": svg(SMALL), "not tries": "tries", "is None": ""}
WAITS = cell("import os\nassert os.path.exists('ready')", "remove-cell")
ERRORS = {
    r"fails\.md:9, cell 1 \(.*\)": "ZeroDivisionError: division by zero",
    r"fails\.md:21, cell 2 \(.*\)": "AssertionError: there are no tries",
    r"fails\.md:31, cell 3 \(.*\)": "AssertionError",
    r"waits\.md:\d+, cell 1 \(.*\)": "AssertionError",
}
SAYS = "There it is {eval}`fails.md::share:s`, see {numref}`fig-dot`.\n"
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
    """Return a page with two figures, two exercises and the solution of the second."""
    own, parts = name.lower(), [f"# {name}"]
    for number in (1, 2):
        figure = f":name: fig-{own}-{number}\n:alt: A square.\n\nCaption."
        parts.append(f"```{{figure}} square.svg\n{figure}\n```")
    for number in (1, 2):
        parts.append(f"```{{exercise}} Begin\n:label: ex-{own}-{number}\nTry.\n```")
    parts.append(f"```{{solution}} ex-{own}-2\n:label: sol-{own}-2\nDone.\n```")
    parts.append(f"See {{numref}}`fig-{other.lower()}-2` and {{ref}}`ex-{other.lower()}-2`.\n")
    return "\n\n".join(parts)


PAGES = {
    "index": page("index", "L04_Heads"),
    "L04_Heads": page("L04_Heads", "museum"),
    "museum": page("museum", "index"),
    "told": "# Told\n\n```{myths}\nOnly in the source.\n```\n",
    "L78_Said": SAID,
    "widgets": WIDGETS,
    "fails": FAILS,
    "waits": notebook("# Waits\n", WAITS),
    "elsewhere": notebook("# Elsewhere\n", SAYS, MEETS),
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
    """Build a site, on which cells fail; with edits of pages and of browser code; of the package.

    Return what was there each time.
    """
    project, imported = html.parents[1], html.parents[2] / "imported"
    for package in PACKAGES:
        copytree(source_folder() / package, imported / package)
    book, found = small_project(project, PAGES) / "book", []
    (book / "square.svg").symlink_to(ROOT / "book/assets/favicon.svg")

    def again():
        now = SimpleNamespace(result=build(project, imports_from=imported))
        paths = [*(html / "book").glob("*.html")]
        now.executed = re.findall(r"Executing (\d+) pages, (\d+) at a time", now.result.stdout)
        now.tries = len((book / "tries").read_text(encoding="utf-8").splitlines())
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
    for broken, whole in REPAIRS.items():
        edit(book / "fails.md", broken, whole)
    (book / "ready").touch()
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


def text_of(page):
    return re.sub(r"<[^>]+>", "", page)


def test_pages_are_executed_side_by_side_and_a_failing_cell_is_told_where_it_stands(built):
    first = built[0].result
    assert first.returncode == 1
    assert re.findall("WARNING.*|INFO.*", first.stderr) == []
    for place, error in ERRORS.items():
        assert re.search(f"book/{place}: {error}", first.stderr), first.stderr
    texts = {name: text_of(page) for name, page in built[0].pages.items()}
    failed = "This cell failed"  # said in its place
    assert failed in texts["waits"] and texts["fails"].count(failed) == 3
    told = ("there are no", "Zero", "In the text", "They share", "tries is")
    places = [texts["fails"].index(words) for words in told]
    assert places == sorted(places)
    assert "They share [not measured] of it: Figure 1." in texts["fails"]
    assert "executed afterwards" in texts["fails"]
    assert "There it is [not measured], see Figure 1." in texts["elsewhere"]
    assert all("met others: True" in texts[name] for name in ("elsewhere", "fails"))


def test_what_failed_is_tried_again_and_is_whole_once_it_is_repaired(built):
    assert [now.result.returncode for now in built] == [1, 0, 0]
    assert [now.tries for now in built] == [1, 2, 3]
    for now in built[1:]:
        assert "They share 3 of 5 of it" in text_of(now.pages["fails"])
        assert "There it is 3 of 5, see Figure 1." in text_of(now.pages["elsewhere"])
        assert not any("This cell failed" in page for page in now.pages.values())


def test_numbers_are_the_pages_own_on_it_and_on_others_also_when_a_page_comes_before(built):
    for now in built[:2]:
        assert numbers_on(now.pages["index"]) == expected("", "L04.")
        assert numbers_on(now.pages["L04_Heads"]) == expected("L04.", "M.")
        assert numbers_on(now.pages["museum"]) == expected("M.", "")
    assert numbers_on(built[1].pages["L01_Tokens"]) == expected("L01.", "")


def test_an_edit_changes_the_pages_that_tell_of_it_and_executes_and_writes_no_others(built):
    assert ["Rows have no cells" in now.pages["told"] for now in built] == [False, True, True]
    assert "Better text." in built[1].pages["widgets"]
    at_a_time = [str(min(4, number, os.cpu_count() or 1)) for number in (5, 2, 5)]
    # The second time that's what failed; an edit of the package executes all.
    assert [now.executed for now in built] == [[one] for one in zip("525", at_a_time, strict=True)]
    results = ["tensor(10)", "tensor(10)", "tensor(0.)"]
    assert all(result in now.pages["widgets"] for now, result in zip(built, results, strict=True))
    _, before, after = (now.times for now in built)
    for name in ("L01_Tokens", "L04_Heads", "museum"):
        assert before[name] == after[name]


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
    marks, new_marks, _ = (dict(files_of(now.pages["widgets"])) for now in built)
    changed = {name for name in FILES if marks[name] != new_marks[name]}
    assert changed == {"predict.css", "predict.js"}  # asked for anew and alone
    state = re.search(r'widget-state\+json">(.*?)</script>', page, re.S)[1]
    assert "<" not in state  # or it could end the script that holds it
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
