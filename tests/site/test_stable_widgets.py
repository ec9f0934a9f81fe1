"""Two builds of one site are the same, file by file."""

from filecmp import cmpfiles

import pytest
from course.widgets import counted
from tools.lesson_runs import NOTEBOOK
from tools.site_builds import build, small_project

pytestmark = pytest.mark.thorough

PAGE = f"""{NOTEBOOK}# Page

```{{code-cell}} ipython3
import sys, time
import torch
from attncourse.widgets import Predict, QueryCompass
for word in ("one", "two"):
    print(word)
    sys.stdout.flush()
    time.sleep(0.3)
QueryCompass(torch.eye(2), torch.eye(2), labels=["a", "b"], origin="hand-built")
```

```{{code-cell}} ipython3
Predict("What?", ["this", "that"], 0, "Because.")
```

```{{code-cell}} ipython3
:tags: [remove-output]
Predict("Never shown?", ["this", "that"], 0, "Because.")
```
"""


def test_two_builds_are_the_same_file_by_file(tmp_path):
    sites = []
    for name in ("one", "two"):
        project = small_project(tmp_path / name / "project", {"index": PAGE})
        result = build(project, project, "-W", "--keep-going")
        assert result.returncode == 0, result.stderr
        sites.append(project / "_build" / "html")
    one, two = sites
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert {"index.html", "index.ipynb"} <= {path.name for path in files}
    _, different, unread = cmpfiles(one, two, files, shallow=False)
    assert different == unread == []


A, B, C, D = (letter * 32 for letter in "abcd")


def test_widgets_are_counted_as_they_are_shown_and_their_parts_with_them():
    state = {
        A: {"layout": f"IPY_MODEL_{D}", "question": "Who?"},
        B: {"question": "Unseen?"},
        C: {"question": "When?"},
        D: {},
    }
    order = sorted(counted(state, [C, A, C]).items(), key=lambda item: item[1])
    assert [old for old, _ in order] == [C, A, D, B]
    assert len({new for _, new in order}) == 4
