"""A downloaded notebook is whole: texts are words, figures have captions."""

import re
from ast import literal_eval
from copy import deepcopy

import nbformat
import pytest
from myst_nb.core.utils import coalesce_streams
from tools.lesson_runs import all_notebooks
from tools.site_builds import read

MYST = re.compile(r"\{[a-z:-]+\}`|^:[a-z-]+:|:::|(`{3,}|:{3,})\{|^\([a-z-]+\)=", re.MULTILINE)
WIDGET = "application/vnd.jupyter.widget-view+json"
FIGURE = "image/svg+xml"
GIVEN = "application/papermill.record/text/plain"  # to the page's prose, by glue


def texts_of(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


@pytest.fixture(scope="session")
def downloaded(site):
    """Return a function that gives a page's notebook as a reader gets it, and the page."""

    def read_both(page):
        notebook = nbformat.read(site / "_sources" / f"{page}.ipynb", as_version=4)
        return notebook, read(site / f"{page}.html")

    return read_both


@pytest.mark.parametrize("page", all_notebooks())
def test_it_has_every_cell_as_it_was_executed(downloaded, run_notebook, page):
    notebook, _ = downloaded(page)
    nbformat.validate(notebook)
    executed = [cell for cell in run_notebook(page).notebook.cells if cell.cell_type == "code"]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, as_executed in zip(cells, executed, strict=True):
        assert cell.source == as_executed.source
        is_stub = "exercise-stub" in cell.metadata.get("tags", [])  # as one that never ran
        outputs = coalesce_streams(deepcopy(as_executed.get("outputs", [])))
        kinds = [set(output.get("data", ())) for output in outputs]
        assert [set(o.get("data", ())) for o in cell.outputs] == ([] if is_stub else kinds)


@pytest.mark.parametrize("page", all_notebooks())
def test_its_texts_are_words(downloaded, page):
    notebook, _ = downloaded(page)
    texts = texts_of(notebook)
    assert MYST.findall(re.sub(r"```.*?```|`[^`]*`", "", texts, flags=re.DOTALL)) == []
    assert MYST.findall(texts) == []
    data = [o.get("data", {}) for cell in notebook.cells for o in cell.get("outputs", ())]
    written = "\n\n".join([texts, *(kinds.get("text/markdown", "") for kinds in data)])
    links = re.findall(r'(?:\]\(|<a href=")#([^)"]+)', written)
    places = re.findall(r'<a id="([^"]+)"', texts)
    assert set(links) == set(places) and len(places) == len(set(places))


@pytest.mark.parametrize("page", all_notebooks())
def test_each_figure_and_exercise_of_the_page_is_in_it(downloaded, page):
    notebook, soup = downloaded(page)
    texts = texts_of(notebook)
    captions = [found.text for found in soup.select("article figcaption .caption-number")]
    assert re.findall(r"\*\*(Figure [^*]*)\.\*\*", texts) == [text.strip() for text in captions]
    drawn = [
        o for cell in notebook.cells for o in cell.get("outputs", ()) if FIGURE in o.get("data", ())
    ]
    assert not any(FIGURE in output.metadata for output in drawn)  # no drawing for phones
    assert all("image/png" in output.data for output in drawn)
    assert len(drawn) == len(captions) == texts.count("<summary>The figure in words</summary>")
    titles = []
    for title in soup.select("article .exercise > .admonition-title"):
        words = title.text.removesuffix("".join(one.text for one in title.select(".effort")))
        titles.append(" ".join(words.split()).replace(" (", ": ", 1).removesuffix(")"))
    in_notebook = re.findall(r"^#### (Exercise .*)", texts, re.MULTILINE)
    assert [title.replace("\\", "").replace("`", "") for title in in_notebook] == titles
    assert texts.count("<summary>Solution to Exercise") >= len(titles)


@pytest.mark.parametrize("page", all_notebooks())
def test_measured_numbers_are_on_the_page_and_in_it_as_they_were_given(
    downloaded, run_notebook, page
):
    given = {
        output.metadata.scrapbook.name: literal_eval(output.data[GIVEN])
        for cell in run_notebook(page).notebook.cells
        for output in cell.get("outputs", ())
        if GIVEN in output.get("data", ())
    }
    notebook, soup = downloaded(page)
    cells = run_notebook(page).notebook.cells  # headers of code cells ask, too, for other pages
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    asked = [given[name] for name in re.findall(r"\{eval\}`(\w+)`", source)]
    assert [number.text for number in soup.select("article .pasted-text")] == asked
    plain = texts_of(notebook).replace("\\", "").replace("&amp;", "&")
    assert all(number in plain for number in asked)


def test_what_the_page_folds_is_folded(downloaded):
    for page in all_notebooks():
        for cell in downloaded(page)[0].cells:
            tags = set(cell.metadata.get("tags", ()))
            is_folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            assert is_folded == bool(
                tags & {"hide-input", "remove-input", "remove-cell", "exercise-solution"}
            )


def test_widgets_are_told_in_words(downloaded):
    told = {
        output.data["text/plain"]
        for page in all_notebooks()
        for cell in downloaded(page)[0].cells
        for output in cell.get("outputs", ())
        if WIDGET in output.get("data", ())
    }
    assert any(text.startswith("Predict: ") and "\n  - " in text for text in told)
    assert any(text.startswith("Run this cell for an interactive figure. ") for text in told)
    assert "Run this cell for fields to answer in." in told
    assert not any("(" in text.split()[0] for text in told)  # no Predict('...')


PLAIN = """# Page | one

## Here &amp; there

*Stars*, `code | bar`, $a | b$, a\\_name, 2 \\* 3 \\* 4, 1 \\< 2; 100 \\$ or 200 \\$. See
[below](#there) and the other page, and [elsewhere](https://example.org/x_y).

1. first

   with more
2. `second`

   * inner

> quoted
> twice

| left | right |
| --- | --- |
| `a \\| b` | $x_1$ |

**term**: Its meaning.

```python
plain = "code"
```

3\\. no list

<a id="there"></a>

## There"""


def test_markdown_is_plain_and_means_the_same(small):
    notebook = nbformat.read(small.parent / "_sources/book/whole.ipynb", as_version=4)
    assert texts_of(notebook).replace(notebook.cells[1].source + "\n\n", "") == PLAIN
    assert 'pip install -e ".[lessons]"' in notebook.cells[1].source
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert code == ["hidden = 1", "hidden + 1"]
    assert not list((small.parent / "_static").glob("*.whl"))  # no address, no wheel


def test_what_a_notebook_cannot_show_is_a_warning(warnings):
    assert re.search(r"index\.md:\d+: WARNING: .*<sidebar>", warnings)
