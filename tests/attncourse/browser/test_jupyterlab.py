"""Every widget in a real JupyterLab, with a kernel: moved by mouse and keys, heard in Python."""

import json
import time

import nbformat
import pytest
from tools.browsing import open_page
from tools.jupyterlab_server import jupyterlab, wait_for_kernel

from attncourse import widgets

# What a reader would write: an observer, and a place for what it prints.
SETUP = """
import json

import ipywidgets
import torch

from attncourse.widgets import *

torch.manual_seed(0)
sentence = "the cat sat on the mat".split()
heard = ipywidgets.Output()


def listen(widget, *traits):
    def write(change):
        value = change["new"]
        value = value.tolist() if isinstance(value, torch.Tensor) else value
        with heard:
            print(json.dumps([type(widget).__name__, change["name"], value]))

    widget.observe(write, traits)
    return widget


heard
"""
CELLS = {
    "Answer": """
from attncourse.lessons import l03

listen(l03.softmax_row.on_page(), "given", "checked")""",
    "HeadAtlas": """
from attncourse import atlas

weights = torch.randn(1, 2, 6, 6).softmax(-1)
book = HeadAtlas(atlas.of(lambda ids: [weights] * 2, [range(6)], tokenizer=sentence))
listen(book, "score", "order", "above", "head", "pinned", "token", "lifted")""",
    "HeadExplorer": """
explorer = HeadExplorer(sentence, torch.randn(6, 8), torch.randn(6, 8), num_heads=2)
listen(explorer, "num_heads", "causal", "head")""",
    "CacheCalculator": """
listen(CacheCalculator(), "heads", "latent", "tokens", "bytes_per_number")""",
    "ClockHands": 'listen(ClockHands(), "position", "other", "d")',
    "Flow": 'listen(Flow(), "matrix", "place", "num_heads", "causal", "sequence")',
    "GptSteps": """
from attnlib.model import GPT

listen(GptSteps(GPT(27, 16, 4, 2)), "name", "token", "line", "head")""",
    "TwoHeads": 'listen(TwoHeads(torch.ones(2, 4)), "x")',
    "HeadLab": """
from attnlib.model import TransformerModel
from attncourse.tasks import concord

lab = HeadLab(model=TransformerModel.of_sizes(concord, d_model=64, num_heads=1))
listen(lab, "num_heads", "seed", "trained", "from_weights", "sentence", "head", "muted")""",
    "HeadMute": 'listen(HeadMute(torch.randn(3, 6, 4), tokens=sentence), "muted", "token")',
    "OnlineSoftmax": 'listen(OnlineSoftmax(), "scores", "block", "step", "method")',
    "QueryCompass": """
compass = QueryCompass(torch.randn(3, 2), torch.randn(3, 2), query=(1.0, 0.5))
listen(compass, "query", "temperature")""",
    "Tokenizer": """
from attncourse.tokens import BytePairTokenizer

tokenizer = BytePairTokenizer.train("banana bandana", 4)
listen(Tokenizer(tokenizer, "ban"), "text", "num_merges")""",
    "MaskPainter": """
listen(MaskPainter(sentence, torch.randn(6, 4), torch.randn(6, 4)), "mask")""",
    "BuildABlock": """
runs = {
    (residual, norm): {"gradient": torch.rand(3, 2) + 0.1}  # [depths, runs]
    for residual in (True, False) for norm in (None, "pre", "post")
}
block = BuildABlock([1, 2, 4], runs, panels={"gradient": "size"})
listen(block, "residual", "norm_position", "depth")""",
    "NameLab": """
listen(NameLab(), "num_heads", "seed", "trained", "beginning", "temperature", "top_k", "draw")""",
    "Predict": """
listen(Predict("Which?", ["this", "that"], 1, "That is why."), "choice", "committed")""",
}
FROM_PYTHON = "explorer.num_heads = 8"

