"""The page of myths: every lesson's are on it, and each leads to what settles it."""

import re

import pytest
from bs4 import BeautifulSoup
from tools import ROOT
from tools.lesson_runs import NOTEBOOK, all_lessons, all_notebooks
from tools.site_builds import build, small_project

PAGE = "book/myths"
HEAD = "what is said"
LESSON = f"""{NOTEBOOK}# L77 · A lesson

```{{code-cell}} ipython3
---
myths:
  - said: The `first` is told in passing.
    truth: It isn't, says $x$.
  - said: So is the second.
    truth: Not {{eval}}`l77_number` *times*.
---
from myst_nb import glue
glue("l77_number", "twelve", display=False)
```

```{{code-cell}} ipython3
---
mystnb:
  image: {{alt: A square of one color.}}
  figure: {{name: fig-l77-square, caption: A square (hand-built).}}
myths:
  - said: A figure settles nothing.
    truth: This one does.
---
from IPython.display import SVG
SVG('<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="6pt"><path/></svg>')
```

## What is often said, and what is true

| what is said | what is true |
|---|---|
| "Rows have cells." | They do (cell 1). |
| "Numbers are typed." | It was {{eval}}`l77_number` ([above](#l77--a-lesson)). |
| "Nobody settled it." | Others did. |

| other | table |
|---|---|
| no | myth |

```{{code-cell}} ipython3
print("settled")  # cell 1
```
"""
MYTHS = "# Myths\n\n```{myths}\nOnly in the source.\n```\n"


@pytest.fixture
def built(tmp_path):
    """Return a function that builds a lesson and the page of myths, and what came of it."""

    def write(lesson):
        project = small_project(tmp_path / "project", {"index": MYTHS, "L77_Fine": lesson})
        result = build(project, project, "-W", "--keep-going")
        pages = project / "_build/html/book"
        return result, read(pages / "index.html"), read(pages / "L77_Fine.html")

    return write


def read(path):
    return path.exists() and BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def words(element):
    """Return an element's text without the link to itself, and quotes as they are typed."""
    text = "".join(element.strings).replace("¶", "")
    return re.sub(r"[“”\"]", "", " ".join(text.split())).removesuffix("#")


def told(page):
    """Return the myths of a page: the sentence -> what is said of it."""
    terms = page.select("article dl > dt")
    return {words(term): term.find_next_sibling("dd") for term in terms}


def test_rows_and_headers_are_collected_in_their_order(built):
    result, page, lesson = built(LESSON)
    assert result.returncode == 0, result.stderr
    myths = told(page)
    assert [*myths] == [
        "The first is told in passing.", "So is the second.", "A figure settles nothing.",
        "Rows have cells.", "Numbers are typed.", "Nobody settled it.",
    ]  # fmt: skip
    assert words(page.select_one("article h2")) == "L77 · A lesson"
    assert "Only in the source" not in page.text
    texts = [words(truth) for truth in myths.values()]
    assert texts[1:] == [
        "Not twelve times. (the cell)", "This one does. (Figure L77.1)", "They do (cell 1).",
        "It was twelve (above).", "Others did. (L77)",
    ]  # fmt: skip
    assert myths["The first is told in passing."].select_one("math")
    anchors = [truth.select_one("a")["href"].split("#") for truth in myths.values()]
    assert {file for file, _ in anchors} == {"L77_Fine.html"}
    places = [lesson.find(id=anchor) for _, anchor in anchors]
    assert [place.name for place in places] == ["div", "div", "figure", "div", "section", "section"]
    assert "cell 1" in places[3].text and "glue" in places[0].text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("theirs", "ours", "warning"),
    [
        ("  # cell 1", "", "undefined label: 'l77-cell-1'"),
        ("---\nmyths:", "---\ntags: [remove-cell]\nmyths:", "undefined label: 'l77-myth-1'"),
        ("    truth: Not {eval}`l77_number` *times*.\n", "", "wanted a list, each with said:"),
        ("[above](#l77", "[above](#not-l77", "not-l77"),
    ],
    ids=["no such cell", "a hidden cell", "no truth", "no such section"],
)  # fmt: skip
def test_a_myth_that_nothing_settles_is_refused(built, theirs, ours, warning):
    assert theirs in LESSON
    result, *_ = built(LESSON.replace(theirs, ours))
    assert result.returncode != 0
    assert warning in result.stderr


def sentences_of(lesson):
    """Return what the tables of a built lesson say is said."""
    tables = lesson.select("article table")
    mine = [table for table in tables if words(table.select_one("th")) == HEAD]
    return [words(row.select_one("td")) for table in mine for row in table.select("tbody tr")]


@pytest.mark.parametrize("lesson", all_lessons())
def test_every_row_of_a_lessons_table_is_on_the_page(site, lesson):
    rows = sentences_of(read(site / f"{lesson}.html"))
    assert len(rows) > 1, "a lesson has a table of what is often said"
    assert not {*rows} - {*told(read(site / f"{PAGE}.html"))}


def test_every_header_is_on_the_page(site):
    sources = [(ROOT / f"{page}.md").read_text(encoding="utf-8") for page in all_notebooks()]
    passing = sum(len(re.findall(r"^  - said:", source, re.M)) for source in sources)
    rows = sum(len(sentences_of(read(site / f"{page}.html"))) for page in all_lessons())
    assert len(told(read(site / f"{PAGE}.html"))) == passing + rows


@pytest.mark.thorough
def test_each_myth_leads_to_a_place_that_is_there(site):
    pages = {}
    for sentence, truth in told(read(site / f"{PAGE}.html")).items():
        links = [a["href"] for a in truth.select("a") if re.match(r"\w+\.html#", a["href"])]
        links = [link for link in links if not link.startswith("bibliography")]
        assert links, sentence
        for link in links:
            file, anchor = link.split("#")
            page = pages.setdefault(file, read(site / "book" / file))
            place = page.find(id=anchor)
            assert place is not None, (sentence, link)
            if "-cell-" in anchor or "-myth-" in anchor:
                cell = (
                    place if "cell" in place.get("class", ()) else place.find_parent(class_="cell")
                )
                assert cell is not None, (sentence, link)
                number = re.search(r"-cell-(\d+)$", anchor)
                assert not number or f"# cell {number[1]}" in cell.text, (sentence, link)


def test_an_edited_lesson_changes_the_page(built, tmp_path):
    result, *_ = built(LESSON)
    assert result.returncode == 0, result.stderr
    project = tmp_path / "project"
    lesson = project / "book/L77_Fine.md"
    lesson.write_text(LESSON.replace("Rows have cells.", "Rows have no cells."), encoding="utf-8")
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    myths = told(read(project / "_build/html/book/index.html"))
    assert "Rows have no cells." in myths and "Rows have cells." not in myths
