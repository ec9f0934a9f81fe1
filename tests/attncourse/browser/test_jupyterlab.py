"""Widgets in a real JupyterLab, with a kernel: some of each kind, moved by keys, heard in Python.

That every widget's code for notebooks runs, has JupyterLab leave its keys alone and tells a kernel
what is changed, test_every_widget.py asks.
"""

import nbformat
import pytest
from playwright.sync_api import expect
from tools import ROOT
from tools.browsing import open_page
from tools.every_widget import about
from tools.jupyterlab_server import jupyterlab, wait_for_kernel

# What a reader would write: an observer, and a place for what it prints.
SETUP = f"""
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
        with heard:
            print(name, change["name"], value.tolist() if torch.is_tensor(value) else value)

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
SHOWN = ["clock_hands", "mask_painter", "two_heads", "query_compass", "predict", "head_mute"]
SHOWN += ["head_lab"]
CELLS = [SETUP, *(f"listen({name!r})" for name in SHOWN), *FROM_PYTHON]

# JupyterLab and its extensions chat about what they do; they have no warnings and no errors.
CHATTER = ("console log: ", "console debug: ", "console info: ")


def run(page, place):
    """Run a cell, which keeps the focus; return it."""
    cell = page.locator(".jp-CodeCell").nth(place)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    return cell


def hears(page, words):
    """Wait until the observer in Python has printed a widget's name, a trait and a value."""
    expect(page.locator(".jp-CodeCell").first).to_contain_text(words)


def view(page, name):
    return page.locator(f".attn-widget.attn-{name.replace('_', '-')}")


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """Return a notebook's page, all widgets drawn; what goes wrong on it is an error."""
    folder = tmp_path_factory.mktemp("lab")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "widgets.ipynb")
    with (
        jupyterlab(folder) as address_of,
        open_page(browser, address_of("lab/tree/widgets.ipynb"), touch=True) as (page, problems),
    ):
        wait_for_kernel(page)
        # Torch may come from a cold disk.
        run(page, 0).get_by_text("[1]:").first.wait_for(timeout=60_000)
        for place in range(1, 1 + len(SHOWN)):  # anywidget waits but a moment: one by one
            run(page, place).locator(".attn-widget").wait_for(timeout=60_000)
        yield page
        assert [problem for problem in problems if not problem.startswith(CHATTER)] == []


@pytest.mark.parametrize("name", SHOWN[:3])
def test_python_hears_a_key_and_jupyterlab_takes_none(page, name):
    selector, key = about(name).KEY
    control = view(page, name).locator(selector).first
    control.press(key)
    hears(page, f"{name} ")
    # Keys also move JupyterLab's active cell, or delete one.
    control.press("ArrowDown")
    if name == "two_heads":
        control.press("End")
        before = control.input_value()
        page.keyboard.type("1dd")
        assert control.input_value() == f"{before}1dd"
    active = page.locator(".jp-Cell.jp-mod-active")
    assert active.locator(".cm-content").all_inner_texts() == [f"listen({name!r})"]
    assert page.locator(".jp-CodeCell").count() == len(CELLS)


def test_a_widget_follows_python_and_python_hears_what_is_typed_and_committed(page):
    run(page, -3)
    heading = view(page, "query_compass").locator(".attn-heading").first
    expect(heading).to_contain_text("(0.25, −0.5)")
    heads = view(page, "two_heads")
    heads.get_by_role("button", name="Back to the start").click()
    heads.get_by_label("token 0, column 2").first.fill("25")
    hears(page, "two_heads x [[1.0, 25.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]")
    choice = view(page, "predict").get_by_role("radio").nth(2)
    choice.tap()
    hears(page, "predict choice 2")
    choice.press("Enter")
    hears(page, "predict committed True")


def test_what_a_cell_sets_wrongly_is_refused_until_it_is_right(page):
    shown_again = run(page, -2)
    alerts = page.locator("p[role=alert]").filter(visible=True)
    expect(alerts).to_contain_text(["token should be one of 0 to"] * 2)
    assert shown_again.locator(".attn-widget").count() == 0
    run(page, -1)
    expect(alerts).to_have_count(1)  # of the view that never came to be


def test_a_worker_trains_also_in_a_notebook(page):
    lab = view(page, "head_lab")
    lab.get_by_role("button", name="Train", exact=True).click()
    hears(page, "head_lab trained True")
    expect(lab.locator(".attn-progress-text")).to_contain_text("Trained")