# JupyterLab and its extensions chat about what they do; they have no warnings and no errors.
CHATTER = ("console log: ", "console debug: ", "console info: ")


class Widget:
    """A widget in the notebook, used as a reader would."""

    def __init__(self, name, page):
        self.name, self.page = name, page
        self.number = 1 + list(CELLS).index(name)
        self.cell = page.locator(".jp-CodeCell").nth(self.number)
        self.view = self.cell.locator(".attn-widget")

    def show(self):
        """Run the widget's cell, unless that was done."""
        if self.view.count():
            return
        run(self.cell)
        errors = self.cell.locator("[data-mime-type='application/vnd.jupyter.stderr']")
        self.view.or_(errors).first.wait_for()
        assert errors.all_inner_texts() == [], f"{self.name} isn't shown"

    def heard(self, trait):
        """Return the values of a trait that the observer in Python printed, in order."""
        printed = self.page.locator(".jp-CodeCell").first.locator(".jp-OutputArea-output pre")
        lines = [json.loads(line) for line in "".join(printed.all_text_contents()).splitlines()]
        return [value for name, heard, value in lines if (name, heard) == (self.name, trait)]

    def tells(self, trait, expected):
        """Wait until the observer has printed this value of a trait last."""
        end = time.monotonic() + 10
        while (heard := self.heard(trait))[-1:] != [expected]:
            if time.monotonic() > end:
                pytest.fail(f"{self.name}: {trait} should be {expected}; Python heard {heard}")
            self.page.wait_for_timeout(20)

    def keeps_focus_and_keys(self):
        """Arrow keys also move JupyterLab's active cell; here they must not, nor lose the focus."""
        has_focus = self.view.evaluate("view => view.contains(document.activeElement)")
        assert has_focus, f"{self.name} has lost the focus"
        active = self.page.locator(".jp-Cell").evaluate_all(
            "cells => cells.map((cell) => cell.classList.contains('jp-mod-active')).indexOf(true)"
        )
        assert active == self.number, f"keys for {self.name} moved JupyterLab's active cell"


def run(cell):
    """Run a cell of a notebook, which keeps the focus."""
    cell.locator(".cm-content").click()
    cell.page.keyboard.press("Control+Enter")


@pytest.fixture(scope="module")
def session(browser, tmp_path_factory):
    """Open the notebook in JupyterLab and run its first cell; give the page and its problems."""
    folder = tmp_path_factory.mktemp("lab")
    cells = [SETUP, *CELLS.values(), FROM_PYTHON]
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


def test_each_widget_is_tried():
    untried = set(widgets.__all__) - set(CELLS)
    assert not untried, f"CELLS needs a cell for {untried}, and this file a test that moves it"


