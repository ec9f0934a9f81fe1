"""Every widget in a real JupyterLab, with a kernel: moved by keys, heard in Python."""

import json
import time

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
            print(json.dumps([name, change["name"], value]))

    shown[name] = widget = about(name).example("a")
    traits = widget.traits(sync=True)
    own = [trait for trait in traits if trait[0] != "_" and not traits[trait].read_only]
    widget.observe(write, own)
    return widget


heard
"""
FROM_PYTHON = "shown['query_compass'].query = [0.25, -0.5]"

# JupyterLab and its extensions chat about what they do; they have no warnings and no errors.
CHATTER = ("console log: ", "console debug: ", "console info: ")


class Widget:
    """A widget in the notebook, used as a reader would."""

    def __init__(self, name, page):
        self.name, self.page = name, page
        self.number = 1 + COMPLETE.index(name)
        self.cell = page.locator(".jp-CodeCell").nth(self.number)
        self.view = self.cell.locator(".attn-widget")

    def show(self):
        """Run the widget's cell, unless that was done."""
        if self.view.count():
            return
        run(self.cell)
        errors = self.cell.locator("[data-mime-type='application/vnd.jupyter.stderr']")
        self.view.or_(errors).first.wait_for(timeout=60_000)  # also an import takes its time
        assert errors.all_inner_texts() == [], f"{self.name} isn't shown"

    def heard(self, *traits):
        """Return what the observer in Python printed of these traits, or all: values, in order."""
        printed = self.page.locator(".jp-CodeCell").first.locator(".jp-OutputArea-output pre")
        lines = [json.loads(line) for line in "".join(printed.all_text_contents()).splitlines()]
        return [
            value
            for name, trait, value in lines
            if name == self.name and (trait in traits or not traits)
        ]

    def waits(self, is_true, what):
        """Wait until Python has heard something."""
        end = time.monotonic() + 10
        while not is_true():
            if time.monotonic() > end:
                pytest.fail(f"{self.name}: Python should hear {what}, but heard {self.heard()}")
            self.page.wait_for_timeout(20)

    def tells(self, trait, expected):
        """Wait until the observer has printed this value of a trait last."""
        self.waits(lambda: self.heard(trait)[-1:] == [expected], f"{trait} {expected}")

    def keeps_focus_and_keys(self):
        """Keys also move JupyterLab's active cell, or add some; here they must not."""
        has_focus = self.view.evaluate("view => view.contains(document.activeElement)")
        assert has_focus, f"{self.name} has lost the focus"
        active = self.page.locator(".jp-Cell").evaluate_all(
            "cells => cells.map((cell) => cell.classList.contains('jp-mod-active'))"
        )
        expected = [i == self.number for i in range(len(COMPLETE) + 2)]
        assert active == expected, f"keys for {self.name} moved JupyterLab's active cell"


def run(cell):
    """Run a cell of a notebook, which keeps the focus."""
    cell.locator(".cm-content").click()
    cell.page.keyboard.press("Control+Enter")


@pytest.fixture(scope="module")
def session(browser, tmp_path_factory):
    """Open the notebook in JupyterLab and run its first cell; give the page and its problems."""
    folder = tmp_path_factory.mktemp("lab")
    cells = [SETUP, *(f"listen({name!r})" for name in COMPLETE), FROM_PYTHON]
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
def widget(session):
    """Return a function from a name to that widget; what goes wrong on the page fails the test."""
    page, problems = session

    def shown(name):
        found = Widget(name, page)
        found.show()
        return found

    yield shown
    serious = [problem for problem in problems if not problem.startswith(CHATTER)]
    problems.clear()
    assert serious == []


@pytest.mark.parametrize("name", COMPLETE)
def test_python_hears_a_key_and_jupyterlab_takes_none(widget, name):
    shown = widget(name)
    selector, key = about(name).KEY
    before = len(shown.heard())
    shown.view.locator(selector).first.press(key)
    shown.waits(lambda: len(shown.heard()) > before, key)
    shown.page.keyboard.press("ArrowDown")  # to whatever has the focus still
    shown.keeps_focus_and_keys()
    fields = shown.view.locator("input[type=text]:visible")
    if fields.count():
        fields.first.press("End")
        before = fields.first.input_value()
        shown.page.keyboard.type("1dd")  # which would delete a cell
        assert fields.first.input_value() == f"{before}1dd"
        shown.keeps_focus_and_keys()


def test_a_widget_follows_python_and_a_mouse(widget):
    compass = widget("query_compass")
    heading = compass.view.locator(".attn-heading").first
    run(compass.page.locator(".jp-CodeCell").last)
    expect(heading).to_contain_text("(0.25, −0.5)")
    handle = compass.view.locator(".attn-handle")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    compass.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    compass.page.mouse.down()
    compass.page.mouse.move(box["x"] + 50, box["y"] - 40, steps=4)
    compass.page.mouse.up()
    shown = heading.inner_text()  # "Query (1.05, .32) among"
    query = [float(number) for number in shown[shown.index("(") + 1 : shown.index(")")].split(",")]
    assert query != [0.25, -0.5]
    compass.tells("query", query)


def test_a_tensor_and_an_answer_come_to_python_as_they_are_typed(widget):
    heads = widget("two_heads")
    heads.view.get_by_role("button", name="Back to the start").click()
    heads.view.get_by_label("token 0, column 2").first.fill("25")
    heads.tells("x", [[1, 25, 1, 0], [0, 1, 0, 1]])
    heads.view.get_by_role("button", name="Back to the start").click()
    heads.tells("x", [[1, 0, 1, 0], [0, 1, 0, 1]])
    predict = widget("predict")
    predict.view.get_by_role("radio").nth(1).tap()
    predict.tells("choice", 1)
    predict.view.get_by_role("radio").nth(1).press("Enter")
    predict.tells("committed", True)


@pytest.mark.parametrize("name", ["head_lab", "name_lab"])
def test_a_worker_trains_also_in_a_notebook(widget, name):
    lab = widget(name)
    lab.view.get_by_role("button", name="Train", exact=True).click()
    lab.tells("trained", True)
    expect(lab.view.locator(".attn-progress-text")).to_contain_text("Trained")
