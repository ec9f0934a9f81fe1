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
WIDGETS = ("interactive figure", "fields to answer in")
FIGURE = "image/svg+xml"
FOLDED = {"hide-input", "remove-input", "remove-cell", "exercise-solution"}
GIVEN = "application/papermill.record/text/plain"  # to the page's prose, by glue


def texts_of(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def outputs_of(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


@pytest.mark.parametrize("page", all_notebooks())
def test_it_has_all_that_was_executed_and_words_for_all_that_the_page_has(run_notebook, site, page):
    notebook = nbformat.read(site / "_sources" / f"{page}.ipynb", as_version=4)
    nbformat.validate(notebook)
    executed, soup = run_notebook(page).notebook, read(site / f"{page}.html")
    was_executed = [cell for cell in executed.cells if cell.cell_type == "code"]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, was in zip(cells, was_executed, strict=True):
        tags = {*cell.metadata.get("tags", [])}
        assert cell.source == was.source
        kinds = [set(o.get("data", ())) for o in coalesce_streams(deepcopy(was.get("outputs", [])))]
        kinds = [] if "exercise-stub" in tags else kinds  # as one that never ran
        assert [set(o.get("data", ())) for o in cell.outputs] == kinds
        is_folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert is_folded == (not FOLDED.isdisjoint(tags))

    texts, outputs = texts_of(notebook), outputs_of(notebook)
    assert MYST.findall(texts) == []
    written = [output.get("data", {}).get("text/markdown", "") for output in outputs]
    links = re.findall(r'(?:\]\(|<a href=")#([^)"]+)', "\n\n".join([texts, *written]))
    places = re.findall(r'<a id="([^"]+)"', texts)
    assert set(links) == set(places) and len(places) == len(set(places))
    captions = [found.text for found in soup.select("article figcaption .caption-number")]
    assert re.findall(r"\*\*(Figure [^*]*)\.\*\*", texts) == [text.strip() for text in captions]
    drawn = [output for output in outputs if FIGURE in output.get("data", ())]
    assert not any(FIGURE in output.metadata for output in drawn)  # no drawing for phones
    assert all("image/png" in output.data for output in drawn)
    assert len(drawn) == len(captions) == texts.count("<summary>The figure in words</summary>")
    cited = {link["href"] for link in soup.select('article a[href*="bibliography.html#id"]')}
    assert texts.partition("## Works cited")[2].count("\n* ") == len(cited)
    titles = []
    for title in soup.select("article .exercise > .admonition-title"):
        words = title.text.removesuffix("".join(one.text for one in title.select(".effort")))
        titles.append(" ".join(words.split()).replace(" (", ": ", 1).removesuffix(")"))
    in_notebook = re.findall(r"^#### (Exercise .*)", texts, re.MULTILINE)
    assert [title.replace("\\", "").replace("`", "") for title in in_notebook] == titles
    assert texts.count("<summary>Solution to Exercise") >= len(titles)
    for output in outputs:
        if WIDGET in output.get("data", ()):
            told = output.data["text/plain"]
            is_asked = told.startswith("Predict: ") and "\n  - " in told
            assert is_asked or any(kind in told for kind in WIDGETS), told

    given = {
        output.metadata.scrapbook.name: literal_eval(output.data[GIVEN])
        for output in outputs_of(executed)
        if GIVEN in output.get("data", ())
    }
    # Measured numbers are as they were given. Headers of code cells ask, too, for other pages.
    asked = [given[name] for name in re.findall(r"\{eval\}`(\w+)`", texts_of(executed))]
    assert [number.text for number in soup.select("article .pasted-text")] == asked
    plain = texts.replace("\\", "").replace("&amp;", "&")
    assert all(number in plain for number in asked)


PLAIN = """# Page | one

## Here &amp; there

*Stars*, `code | bar`, $a | b$, a\\_name, 2 \\* 3 \\* 4, 1 \\< 2; 100 \\$ or 200 \\$. See
[below](#there) and [the other page](https://example.org/course/book/plain.html),
and [elsewhere](https://example.org/x_y).

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
    assert texts_of(notebook) == PLAIN
    lab = nbformat.read(small.parent / "_sources/book/L97_Lab.ipynb", as_version=4).cells
    assert "plot_heads" in lab[-3].source and "*Equal*" in lab[-2].source  # below its figure
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert [text for text in code if "pip install" not in text] == ["hidden = 1", "hidden + 1"]
