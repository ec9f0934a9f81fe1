"""The page of myths: every lesson's are on it, and each leads to what settles it."""

import re

from tools import ROOT
from tools.lesson_runs import all_lessons, all_notebooks
from tools.site_builds import read

HEAD = "what is said"


def words(element):
    """Return an element's text without the link to itself, and quotes as they are typed."""
    text = "".join(element.strings).replace("¶", "")
    return re.sub(r"[“”\"]", "", " ".join(text.split())).removesuffix("#")


def told(page):
    """Return the myths of a page: the sentence -> what is said of it."""
    terms = page.select("article dl > dt")
    return {words(term): term.find_next_sibling("dd") for term in terms}


def test_rows_and_headers_are_collected_in_their_order(small):
    page, lesson = read(small / "told.html"), read(small / "L78_Said.html")
    myths = told(page)
    assert [*myths] == [
        "The first is told in passing.", "So is the second.", "A figure settles nothing.",
        "Rows have cells.", "Numbers are typed.", "Nobody settled it.",
    ]  # fmt: skip
    assert words(page.select_one("article dl").find_previous("h2")) == "L78 · A lesson"
    assert "Only in the source" not in page.text
    texts = [words(truth) for truth in myths.values()]
    assert texts[1:] == [
        "Not twelve times. (the cell)", "This one does. (Figure L78.1)", "They do (cell 1).",
        "It was twelve (above).", "Others did. (L78)",
    ]  # fmt: skip
    assert myths["The first is told in passing."].select_one("math")
    anchors = [truth.select_one("a")["href"].split("#") for truth in myths.values()]
    assert {file for file, _ in anchors} == {"L78_Said.html"}
    places = [lesson.find(id=anchor) for _, anchor in anchors]
    assert [place.name for place in places] == ["div", "div", "figure", "div", "section", "section"]
    assert "cell 1" in places[3].text and "glue" in places[0].text


def test_every_row_and_header_of_the_lessons_is_on_the_page(site):
    myths, number = told(read(site / "book/myths.html")), 0
    for lesson in all_lessons():
        tables = read(site / f"{lesson}.html").select("article table")
        mine = [table for table in tables if words(table.select_one("th")) == HEAD]
        rows = [words(row.select_one("td")) for table in mine for row in table.select("tbody tr")]
        assert len(rows) > 1, f"{lesson} has no table of what is often said"
        assert not {*rows} - {*myths}
        number += len(rows)
    sources = [(ROOT / f"{page}.md").read_text(encoding="utf-8") for page in all_notebooks()]
    passing = sum(len(re.findall(r"^  - said:", source, re.M)) for source in sources)
    assert len(myths) == passing + number
