"""Lessons in JupyterLab: their text after Run All, and the notebook as it was downloaded."""

import shutil

import pytest
from tools.browsing import open_page
from tools.jupyterlab_server import SETTINGS, jupyterlab, wait_for_kernel
from tools.small_pages import LAB

# What README's jupytext-config command sets.
VIEWERS = {"defaultViewers": {"markdown": "Jupytext Notebook"}}
TEXT_IS_A_NOTEBOOK = {"docmanager-extension/plugin": VIEWERS}


@pytest.fixture(scope="module")
def lesson(browser, tmp_path_factory):
    """Open a lesson's text as a notebook and run all its cells."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "book").mkdir()
    (folder / "book" / "L97_Lab.md").write_text(LAB, encoding="utf-8")
    with (
        jupyterlab(folder, SETTINGS | TEXT_IS_A_NOTEBOOK) as address_of,
        open_page(browser, address_of("lab/tree/book/L97_Lab.md")) as (page, _),
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
    assert caption.inner_text().strip() == "fig-l97-map. Equal weights (hand-built)."
    assert caption.locator("em").inner_text() == "Equal"


def test_a_downloaded_notebook_is_whole_though_nothing_in_it_is_trusted(browser, small, tmp_path):
    """In a JupyterLab that knows no MyST, before any cell was run."""
    shutil.copy(small.parent / "_sources/book/L97_Lab.ipynb", tmp_path)
    with (
        jupyterlab(tmp_path, without=("jupyterlab-myst",)) as address_of,
        open_page(browser, address_of("lab/tree/L97_Lab.ipynb")) as (page, _),
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
        assert [raw for raw in ("{eval}", "fig-l97", "Figure size", "```") if raw in texts] == []
