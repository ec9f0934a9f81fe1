"""Pages that have to be executed are executed side by side, and what fails is told as ever."""

import re

import pytest
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
FAILS = (
    NOTEBOOK
    + """# Page

```{code-cell} ipython3
1 / 0
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


def test_of_several_pages_the_one_that_fails_is_named(tmp_path):
    pages = {"index": meets("index", tmp_path), "fails": FAILS}
    project = small_project(tmp_path / "project", pages)
    result = build(project, project)
    assert result.returncode != 0
    assert "fails.md" in result.stderr + result.stdout
    assert "ZeroDivisionError" in result.stderr + result.stdout
