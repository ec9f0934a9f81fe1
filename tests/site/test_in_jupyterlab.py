"""Lessons in JupyterLab: their text after Run All, and the notebook as it was downloaded."""

import shutil

import pytest
from tools.browsing import open_page
from tools.jupyterlab_server import SETTINGS, jupyterlab, wait_for_kernel
from tools.lesson_runs import NOTEBOOK
from tools.site_builds import build, small_project

# What README's jupytext-config command sets.
VIEWERS = {"defaultViewers": {"markdown": "Jupytext Notebook"}}
TEXT_IS_A_NOTEBOOK = {"docmanager-extension/plugin": VIEWERS}
LESSON = f"""{NOTEBOOK}# Lesson

```{{code-cell}} ipython3
from attnlib import plotting
from attncourse.glue import glue
plotting.use_course_style()
```

```{{code-cell}} ipython3
glue("l99_loss", f"{{1 / 3:.2f}}")
```

The loss is {{eval}}`l99_loss`, measured.

```{{code-cell}} ipython3
---
mystnb:
  image: {{alt: Two by two cells.}}
  figure: {{name: fig-l99-map, caption: "*Equal* weights (hand-built)."}}
---
import torch
plotting.plot_heads(torch.full((1, 2, 2), 0.5), ["a", "b"])
```

```{{code-cell}} ipython3
print("the end")
```
"""


@pytest.fixture(scope="module")
def lesson(browser, tmp_path_factory):
    """Open a lesson's text as a notebook and run all its cells."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "book").mkdir()
    (folder / "book" / "L99_Lesson.md").write_text(LESSON, encoding="utf-8")
    with (
        jupyterlab(folder, SETTINGS | TEXT_IS_A_NOTEBOOK) as address_of,
        open_page(browser, address_of("lab/tree/book/L99_Lesson.md")) as (page, _),
    ):
        wait_for_kernel(page)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.locator(".jp-OutputArea").get_by_text("the end").wait_for(timeout=60_000)
        yield page


def test_measured_numbers_stand_in_the_prose(lesson):
    lesson.get_by_text("The loss is 0.33, measured.").wait_for()


def test_captions_stand_below_their_figures(lesson):
    cell = lesson.locator(".jp-CodeCell", has_text="plot_heads")
    figure, caption = cell.locator(".jp-OutputArea-output").all()
    assert figure.locator("img, svg").count()
    assert caption.inner_text().strip() == "fig-l99-map. Equal weights (hand-built)."
    assert caption.locator("em").inner_text() == "Equal"


def test_a_downloaded_notebook_is_whole_though_nothing_in_it_is_trusted(browser, tmp_path):
    """In a JupyterLab that knows no MyST, before any cell was run."""
    project = small_project(tmp_path / "project", {"index": LESSON})
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "downloads"
    folder.mkdir()
    shutil.copy(project / "_build/html/_sources/book/index.ipynb", folder)
    with (
        jupyterlab(folder, without=("jupyterlab-myst",)) as address_of,
        open_page(browser, address_of("lab/tree/index.ipynb")) as (page, _),
    ):
        page.locator(".jp-Notebook").wait_for(timeout=60_000)
        shown = page.locator(".jp-RenderedMarkdown, .jp-OutputArea-output")
        shown.get_by_text("The loss is 0.33, measured.").wait_for()
        shown.get_by_text("Equal weights (hand-built).").wait_for()
        shown.get_by_text("The figure in words").click()
        shown.get_by_text("Two by two cells.").wait_for()
        figures = page.locator(".jp-OutputArea-output img").all()
        sizes = [figure.evaluate("image => image.naturalWidth") for figure in figures]
        assert len(sizes) == 1 and sizes[0] > 100
        texts = "".join(shown.all_inner_texts())
        assert [raw for raw in ("{eval}", "fig-l99", "Figure size", "```") if raw in texts] == []
