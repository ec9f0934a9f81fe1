"""Pages that have to be executed are executed side by side and once, and what fails is told."""

import os
import re

from course.execution import execute, failures_of
from tools.lesson_runs import NOTEBOOK
from tools.site_builds import build, small_project
from tools.small_pages import SMALL, cell, svg

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
    + MEETS
)
BARE = NOTEBOOK + "# Bare\n\n" + cell("1 / 0", "remove-cell")
FAILED = "This cell failed"  # said in its place
SAYS = "There it is {eval}`fails.md::share:s`, see {numref}`fig-dot`.\n\n"
ELSEWHERE = f"{NOTEBOOK}# Elsewhere\n\n{SAYS}{MEETS}"


def shown(project, name):
    text = (project / "_build" / "html" / "book" / f"{name}.html").read_text(encoding="utf-8")
    return re.sub(r"<[^>]+>", "", text)


def test_pages_are_executed_side_by_side_and_a_failing_cell_is_told(tmp_path):
    pages = {"index": ELSEWHERE, "fails": FAILS, "bare": BARE}
    project = small_project(tmp_path / "project", pages)
    result = build(project)
    assert result.returncode == 1
    assert f"Executing 3 pages, {min(3, os.cpu_count() or 1)} at a time" in result.stdout
    assert re.findall("WARNING.*|INFO.*", result.stderr) == []
    for place, number, error in (
        (r"fails\.md:9", 1, "ZeroDivisionError: division by zero"),
        (r"fails\.md:20", 2, "AssertionError: there are no tries"),
        (r"fails\.md:30", 3, "AssertionError"),
        (r"bare\.md:\d+", 1, "ZeroDivisionError"),
    ):
        told = rf"book/{place}, cell {number} \(.*\): {error}"
        assert re.search(told, result.stderr), result.stderr
    assert FAILED in shown(project, "bare")
    page = shown(project, "fails")
    assert page.count(FAILED) == 3
    hidden, first, third = (page.index(error) for error in ("there are no", "Zero", "tries is"))
    assert hidden < first < page.index("In the text") < page.index("They share") < third
    assert "They share [not measured] of it: Figure 1." in page
    assert "executed afterwards" in page
    assert "There it is [not measured], see Figure 1." in shown(project, "index")
    assert all("met others: True" in shown(project, name) for name in ("index", "fails"))
    tries = project / "book" / "tries"
    assert len(tries.read_text()) == 2  # one line

    repaired = (
        FAILS.replace("1 / 0", svg(SMALL)).replace("not tries", "tries").replace("is None", "")
    )
    (project / "book" / "fails.md").write_text(repaired, encoding="utf-8")
    again = build(project)
    assert again.returncode == 1 and "Executing 2 pages," in again.stdout
    assert "WARNING" not in again.stderr
    assert "fails.md" not in again.stderr and "bare.md" in again.stderr  # which is tried again
    assert len(tries.read_text()) == 4
    assert "They share 3 of 5 of it" in shown(project, "fails")
    assert "failed" not in shown(project, "fails")


ODD_FAILURES = {
    "raise ExceptionGroup('several', [ValueError('one')])": "ExceptionGroup",
    "assert False, '\\ud800 alone'": "",
    "%nosuch": "UsageError",
    "raise ValueError('word ' * 20_000)": "ValueError: word word",
    "import os; os._exit(1)": "",
}


def test_a_cell_that_fails_oddly_or_ends_its_kernel_is_told_briefly(tmp_path):
    page = tmp_path / "page.md"
    cells = ["import ipywidgets; ipywidgets.Label()", *ODD_FAILURES, "1"]
    text = "".join(f"```{{code-cell}} ipython3\n{cell}\n```\n" for cell in cells)
    page.write_text(NOTEBOOK + text, encoding="utf-8")
    notebook, _ = execute(page, timeout=60)
    assert "widgets" in notebook.metadata  # or the page couldn't show the first cell
    failures = failures_of(notebook)
    assert len(failures) == len(ODD_FAILURES)
    for failure, begin in zip(failures, ODD_FAILURES.values(), strict=True):
        assert failure.error.startswith(begin)
        assert len(failure.error) <= 300 and len(failure.traceback) <= 10_000
    assert failures[-1].name.startswith("cell 6 (import os")
