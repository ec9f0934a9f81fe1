"""Pages that have to be executed are executed side by side and once, and what fails is told."""

import re

import pytest
from course.execution import execute, failures_of
from tools.lesson_runs import NOTEBOOK
from tools.site_builds import build, small_project

# Each page waits until the kernel of another one is there, too.
MEETS = """# Page {name}

```{{code-cell}} ipython3
import time
from pathlib import Path

(folder := Path({folder!r})).joinpath("{name}").touch()
end = time.monotonic() + 60
while len([*folder.iterdir()]) < 2 and time.monotonic() < end:
    time.sleep(0.05)
print("met", len([*folder.iterdir()]))
```
"""
# A failing cell with a figure; one with a number, which the page doesn't show; and one after them.
FAILS = (
    NOTEBOOK
    + """# Page

```{code-cell} ipython3
---
mystnb: {image: {alt: A dot.}, figure: {name: fig-dot, caption: Dot.}}
---
tries = open("tries", "a")
print("x", file=tries, flush=True)
1 / 0
```

In the text.

```{code-cell} ipython3
:tags: [remove-cell]

assert not tries, "there are no tries"
from attncourse.glue import glue
glue("share", "3 of 5")
```

They share {eval}`share` of it: {numref}`fig-dot`.

```{code-cell} ipython3
print("executed", "afterwards")
assert (
    tries is None
)
```
"""
)
ELSEWHERE = (
    NOTEBOOK
    + """# Elsewhere

There it is {eval}`fails.md::share:s`, see {numref}`fig-dot`.

```{code-cell} ipython3
1
```
"""
)


def meets(name, folder):
    return NOTEBOOK + MEETS.format(name=name, folder=str(folder))


def shown(project, name):
    text = (project / "_build" / "html" / "book" / f"{name}.html").read_text(encoding="utf-8")
    return re.sub(r"<[^>]+>", "", text)


@pytest.mark.thorough
@pytest.mark.skipif("(os.cpu_count() or 1) < 2", reason="one core: one page at a time")
def test_pages_are_executed_side_by_side_and_once(tmp_path):
    (folder := tmp_path / "there").mkdir()
    pages = {name: meets(name, folder) for name in ("index", "other")}
    project = small_project(tmp_path / "project", pages)
    first = build(project, project, "-W")
    assert first.returncode == 0, first.stderr
    assert "Executing 2 pages, 2 at a time" in first.stdout
    assert "met 2" in shown(project, "index") and "met 2" in shown(project, "other")
    again = build(project, project, "-W", "--all")
    assert "Executing" not in again.stdout
    (project / "book" / "other.md").write_text(pages["other"] + "\nMore.\n", encoding="utf-8")
    assert "Executing" not in build(project, project, "-W").stdout


def test_a_failing_cell_is_told_and_all_pages_are_written(tmp_path):
    project = small_project(tmp_path / "project", {"index": ELSEWHERE, "fails": FAILS})
    result = build(project, project, "-W")
    assert result.returncode == 1
    assert "WARNING" not in result.stderr and "INFO" not in result.stderr
    told = result.stderr.split("\n", 1)[1]
    for line, cell, error in (
        (9, 1, "ZeroDivisionError: division by zero"),
        (20, 2, "AssertionError: there are no tries"),
        (30, 3, "AssertionError"),
    ):
        assert re.search(rf"book/fails\.md:{line}, cell {cell} \(.*\): {error}", told), told
    page = shown(project, "fails")
    assert page.count("This cell failed when the page was built") == 3
    first, second, third = (page.index(error) for error in ("Zero", "there are no", "tries is"))
    assert first < page.index("In the text") < second < page.index("They share") < third
    assert "They share [not measured] of it: Figure 1." in page
    assert "executed afterwards" in page
    assert "There it is [not measured], see Figure 1." in shown(project, "index")
    tries = project / "book" / "tries"
    assert len(tries.read_text()) == 2  # one line

    again = build(project, project)
    assert again.returncode == 1 and "Executing 1 page," in again.stdout
    assert len(tries.read_text()) == 4

    repaired = FAILS.replace("1 / 0", "").replace("not tries", "tries").replace("is None", "")
    (project / "book" / "fails.md").write_text(repaired, encoding="utf-8")
    assert "failed" not in build(project, project).stderr
    assert "They share 3 of 5 of it" in shown(project, "fails")
    assert "failed" not in shown(project, "fails")


def test_a_kernel_that_ends_fails_its_cell(tmp_path):
    cells = "import ipywidgets; ipywidgets.Label()", "import os; os._exit(1)", "1"
    page = tmp_path / "page.md"
    text = "".join(f"```{{code-cell}} ipython3\n{cell}\n```\n" for cell in cells)
    page.write_text(NOTEBOOK + text, encoding="utf-8")
    notebook, _ = execute(page, timeout=60)
    assert "widgets" in notebook.metadata  # or the page couldn't show the first cell
    [failure] = failures_of(notebook)
    assert failure.name.startswith("cell 2 (import os")


ODD_FAILURES = {
    "raise ExceptionGroup('several', [ValueError('one')])": "ExceptionGroup",
    "assert False, '\\ud800 alone'": "",
    "%nosuch": "UsageError",
    "raise ValueError('word ' * 20_000)": "ValueError: word word",
}


def test_a_cell_that_fails_oddly_fails_and_is_told_briefly(tmp_path):
    page = tmp_path / "page.md"
    text = "".join(f"```{{code-cell}} ipython3\n{cell}\n```\n" for cell in ODD_FAILURES)
    page.write_text(NOTEBOOK + text, encoding="utf-8")
    failures = failures_of(execute(page, timeout=60)[0])
    assert len(failures) == len(ODD_FAILURES)
    for failure, begin in zip(failures, ODD_FAILURES.values(), strict=True):
        assert failure.error.startswith(begin)
        assert len(failure.error) <= 300 and len(failure.traceback) <= 10_000


def test_a_hidden_cell_fails_on_a_page_without_text(tmp_path):
    text = "```{code-cell} ipython3\n:tags: [remove-cell]\n1 / 0\n```\n"
    project = small_project(tmp_path / "project", {"index": "# Start\n", "bare": NOTEBOOK + text})
    result = build(project, project)
    assert result.returncode == 1 and "ZeroDivisionError" in result.stderr
    assert "This cell failed" in shown(project, "bare")
