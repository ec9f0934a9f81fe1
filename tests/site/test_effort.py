"""An exercise says how hard it is and how long it takes: in sight, in words, in the notebook."""

import nbformat
from bs4 import BeautifulSoup
from tools.lesson_runs import NOTEBOOK
from tools.site_builds import build, small_project

EXERCISE = f"""{NOTEBOOK}# Page

```{{exercise-start}} First
:label: ex-first
```
{{effort}}`★★ 10 minutes` Add one and one.

```{{code-cell}} ipython3
1 + 1
```

```{{exercise-end}}
```

{{effort}}`★★★ 1 minute` Go.

{{effort}}`★★★ 1 minutes` Go.
"""


def test_stars_and_minutes_are_shown_and_told(tmp_path):
    project = small_project(tmp_path / "project", {"index": EXERCISE})
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    book = project / "_build/html"
    html = (book / "book/index.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(html, "html.parser")
    effort = soup.select_one(".exercise > .admonition-title .effort")
    assert effort.text == "★★☆ · about 10 minutes"
    assert effort.select_one("[role=img]")["aria-label"] == "difficulty 2 of 3"
    notebook = nbformat.read(book / "_sources/book/index.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "*★★☆ · about 10 minutes.* Add one and one." in text
    assert "{effort}" not in text
    assert [found.text for found in soup.select("section > p .effort")] == [
        "★★★ · about 1 minute"
    ] * 2


def test_what_is_malformed_is_refused_with_its_place(tmp_path):
    wrong = ["2 10", "★ 10", "★★", "★ 0 minutes", "★ 10 hours", "★★★★ 10 minutes", "two 10"]
    lines = "\n\n".join(f"{{effort}}`{text}` Do it." for text in wrong)
    project = small_project(tmp_path / "project", {"index": f"# Page\n\n{lines}\n"})
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode != 0
    for number, text in enumerate(wrong):
        assert f"index.md:{3 + 2 * number}: WARNING: {{effort}}`{text}`: wanted 1 to 3 stars" in (
            result.stderr
        )