def test_head_explorer_tells_python(widget):
    explorer = widget("HeadExplorer")
    slider = explorer.view.get_by_role("slider")
    slider.press("ArrowRight")
    explorer.tells("num_heads", 4)
    explorer.page.keyboard.press("ArrowLeft")  # to whatever has the focus still
    explorer.tells("num_heads", 2)
    box = slider.bounding_box()
    explorer.page.mouse.click(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    explorer.tells("num_heads", 8)
    explorer.view.get_by_label("head 1", exact=True).press("ArrowDown")
    explorer.page.keyboard.press("Enter")
    explorer.tells("head", 3)
    explorer.view.get_by_label("head 6", exact=True).tap()
    explorer.tells("head", 5)
    explorer.view.get_by_label("Causal").click()
    explorer.tells("causal", True)
    explorer.view.locator(".attn-plot").press("ArrowDown")
    explorer.keeps_focus_and_keys()


def test_head_explorer_follows_python(widget):
    explorer = widget("HeadExplorer")
    slider = explorer.view.get_by_role("slider")
    slider.press("Home")
    explorer.tells("num_heads", 1)
    run(explorer.page.locator(".jp-CodeCell").last)
    explorer.view.get_by_label("head 8", exact=True).wait_for()
    assert slider.get_attribute("aria-valuetext") == "8 heads of width 1"
    assert explorer.view.locator(".attn-tile").count() == 8


def test_head_atlas(widget):
    book = widget("HeadAtlas")
    book.view.get_by_role("button", name="first token", exact=True).click()
    book.tells("score", 1)
    book.view.get_by_role("button", name="highest first").click()
    book.tells("order", "highest")
    book.view.get_by_role("slider").press("ArrowRight")
    book.tells("above", 1)
    book.page.keyboard.press("ArrowLeft")  # to whatever has the focus still
    book.tells("above", 0)
    book.view.get_by_role("button", name="Pin layer 1, head 1").click()
    book.tells("pinned", 0)
    book.view.get_by_role("button", name="layer 2, head 2").tap()
    book.tells("head", 3)
    book.view.locator(".attn-chip").last.press("ArrowLeft")
    book.page.keyboard.press("Enter")
    book.tells("token", 4)
    book.keeps_focus_and_keys()
    book.view.get_by_label("Lift faint weights").click()
    book.tells("lifted", True)
    book.view.locator(".attn-plot").first.press("ArrowDown")
    book.keeps_focus_and_keys()


def test_flow(widget):
    flow = widget("Flow")
    flow.view.get_by_role("slider", name="Step").press("ArrowRight")
    flow.tells("matrix", "q")
    flow.view.locator(".attn-made button").last.click()
    flow.tells("place", [1, 1, 1])
    flow.page.keyboard.press("ArrowUp")
    flow.page.keyboard.press("Enter")
    flow.tells("place", [0, 1, 1])
    flow.page.keyboard.press("PageDown")
    flow.tells("matrix", "k")
    flow.keeps_focus_and_keys()
    flow.view.locator(".attn-operands button").first.tap()
    flow.tells("matrix", "x")
    flow.view.get_by_role("slider", name="Heads").press("ArrowRight")
    flow.tells("num_heads", 4)
    flow.view.get_by_label("Causal").click()
    flow.tells("causal", True)
    flow.view.get_by_label("Token at place 0").select_option("token 1")
    flow.tells("sequence", [1, 1])
    flow.view.get_by_role("button", name="Step").click()
    flow.tells("matrix", "q")


def test_gpt_steps(widget):
    steps = widget("GptSteps")
    steps.view.get_by_role("button", name="Step", exact=True).click()
    steps.tells("line", "token")
    steps.view.get_by_role("button", name="Next token").click()
    steps.tells("token", 1)
    steps.view.get_by_role("button", name="weights = softmax(scores)").press("Enter")
    steps.tells("line", "weights")
    steps.page.keyboard.press("PageDown")
    steps.tells("line", "mix")
    steps.keeps_focus_and_keys()
    steps.view.get_by_role("button", name="head 2").tap()
    steps.tells("head", 1)
    steps.view.get_by_role("textbox", name="Name").fill("anna")
    steps.tells("name", "anna")
    steps.view.locator(".attn-memory").press("ArrowRight")
    steps.keeps_focus_and_keys()


def test_two_heads(widget):
    heads = widget("TwoHeads")
    heads.view.get_by_label("token 0, column 2").first.press("ArrowUp")
    heads.tells("x", [[1, 2, 1, 1], [1, 1, 1, 1]])
    heads.page.keyboard.type("5")  # behind the 2, in the field that has the focus
    heads.tells("x", [[1, 25, 1, 1], [1, 1, 1, 1]])
    heads.keeps_focus_and_keys()
    heads.view.get_by_role("button", name="Back to the start").click()
    heads.tells("x", [[1, 1, 1, 1], [1, 1, 1, 1]])


def test_head_mute(widget):
    mute = widget("HeadMute")
    mute.view.get_by_role("checkbox", name="head 2").press("Space")
    mute.tells("muted", [1])
    mute.view.get_by_role("checkbox", name="head 3").click()
    mute.tells("muted", [1, 2])
    mute.view.get_by_role("radio").first.press("ArrowDown")
    mute.tells("token", 1)
    mute.keeps_focus_and_keys()
    mute.view.get_by_role("radio").nth(4).click()
    mute.tells("token", 4)


def test_head_lab(widget):
    lab = widget("HeadLab")
    lab.view.get_by_label("Begin with your model's own weights").check()
    lab.tells("from_weights", True)
    lab.view.get_by_role("button", name="1 head, as it came").wait_for()
    slider = lab.view.get_by_role("slider")
    slider.press("ArrowRight")
    lab.tells("num_heads", 2)
    lab.view.get_by_role("button", name="Train", exact=True).click()
    lab.tells("trained", True)
    lab.view.locator(".attn-curve[d^=M]").wait_for()  # a worker trains, also in a notebook
    lab.view.get_by_role("button", name="Stop").click()
    lab.view.get_by_text("Stopped: step").wait_for()
    lab.view.get_by_label("Word 3").select_option("nun")
    lab.tells("sentence", "the big nun gave a very strange sister their nephew .")
    lab.view.get_by_role("button", name="head 1").press("ArrowRight")
    lab.page.keyboard.press("Enter")
    lab.tells("head", 1)
    lab.keeps_focus_and_keys()
    lab.view.get_by_role("checkbox", name="head 1").press("Space")
    lab.tells("muted", [0])
    lab.view.get_by_role("button", name="Another seed").click()
    lab.tells("seed", 2)
    lab.view.get_by_role("button", name="Stop").click()


def test_name_lab(widget):
    lab = widget("NameLab")
    lab.view.get_by_role("slider", name="Heads").press("ArrowRight")
    lab.tells("num_heads", 8)
    lab.view.get_by_role("button", name="Train", exact=True).click()
    lab.tells("trained", True)
    lab.view.locator(".attn-curve[d^=M]").wait_for()  # a worker trains, also in a notebook
    lab.view.get_by_role("button", name="Stop").click()
    lab.view.get_by_text("Stopped: step").wait_for()
    lab.view.get_by_role("textbox").press("End")
    lab.page.keyboard.type("l")
    lab.tells("beginning", "mell")
    lab.keeps_focus_and_keys()
    lab.view.get_by_role("slider", name="Temperature").press("ArrowRight")
    lab.tells("temperature", 1.1)
    lab.view.get_by_role("slider", name="Top-k").press("ArrowLeft")
    lab.tells("top_k", 26)
    lab.keeps_focus_and_keys()
    lab.view.get_by_role("button", name="Sample again").click()
    lab.tells("draw", 1)
    lab.view.get_by_role("button", name="Another seed").click()
    lab.tells("seed", 1)
    lab.view.get_by_role("button", name="Stop").click()


def test_query_compass(widget):
    compass = widget("QueryCompass")
    handle = compass.view.locator(".attn-handle")
    handle.press("ArrowUp")
    compass.tells("query", [1, 0.6])
    compass.page.keyboard.press("Shift+ArrowLeft")
    compass.tells("query", [0, 0.6])
    box = handle.bounding_box()
    compass.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    compass.page.mouse.down()
    compass.page.mouse.move(box["x"] + 50, box["y"] + 40, steps=4)
    compass.page.mouse.up()
    shown = compass.view.locator(".attn-heading").first.inner_text()  # "Query (1.05, .32) among"
    query = [float(number) for number in shown[shown.index("(") + 1 : shown.index(")")].split(",")]
    assert query != [0, 0.6]
    compass.tells("query", query)
    compass.keeps_focus_and_keys()
    compass.view.get_by_role("slider").press("End")
    compass.tells("temperature", 10)


def test_tokenizer(widget):
    tokenizer = widget("Tokenizer")
    tokenizer.view.get_by_role("textbox").press("End")
    tokenizer.page.keyboard.type("d")
    tokenizer.tells("text", "band")
    tokenizer.view.get_by_role("slider").press("ArrowLeft")
    tokenizer.tells("num_merges", 3)
    tokenizer.keeps_focus_and_keys()


def test_clock_hands(widget):
    clocks = widget("ClockHands")
    clocks.view.get_by_role("slider", name="Place m").press("ArrowRight")
    clocks.tells("position", 4)
    clocks.keeps_focus_and_keys()
    clocks.view.get_by_role("button", name="both +").click()
    clocks.tells("position", 5)
    clocks.tells("other", 2)
    clocks.view.get_by_role("slider", name="Width").press("End")
    clocks.tells("d", 16)


def test_cache_calculator(widget):
    calculator = widget("CacheCalculator")
    calculator.view.get_by_role("button", name="Llama 2 70B").click()
    calculator.tells("heads", [64, 8])
    calculator.tells("tokens", 4096)
    calculator.view.get_by_role("slider", name="KV heads").press("ArrowLeft")
    calculator.tells("heads", [64, 4])
    calculator.keeps_focus_and_keys()
    calculator.view.get_by_role("checkbox").press("Space")
    calculator.tells("latent", [512, 64])
    calculator.view.get_by_role("button", name="8 bits").click()
    calculator.tells("bytes_per_number", 1)


def test_online_softmax(widget):
    softmax = widget("OnlineSoftmax")
    softmax.view.get_by_role("slider").press("ArrowRight")
    softmax.tells("block", 3)
    softmax.keeps_focus_and_keys()
    softmax.view.get_by_role("button", name="Step").click()
    softmax.tells("step", 1)
    softmax.view.get_by_label("Score, token 1").press("ArrowUp")
    softmax.tells("scores", [2, 2, 0, 1, 4, 3, 2, -1])
    softmax.keeps_focus_and_keys()
    softmax.view.get_by_role("button", name="Without rescaling").click()
    softmax.tells("method", "no rescaling")


def test_mask_painter(widget):
    painter = widget("MaskPainter")
    plot = painter.view.locator(".attn-plot")
    plot.press("ArrowRight")
    painter.page.keyboard.press("Space")
    everything_but_one = [True, False, *[True] * 34]
    painter.tells("mask", everything_but_one)
    painter.keeps_focus_and_keys()
    plot.click(position={"x": 3, "y": 3})
    painter.tells("mask", [False, *everything_but_one[1:]])
    painter.view.get_by_role("button", name="nothing").click()
    painter.tells("mask", [False] * 36)


def test_build_a_block(widget):
    block = widget("BuildABlock")
    block.view.get_by_role("slider").press("ArrowRight")
    block.tells("depth", 2)
    block.view.get_by_label("none", exact=True).press("ArrowDown")
    block.tells("norm_position", "pre")
    block.keeps_focus_and_keys()
    block.view.get_by_label("Residual").click()
    block.tells("residual", True)


def test_answer(widget):
    answer = widget("Answer")
    fields = answer.view.get_by_role("textbox")
    fields.first.press("1")
    answer.page.keyboard.press("ArrowDown")
    answer.tells("given", ["1", "", "", ""])
    answer.keeps_focus_and_keys()
    for field, text in zip(fields.all(), ("1/8", "0,25", ".625", "20"), strict=True):
        field.fill(text)
    answer.tells("given", ["1/8", "0,25", ".625", "20"])
    answer.page.keyboard.press("Enter")
    answer.tells("checked", True)
    answer.keeps_focus_and_keys()
    answer.view.get_by_text("Correct.").wait_for()


def test_predict(widget):
    predict = widget("Predict")
    predict.view.get_by_label("this").press("ArrowDown")
    predict.tells("choice", 1)
    predict.keeps_focus_and_keys()
    predict.page.keyboard.press("Enter")
    predict.tells("committed", True)
    predict.keeps_focus_and_keys()
    predict.view.get_by_text("That is why.").wait_for()
