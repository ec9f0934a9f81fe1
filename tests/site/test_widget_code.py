"""Pages show widgets as the package has them, whatever the cache holds, without executing cells."""

import json
import re

import nbformat
import pytest
from tools.browsing import open_page
from tools.site_builds import build, copied_packages, small_project
from tools.small_pages import cell, notebook, predict

PAGE = notebook(
    "# Page\n\nText.\n", cell("from attnlib import causal_mask\ncausal_mask(4).sum()"),
    predict("What is <b>6 * 7</b>?", '"41", "42"', 1),
)  # fmt: skip
FILES = ["shared.css", "predict.css", "shared.js", "predict.js"]


def files_of(html):
    """The widgets' files that a page loads, with the mark of what is in them, in order."""
    return re.findall(r'(?:src|href)="\.\./_static/widgets/([\w.]+)\?v=(\w+)"', html)


@pytest.fixture(scope="module")
def restyled(tmp_path_factory):
    """Build a site, edit a page's text and a widget's code and style, build again, and once more.

    Return the site, what was built before and after, and what a last edit made of it.
    """
    folder = tmp_path_factory.mktemp("restyled")
    source = copied_packages(folder / "imported")
    project = small_project(folder / "project", {"index": PAGE, "plain": "# Plain\n\nNone.\n"})
    html = project / "_build" / "html"

    def built():
        result = build(project, project, "-W", imports_from=source)
        assert result.returncode == 0, result.stderr
        page = (html / "book" / "index.html").read_text(encoding="utf-8")
        notebook = nbformat.read(html / "_sources" / "book" / "index.ipynb", as_version=4)
        return "Executing 1 page" in result.stdout, page, notebook

    before = built()
    predict = source / "attncourse" / "widgets" / "predict"
    for path, old, new in (
        (predict / "widget.js", '"Think again"', '"Once more"'),
        (predict / "widget.css", "font-weight: 700", "font-weight: 800"),
        (project / "book/index.md", "Text.", "Better text."),
    ):
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
    (source / "attncourse" / "lessons" / "l04" / "__init__.py").unlink()
    after = built()

    def edit_masks():
        with (source / "attnlib" / "masks.py").open("a", encoding="utf-8") as masks:
            masks.write("\n\ndef causal_mask(size): return torch.zeros(size)\n")
        return built()

    return html, before, after, edit_masks


@pytest.mark.thorough
def test_a_page_loads_the_files_of_its_widgets_once_and_holds_no_code(restyled):
    html, (_, page, _), *_ = restyled
    assert [name for name, _ in files_of(page)] == FILES
    assert sorted(path.name for path in (html / "_static" / "widgets").iterdir()) == sorted(FILES)
    assert "_esm" not in page and "_css" not in page
    assert page.index("widgets/predict.js") < page.index("widget-state+json")
    plain = (html / "book" / "plain.html").read_text(encoding="utf-8")
    assert "_static/widgets" not in plain


def test_a_state_cannot_end_the_script_that_holds_it(restyled):
    _, (_, page, _), *_ = restyled
    state = re.search(r'<script type="[^"]*widget-state\+json">(.*?)</script>', page, re.S)[1]
    assert "<" not in state
    assert "What is <b>6 * 7</b>?" in [
        e["state"].get("question") for e in json.loads(state)["state"].values()
    ]


def test_edits_of_text_and_browser_code_execute_nothing_and_publish_nothing_stale(restyled):
    html, (first, page, _), (second, new_page, _), _ = restyled
    assert first and not second
    assert "tensor(10)" in page and "tensor(10)" in new_page and "Better text." in new_page
    marks, new_marks = dict(files_of(page)), dict(files_of(new_page))
    changed = {name for name in FILES if marks[name] != new_marks[name]}
    assert changed == {"predict.css", "predict.js"}  # which a browser then asks for anew
    code = (html / "_static" / "widgets" / "predict.js").read_text(encoding="utf-8")
    assert '"Once more"' in code and '"Think again"' not in code
    assert "font-weight: 800" in (html / "_static" / "widgets" / "predict.css").read_text()


def test_a_downloaded_notebook_carries_the_code_of_today(restyled):
    _, (_, _, before), (_, _, after), _ = restyled
    for downloaded, old, new in (
        (before, "Once more", "Think again"),
        (after, "Think again", "Once more"),
    ):
        saved = downloaded.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
        (code,) = [e["state"]["_esm"] for e in saved.values() if "_esm" in e["state"]]
        assert new in code and old not in code
        assert all("_module" not in entry["state"] for entry in saved.values())


def test_the_restyled_widget_lives_also_in_a_page_opened_from_its_folder(restyled, browser):
    html, *_ = restyled
    with open_page(browser, (html / "book" / "index.html").as_uri()) as (page, problems):
        page.get_by_label("42").check()
        page.get_by_role("button", name="Commit").click()
        assert page.get_by_role("button", name="Once more").is_visible()
        mark = "getComputedStyle(document.querySelector('.attn-title'), '::before').fontWeight"
        assert page.evaluate(mark) == "800"
        assert problems == []


@pytest.mark.thorough
def test_editing_the_package_executes_a_page(restyled):
    executed, page, _ = restyled[-1]()
    assert executed and "tensor(0.)" in page
