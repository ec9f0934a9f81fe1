"""Diagrams of blocks are read off the blocks."""

import pytest
import torch

from attncourse.lessons.l05 import figures
from attncourse.lessons.l05.figures.blocks import block_parts
from attnlib import MultiHeadAttention, TransformerBlock


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("position", ["pre", "post", None])
def test_a_diagram_shows_the_order_in_which_the_block_s_parts_run(position, residual):
    block = TransformerBlock(4, 2, norm_position=position, residual=residual)
    ran = []
    names = {"feed_forward": "feed-forward", "norm_1": "norm", "norm_2": "norm"}
    for name, part in block.named_children():
        part.register_forward_hook(lambda *_, name=name: ran.append(names.get(name, name)))
    block(torch.randn(1, 3, 4))
    drawn = block_parts(block)
    assert [part for part in drawn if part not in ("split", "+")] == ran
    assert drawn.count("+") == drawn.count("split") == (2 if residual else 0)
    if residual and position == "post":
        assert drawn.index("+") < drawn.index("norm")
    if residual and position == "pre":
        assert drawn.index("split") < drawn.index("norm") < drawn.index("+")


def test_a_diagram_names_the_parts_that_a_block_has():
    alone = TransformerBlock.of_parts(MultiHeadAttention(4, 2), norm_position=None)
    assert block_parts(alone) == ["split", "attention", "+"]
    figure = figures.plot_blocks({"pre-norm": TransformerBlock(4, 2), "alone": alone})
    texts, of_alone = ({t.get_text(): t.get_position()[1] for t in ax.texts} for ax in figure.axes)
    assert {"norm", "attention", "feed-forward", "+", "x"} <= {*texts}
    assert "feed-forward" not in of_alone and max(texts, key=texts.get) == "tokens out"
