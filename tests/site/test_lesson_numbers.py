"""Figures and exercises are numbered within their page, by the name of its file."""

import re

import pytest
from course.counts import prefix_of
from tools.site_builds import build, small_project

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
SQUARE = '<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="6pt"><path/></svg>'


def page(name, other):
    return PAGE.format(page=name, name=name.lower(), other=other.lower())


def numbers_on(project, name):
    """Return the numbers of a page's captions, titles and references, in their order."""
    html = (project / f"_build/html/book/{name}.html").read_text(encoding="utf-8")
    article = re.sub("<[^>]+>", "", html[html.index("<article") : html.index("</article")])
    return re.findall(r"(?:Figure|Exercise) (?:\w+\.)?\d+", article)


def expected(prefix, other):
    own = [f"{kind} {prefix}{n}" for kind in ("Figure", "Exercise") for n in (1, 2)]
    return [*own, f"Exercise {prefix}2", f"Figure {other}2", f"Exercise {other}2"]


@pytest.fixture
def built(tmp_path):
    """Return a function that builds a site of pages (name -> text), as often as it is called."""
    project = tmp_path / "project"

    def write(pages):
        small_project(project, pages)
        (project / "book" / "square.svg").write_text(SQUARE, encoding="utf-8")
        return again()

    def again():
        result = build(project, project, "-W", "--keep-going")
        assert result.returncode == 0, result.stderr
        return result

    write.again = again
    write.project = project
    return write


def test_numbers_are_the_pages_own_on_it_and_on_others(built):
    built({
        "index": page("index", "L04_Heads"), "L04_Heads": page("L04_Heads", "museum"),
        "museum": page("museum", "index"),
    })  # fmt: skip
    assert numbers_on(built.project, "index") == expected("", "L04.")
    assert numbers_on(built.project, "L04_Heads") == expected("L04.", "M.")
    assert numbers_on(built.project, "museum") == expected("M.", "")


def test_a_page_before_others_renumbers_nothing(built):
    built({"index": page("index", "L04_Heads"), "L04_Heads": page("L04_Heads", "index")})
    book = built.project / "book"
    (book / "L01_Tokens.md").write_text(page("L01_Tokens", "index"), encoding="utf-8")
    toc = built.project / "_toc.yml"
    text = toc.read_text(encoding="utf-8")
    toc.write_text(text.replace("- file", "- file: book/L01_Tokens\n- file", 1), encoding="utf-8")
    built.again()
    assert numbers_on(built.project, "L01_Tokens") == expected("L01.", "")
    assert numbers_on(built.project, "index") == expected("", "L04.")
    assert numbers_on(built.project, "L04_Heads") == expected("L04.", "")


def test_a_page_that_has_not_changed_is_not_written_again(built):
    built({"index": page("index", "L04_Heads"), "L04_Heads": page("L04_Heads", "index")})
    written = built.project / "_build/html/book/index.html"
    before = written.stat().st_mtime_ns
    built.again()
    assert written.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("name", "prefix"), [("book/L10_Fast", ("L10",)), ("book/Later", ()), ("L1_Short", ())]
)
def test_lessons_are_known_by_their_names(name, prefix):
    assert prefix_of(name) == prefix
