"""On a phone a figure is drawn anew: narrow enough for its screen, and readable there."""

import subprocess
import sys
from itertools import pairwise

import matplotlib
import pytest
import torch
from tools.figure_examples import EXAMPLES
from tools.figure_reading import drawn as drawn_numbers
from tools.figure_reading import images, overlaps, ticks, titles, written
from tools.figures import FIGURES

from attnlib import TransformerBlock, causal_mask, plotting
from attnlib.plotting.page import TEXT_WIDTH, phone_copy
from attnlib.plotting.style import new_figure

WORDS = "the cat that sat on the mat".split()
RIM = 0.2  # inches that a notebook adds to what is drawn
WIDEST = 312 / 96  # inches; what a window of 360 pixels leaves to the text
NINE_PIXELS = 9 * 72 / 96  # points

CORNERS = torch.tensor([[3.0, 0], [0, 3], [-2, -2]])
RANDOM = torch.Generator().manual_seed(0)


def randn(*shape):
    return torch.randn(shape, generator=RANDOM).round(decimals=2)


def random_maps(h, T):
    return randn(h, T, T).softmax(-1)


def matrices(count, rows, columns):
    return {f"matrix {i}": randn(rows, columns) for i in range(count)}


def call(name, *args, **kwargs):
    return name, args, kwargs


NAMES = ["pre-norm", "post-norm", "no norm"]
CURVES = {f"measured in panel {i}": {name: randn(5, 3).exp() for name in NAMES} for i in range(4)}
WALK = torch.cat([torch.zeros(1, 8), randn(10, 8).softmax(-1)])

# Figures as lessons have them, and larger ones.
LARGER = {
    "long titles": call("plot_heads", random_maps(3, 4), WORDS[:4], columns=3,
        titles=["one head, both questions", "head 1: who?", "head 2: whom?"]),
    "seven words": call("plot_heads", random_maps(2, 7), WORDS),
    "seven heads": call("plot_heads", random_maps(7, 16)),
    "masked": call("plot_heads", torch.eye(5).repeat(2, 1, 1), WORDS[:5], mask=causal_mask(5)),
    "two queries": call("plot_heads", torch.eye(2, 3), ["it (tired)", "it (wide)"],
        key_tokens=["animal", "street", "cross"]),
    "24 tokens": call("plot_heads", random_maps(1, 24), ["token"] * 24),
    "beside numbers": call("plot_beside", random_maps(1, 5)[0], randn(5, 5), WORDS[:5]),
    "two lines": call("plot_matrices", matrices(6, 2, 4), columns=3, numbers="{:.3g}"),
    "labelled": call("plot_matrices", matrices(2, 5, 8), row_labels=WORDS[:5]),
    "large matrices": call("plot_matrices", matrices(4, 40, 60)),
    "curves": call("plot_seed_curves", [1, 3, 6, 12, 24], CURVES, x_label="depth (blocks)"),
    "log curves": call("plot_seed_curves", [1, 3, 6],
        {"size": {"a": torch.tensor([[1e-9], [1.0], [1e9]])}}, x_label="depth", log=["size"]),
    "lookups": call("plot_lookups", randn(3, 2), CORNERS / 2, CORNERS,
        titles=["a short query", "ten times longer", "another direction"]),
    "stages": call("plot_stages", torch.eye(3, 4), torch.eye(4), torch.eye(4), torch.eye(4, 2),
        ["token 0", "b", "c"]),
    "blocks": call("plot_blocks", {f"a block {i}": TransformerBlock(4, 2) for i in range(3)}),
    "contributions": call("plot_contributions", {f"attention {i}": randn(3, 4) for i in range(13)}),
    "an atlas": call("plot_head_atlas", {f"seed {i}": randn(9, 4).sigmoid() for i in range(5)},
        ["determiner>noun"] * 9, meaning="mass on the true partner"),
    "beside baselines": call("plot_beside_baselines",
        {f"determiner>noun {i}": randn(5).sigmoid() for i in range(9)}, [0.5] * 9),
    "contents": call("plot_contents", {"one head, fixed weights": randn(4, 2), "two": randn(4, 2)},
        ["3 and 3", "3 and 7", "7 and 3", "7 and 7"]),
    "packed heads": call("plot_packed_heads", randn(24, 72), randn(24, 24), 8),
    "token walk": call("plot_token_walk", WALK, randn(11),
        [f"layer {i}, feed-forward" for i in range(11)], [".", *"tolazza"]),
    "long heads": call("plot_long_heads", random_maps(4, 50), range(5000), range(5000)),
}  # fmt: skip
CALLS = LARGER | {
    name: (name, (), example.arguments)
    for name, example in EXAMPLES.items()
    if name not in {figure_name for figure_name, *_ in LARGER.values()}
}


