"""Every widget in a real JupyterLab, with a kernel: moved by keys, heard in Python."""

import nbformat
import pytest
from playwright.sync_api import expect
from tools import ROOT
from tools.browsing import open_page
from tools.every_widget import COMPLETE, about
from tools.jupyterlab_server import jupyterlab, wait_for_kernel

# What a reader would write: an observer, and a place for what it prints.
SETUP = f"""
import json
import sys

import ipywidgets
import torch

sys.path += ["{ROOT}/tests", "{ROOT}/book/extensions"]
from tools.every_widget import about

heard = ipywidgets.Output()
shown = {{}}


def listen(name):
    def write(change):
        value = change["new"]
        value = value.tolist() if isinstance(value, torch.Tensor) else value
        with heard:
            print(name, change["name"], json.dumps(value))

    shown[name] = widget = about(name).example("a")
    traits = widget.traits(sync=True)
    own = [trait for trait in traits if trait[0] != "_" and not traits[trait].read_only]
    widget.observe(write, own)
    return widget


heard
"""
FROM_PYTHON = [
    "shown['query_compass'].query = [0.25, -0.5]",
    "shown['head_mute'].token = 99; shown['head_mute']",
    "shown['head_mute'].token = 1",
]

# JupyterLab and its extensions chat about what they do; they have no warnings and no errors.
CHATTER = ("console log: ", "console debug: ", "console info: ")


class Notebook:
    """A notebook in JupyterLab: a cell that hears, one for each widget, those that change some."""

    def __init__(self, page):
        self.page = page
        self.cells = page.locator(".jp-CodeCell")

    def cell_of(self, name):
        return self.cells.nth(1 + COMPLETE.index(name))

    def show(self, name):
        """Return the view of a widget, whose cell is run unless that was done."""
        cell = self.cell_of(name)
        view = cell.locator(".attn-widget")
        if view.count() == 0:
            run(cell)
            errors = cell.locator("[data-mime-type='application/vnd.jupyter.stderr']")
            view.or_(errors).first.wait_for(timeout=60_000)  # also an import takes its time
            assert errors.all_inner_texts() == []
        return view

    def hears(self, words):
        """Wait until the observer in Python has printed a widget's name, a trait and a value."""
        expect(self.cells.first).to_contain_text(words)

    def keeps_keys_of(self, name):
        """Keys also move JupyterLab's active cell, or add some; here they must not."""
        assert self.show(name).evaluate("view => view.contains(document.activeElement)")
        active = self.page.locator(".jp-Cell.jp-mod-active")
        assert active.count() == 1 and "jp-mod-active" in self.cell_of(name).get_attribute("class")
        assert self.cells.count() == 1 + len(COMPLETE) + len(FROM_PYTHON)


def run(cell):
    """Run a cell of a notebook, which keeps the focus."""
    cell.locator(".cm-content").click()
    cell.page.keyboard.press("Control+Enter")


@pytest.fixture(scope="module")
def session(browser, tmp_path_factory):
    """Open the notebook in JupyterLab and run its first cell; give the page and its problems."""
    folder = tmp_path_factory.mktemp("lab")
    cells = [SETUP, *(f"listen({name!r})" for name in COMPLETE), *FROM_PYTHON]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "widgets.ipynb")
    with (
        jupyterlab(folder) as address_of,
        open_page(browser, address_of("lab/tree/widgets.ipynb"), touch=True) as (page, problems),
    ):
        wait_for_kernel(page)
        first = page.locator(".jp-CodeCell").first
        run(first)
        first.get_by_text("[1]:").first.wait_for(timeout=60_000)  # torch may come from a cold disk
        yield page, problems


@pytest.fixture
def notebook(session):
    """Return the notebook; what goes wrong on the page fails the test."""
    page, problems = session
    yield Notebook(page)
    serious = [problem for problem in problems if not problem.startswith(CHATTER)]
    problems.clear()
    assert serious == []


@pytest.mark.parametrize("name", COMPLETE)
def test_python_hears_a_key_and_jupyterlab_takes_none(notebook, name):
    view = notebook.show(name)
    selector, key = about(name).KEY
    view.locator(selector).first.press(key)
    notebook.hears(f"{name} ")
    keyboard = notebook.page.keyboard
    keyboard.press("ArrowDown")  # to whatever has the focus still
    notebook.keeps_keys_of(name)
    fields = view.locator("input[type=text]:visible")
    if fields.count():
        fields.first.press("End")
        before = fields.first.input_value()
        keyboard.type("1dd")  # which would delete a cell
        assert fields.first.input_value() == f"{before}1dd"
        notebook.keeps_keys_of(name)


def test_a_widget_follows_python_and_python_hears_what_is_typed_and_committed(notebook):
    compass, heads, predict = map(notebook.show, ("query_compass", "two_heads", "predict"))
    run(notebook.cells.nth(-3))
    expect(compass.locator(".attn-heading").first).to_contain_text("(0.25, −0.5)")
    heads.get_by_role("button", name="Back to the start").click()
    heads.get_by_label("token 0, column 2").first.fill("25")
    notebook.hears("two_heads x [[1.0, 25.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]")
    choice = predict.get_by_role("radio").nth(2)
    choice.tap()
    notebook.hears("predict choice 2")
    choice.press("Enter")
    notebook.hears("predict committed true")


def test_what_a_cell_sets_wrongly_is_refused_until_it_is_right(notebook):
    notebook.show("head_mute")
    sets_wrongly, sets_rightly = notebook.cells.nth(-2), notebook.cells.last
    alert = notebook.cell_of("head_mute").locator("p[role=alert]")
    run(sets_wrongly)  # which shows it once more, too
    for one in (alert, sets_wrongly.locator("p[role=alert]")):
        expect(one).to_contain_text("token should be one of 0 to")
    assert sets_wrongly.locator(".attn-widget").count() == 0
    run(sets_rightly)
    expect(alert).to_be_hidden()


def test_a_worker_trains_also_in_a_notebook(notebook):
    lab = notebook.show("head_lab")
    lab.get_by_role("button", name="Train", exact=True).click()
    notebook.hears("head_lab trained true")
    expect(lab.locator(".attn-progress-text")).to_contain_text("Trained")
