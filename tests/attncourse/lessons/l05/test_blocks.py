"""Diagrams of blocks are read off the blocks."""

import pytest
import torch

from attncourse.lessons.l05 import figures
from attncourse.lessons.l05.figures.blocks import block_parts
from attnlib import MultiHeadAttention, TransformerBlock
from attnlib.plotting.page import TEXT_WIDTH


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("position", ["pre", "post", None])
def test_a_diagram_shows_the_order_in_which_the_block_s_parts_run(position, residual):
    block = TransformerBlock(4, 2, norm_position=position, residual=residual)
    ran = []
    names = {"attention": "attention", "feed_forward": "feed-forward"}
    for name, part in block.named_children():
        part.register_forward_hook(lambda *_, name=name: ran.append(names.get(name, "norm")))
    block(torch.randn(1, 3, 4))
    drawn = block_parts(block)
    assert [part for part in drawn if part not in ("split", "+")] == ran
    assert drawn.count("+") == drawn.count("split") == (2 if residual else 0)
    if residual and position == "post":
        assert drawn.index("+") < drawn.index("norm")
    if residual and position == "pre":
        assert drawn.index("split") < drawn.index("norm") < drawn.index("+")


def test_a_block_without_a_feed_forward_network_is_drawn_without_one():
    attention = MultiHeadAttention(4, 2)
    block = TransformerBlock.of_parts(attention, norm_position=None)
    assert block_parts(block) == ["split", "attention", "+"]
    figure = figures.plot_blocks({"attention alone": block})
    assert "feed-forward" not in {text.get_text() for text in figure.axes[0].texts}


def test_a_diagram_names_its_parts():
    figure = figures.plot_blocks({"pre-norm": TransformerBlock(4, 2)})
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert {"norm", "attention", "feed-forward", "+", "x"} <= texts


def test_two_blocks_are_narrow_enough_for_a_phone_and_many_for_the_text():
    two, eight = (
        figures.plot_blocks({str(i): TransformerBlock(4, 2) for i in range(count)})
        for count in (2, 8)
    )
    assert two.get_figwidth() <= 3.2 and eight.get_figwidth() == TEXT_WIDTH
