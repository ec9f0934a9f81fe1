"""The figures of lesson L05: what they draw comes from what they are given."""

import pytest
import torch

from attnlib import TransformerBlock, palette, plotting
from attnlib.plotting.l05.blocks import block_parts

F64 = torch.float64


def test_shares_of_a_stream_sum_to_one_and_may_be_negative():
    contributions = {
        "words": torch.tensor([[3.0, 0.0]]),
        "against": torch.tensor([[-1.0, 0.0]]),
        "across": torch.tensor([[0.0, 1.0]]),
    }
    shares = plotting.stream_shares(contributions)  # the sum is [2, 1], its square length 5
    torch.testing.assert_close(shares, torch.tensor([6 / 5, -2 / 5, 1 / 5], dtype=F64))
    assert shares.sum() == pytest.approx(1)


def test_contributions_are_drawn_with_their_size_and_the_stream_so_far():
    contributions = {"words": torch.full((2, 3), 3.0), "attention 1": torch.full((2, 3), -2.0)}
    left, right = plotting.plot_contributions(contributions).axes
    assert [bar.get_width() for bar in left.patches] == [3, 2]
    assert list(left.lines[0].get_xdata()) == [3, 1]
    assert [bar.get_width() for bar in right.patches] == [3, -2]


def test_curves_show_every_seed_and_join_their_medians():
    values = torch.tensor([[1.0, 2.0, 9.0], [4.0, 3.0, 5.0]])
    figure = plotting.plot_seed_curves([2, 6], {"size": {"pre": values}}, x_label="depth")
    median, *seeds = figure.axes[0].lines
    assert median.get_ydata().tolist() == [2, 4]
    assert [seed.get_ydata().tolist() for seed in seeds] == values.T.tolist()


def test_only_the_named_panels_are_logarithmic():
    panels = {"loss": {"a": torch.ones(2, 1)}, "cosine": {"a": torch.ones(2, 1)}}
    figure = plotting.plot_seed_curves([1, 2], panels, x_label="depth", log=["loss"])
    assert [ax.get_yscale() for ax in figure.axes] == ["log", "linear"]
    with pytest.raises(ValueError, match=r"log must hold titles of panels, got \['los'\]"):
        plotting.plot_seed_curves([1, 2], panels, x_label="depth", log=["los"])


def test_curves_of_the_wrong_shape_are_refused():
    with pytest.raises(
        ValueError, match=r"\['pre'\] must have shape \[len\(x\)=2, .* got \[3, 2\]"
    ):
        plotting.plot_seed_curves([2, 6], {"size": {"pre": torch.ones(3, 2)}}, x_label="depth")


def test_size_histograms_stand_where_the_sizes_are():
    layers = [torch.full((50,), 1e-4), torch.full((50,), -1e2)]
    figure = plotting.plot_size_histograms({"one": [*layers], "two": layers[:1]})
    ridges = figure.axes[0].collections
    peaks = []
    for ridge in ridges:
        outline = torch.tensor(ridge.get_paths()[0].vertices)
        peaks.append(outline[outline[:, 1].argmin(), 0].item())
    assert peaks == pytest.approx([-4, 2], abs=0.15)


def test_zeros_don_t_break_the_logarithmic_axis():
    figure = plotting.plot_size_histograms({"one": [torch.tensor([0.0, 1.0, 10.0])]})
    figure.draw_without_rendering()


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


def test_diagrams_and_curves_use_the_palette_alone():
    allowed = {*palette.HEAD_COLORS, palette.INK, palette.MUTED, palette.PAPER, palette.LINE}
    block = plotting.plot_blocks({"pre-norm": TransformerBlock(4, 2)})
    texts = {text.get_text() for text in block.axes[0].texts}
    assert {"norm", "attention", "feed-forward", "+", "x"} <= texts
    curves = plotting.plot_seed_curves([1], {"a": {"b": torch.ones(1, 2)}}, x_label="x")
    assert {line.get_color() for line in curves.axes[0].lines} <= allowed


@pytest.mark.parametrize(
    ("draw", "error", "words"),
    [
        (lambda: plotting.stream_shares({}), ValueError, "contributions must hold at least one"),
        (
            lambda: plotting.plot_contributions({"a": torch.ones(2, 3), "b": torch.ones(3, 2)}),
            ValueError,
            r"share one shape, got \[2, 3\] in 'a' and \[3, 2\] in 'b'",
        ),
        (lambda: plotting.plot_blocks({}), ValueError, "blocks must hold at least one"),
        (
            lambda: plotting.plot_blocks({"a": torch.nn.Linear(2, 2)}),
            TypeError,
            r"blocks\['a'\] must be a TransformerBlock, got Linear",
        ),
        (lambda: plotting.plot_size_histograms({}), ValueError, "stacks must hold at least one"),
        (
            lambda: plotting.plot_size_histograms({"a": [torch.zeros(3)]}),
            ValueError,
            "a number that isn't 0",
        ),
    ],
)
def test_what_cannot_be_drawn_is_told_why(draw, error, words):
    with pytest.raises(error, match=words):
        draw()