def drawn(name):
    """Return a figure as a page shows it, and as a phone does."""
    figure_name, args, kwargs = CALLS[name]
    figure = FIGURES[figure_name](*args, **kwargs)
    return figure, phone_copy(figure) or figure


@pytest.mark.parametrize("name", CALLS)
def test_a_phone_shows_all_of_it_and_it_can_be_read_there(name):
    with matplotlib.rc_context({"image.origin": "lower"}):  # a reader's own style
        before = dict(matplotlib.rcParams)
        page, phone = drawn(name)
        assert matplotlib.rcParams == before  # the course's is the figure's alone
    assert all(image.origin == "upper" for image in images(page))
    texts = written(phone)
    assert texts and phone.get_tightbbox().width + RIM <= WIDEST
    assert not {text.text: text.size for text in texts if text.size < NINE_PIXELS}
    assert overlaps(texts) == []
    assert [title.split() for title in titles(phone)] == [title.split() for title in titles(page)]


@pytest.mark.parametrize("name", ["seven words", "masked", "beside numbers", "two lines"])
def test_numbers_and_titles_on_a_phone_are_those_of_the_page_and_stand_apart(name):
    page, phone = drawn(name)
    numbers, again = (
        sorted(text.get_text() for ax in figure.axes for text in ax.texts)
        for figure in (page, phone)
    )
    assert numbers == again and len(numbers) > 25
    boxes = [text.box for text in written(phone) if text.text in numbers]
    for box in boxes:
        behind = [b.x0 - box.x1 for b in boxes if abs(b.y0 - box.y0) < 0.05 and b.x0 > box.x0]
        assert min(behind, default=1) > 0.03  # inches; a letter is twice as wide
    panels = [ax for ax in phone.axes if ax.get_title()]
    assert len(panels) > 1
    for above, ax in pairwise(panels):  # a title belongs to the panel below it
        title, map_below = ax.title.get_window_extent(), ax.get_window_extent()
        labels = [label.get_window_extent() for label in above.get_xticklabels()]
        lowest = min([box.y0 for box in labels], default=above.get_window_extent().y0)
        assert lowest - title.y1 > title.y0 - map_below.y1 + 0.05 * phone.dpi
    assert {ax.get_gridspec().ncols for ax in panels} == {1}  # not two of three


def test_figures_of_others_small_and_tall_ones_are_shown_as_they_are():
    figure, _ = new_figure()
    assert figure.get_figwidth() == TEXT_WIDTH
    small = plotting.plot_heads(torch.eye(3))
    small.set_size_inches(3, 3)
    for shown in (figure, small, plotting.plot_heads(random_maps(48, 20))):
        assert phone_copy(shown) is None


def test_the_copy_shows_what_the_figure_shows():
    """Even if the weights are others by now, or the labels have been gone through."""
    weights = torch.eye(3)
    figure = plotting.plot_heads(weights, (word for word in "abc"))
    weights.copy_(torch.ones(3, 3) / 3)
    phone = phone_copy(figure)
    (image,) = images(phone)
    assert torch.equal(drawn_numbers(image).float(), torch.eye(3))
    assert ticks(phone.axes[0].yaxis) == ["a", "b", "c"]
    assert phone.get_figwidth() < plotting.plot_heads(weights).get_figwidth() == TEXT_WIDTH


CELLS = """
import torch
from IPython.core.interactiveshell import InteractiveShell
from attnlib import plotting

shell = InteractiveShell.instance()
plotting.use_course_style()
plotting.use_course_style()  # a cell may be run again
figure = plotting.plot_heads(torch.eye(4).repeat(3, 1, 1))
data, metadata = shell.display_formatter.format(figure)
svg, narrow = data["image/svg+xml"], metadata.pop("image/svg+xml")["narrow"]
assert svg != narrow
assert svg.lstrip().startswith("<?xml") and narrow.lstrip().startswith("<?xml")
assert set(data) == {"image/svg+xml", "image/png", "text/plain"} and metadata == {}
figure.set_size_inches(3, 3)  # a phone shows it as it is
data, metadata = shell.display_formatter.format(figure)
assert "image/svg+xml" in data and metadata == {}
"""


def test_a_notebook_gets_both_when_it_shows_a_figure():
    subprocess.run([sys.executable, "-c", CELLS], check=True)
