"""Lessons in JupyterLab: their text after Run All, and the notebook as it was downloaded."""

import shutil

from tools.browsing import open_page
from tools.jupyterlab_server import SETTINGS, jupyterlab, wait_for_kernel
from tools.small_pages import LAB

# What README's jupytext-config command sets.
VIEWERS = {"defaultViewers": {"markdown": "Jupytext Notebook"}}
TEXT_IS_A_NOTEBOOK = {"docmanager-extension/plugin": VIEWERS}


def test_a_lesson_s_text_runs_with_numbers_in_its_prose_and_captions_below_figures(
    browser, tmp_path
):
    (tmp_path / "book").mkdir()
    (tmp_path / "book/L97_Lab.md").write_text(LAB, encoding="utf-8")
    with (
        jupyterlab(tmp_path, SETTINGS | TEXT_IS_A_NOTEBOOK) as address_of,
        open_page(browser, address_of("lab/tree/book/L97_Lab.md")) as (page, _),
    ):
        wait_for_kernel(page)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.locator(".jp-OutputArea").get_by_text("the end").wait_for(timeout=60_000)
        page.get_by_text("The loss is 0.33, measured.").wait_for()
        cell = page.locator(".jp-CodeCell", has_text="plot_heads")
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
        [figure] = page.locator(".jp-OutputArea-output img").all()
        assert figure.evaluate("image => image.naturalWidth") > 100
        texts = "".join(shown.all_inner_texts())
        assert [raw for raw in ("{eval}", "fig-l97", "Figure size", "```") if raw in texts] == []
