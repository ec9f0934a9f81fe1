"""Maps of heads refuse what isn't attention, and show the weights that they were given."""

import pytest
import torch
from tools.figure_reading import drawn_maps

from attnlib import MultiHeadAttention, causal_mask, palette, plotting
from attnlib.weight_checks import require_attention

TOKENS = ["The", "cat", "sat"]


def some_weights(h=2, T_q=3, T_k=3, **options):
    return torch.randn(h, T_q, T_k, **options).softmax(-1)


class TestPlotHeads:
    def test_shows_the_weights_it_was_given(self):
        weights = some_weights(h=3)
        shown = drawn_maps(plotting.plot_heads(weights, TOKENS))
        assert torch.allclose(torch.stack(shown).float(), weights)

    def test_colors_run_from_0_to_1_whatever_the_weights(self):
        figure = plotting.plot_heads(torch.full((3, 3), 1 / 3), TOKENS)
        assert figure.axes[0].images[0].get_clim() == (0, 1)

    def test_rows_are_queries_and_columns_are_keys(self):
        weights = some_weights(h=1, T_q=2, T_k=3)[0]
        figure = plotting.plot_heads(weights, ["who", "looks"], key_tokens=TOKENS)
        ax = figure.axes[0]
        assert [t.get_text() for t in ax.get_yticklabels()] == ["who", "looks"]
        assert [t.get_text() for t in ax.get_xticklabels()] == TOKENS
        assert "query" in ax.get_ylabel() and "key" in ax.get_xlabel()

    def test_numbers_stand_in_their_cells(self):
        weights = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
        texts = plotting.plot_heads(weights).axes[0].texts
        shown = {t.get_position(): t.get_text() for t in texts}
        assert shown == {(0, 0): "0.25", (1, 0): "0.75", (0, 1): "1.00", (1, 1): "0.00"}

    def test_a_row_that_may_look_nowhere_is_hatched(self):
        weights = some_weights(h=1)
        assert not any(p.get_hatch() for p in plotting.plot_heads(weights).axes[0].patches)
        weights[0, 1] = 0
        ax = plotting.plot_heads(weights, numbers=True).axes[0]
        assert [p.get_y() for p in ax.patches if p.get_hatch()] == [0.5]
        assert {t.get_position()[1] for t in ax.texts} == {0, 2}  # no numbers in it

    def test_a_forbidden_look_is_blank_and_a_small_weight_is_not(self):
        weights = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        ax = plotting.plot_heads(weights, mask=causal_mask(2)).axes[0]
        shown = ax.images[0].get_array().filled(-1)  # of a forbidden cell nothing is drawn
        assert shown.tolist() == [[1, -1], [1, 0]]
        numbers = {t.get_position(): t.get_text() for t in ax.texts}
        assert numbers == {(0, 0): "1.00", (0, 1): "1.00", (1, 1): "0.00"}

    def test_the_legend_says_what_blank_means_where_something_is_blank(self):
        def legend(mask):
            figure = plotting.plot_heads(torch.eye(2), mask=mask)
            return [text.get_text() for box in figure.legends for text in box.get_texts()]

        assert legend(causal_mask(2)) == ["blank: may not look"]
        assert legend(None) == legend(torch.ones(2, 2, dtype=torch.bool)) == []

    def test_the_legend_says_what_hatching_means_where_a_row_is_hatched(self):
        mask = causal_mask(3)
        mask[0] = False
        weights = torch.tensor([[0.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1]])

        def legend(**options):
            (box,) = plotting.plot_heads(weights, **options).legends
            return [text.get_text() for text in box.get_texts()]

        assert legend() == ["hatched: may look nowhere"]
        assert legend(mask=mask) == ["hatched: may look nowhere", "blank: may not look"]

    def test_a_row_that_may_look_nowhere_is_hatched_under_a_mask_too(self):
        mask = causal_mask(3)
        mask[0] = False
        weights = torch.tensor([[0.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1]])
        ax = plotting.plot_heads(weights, mask=mask).axes[0]
        assert [p.get_y() for p in ax.patches if p.get_hatch()] == [-0.5]

    def test_a_mask_of_any_shape_that_has_one_meaning(self):
        weights, mask = torch.eye(3).expand(2, 3, 3), causal_mask(3)
        wanted = torch.eye(3).masked_fill(~mask, torch.nan).expand(2, 3, 3)
        for shape in ((3, 3), (1, 3, 3), (1, 1, 3, 3)):
            shown = drawn_maps(plotting.plot_heads(weights, mask=mask.view(shape)))
            assert torch.equal(torch.stack(shown).nan_to_num(-1).float(), wanted.nan_to_num(-1))
        each = torch.stack([mask, torch.ones_like(mask)])[None]  # [1, h, T_q, T_k]
        shown = drawn_maps(plotting.plot_heads(weights, mask=each))
        assert [image.isnan().sum().item() for image in shown] == [3, 0]

    def test_every_head_keeps_its_color(self):
        figure = plotting.plot_heads(some_weights(h=10))
        colors = [ax.title.get_color() for ax in figure.axes if ax.get_title()]
        assert colors == [palette.head_color(i) for i in range(10)]
        figure = plotting.plot_heads(some_weights(h=2), colors_of=[3, None])
        colors = [ax.title.get_color() for ax in figure.axes if ax.get_title()]
        assert colors == [palette.head_color(3), palette.INK]

    def test_a_module_s_weights_in_every_dtype(self):
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            module = MultiHeadAttention(8, 2, dtype=dtype)
            _, weights = module(torch.randn(1, 20, 8, dtype=dtype), need_weights=True)
            plotting.plot_heads(weights)

    def test_a_dollar_sign_in_a_token_is_text(self):
        figure = plotting.plot_heads(torch.eye(2), ["$a$", "$"])
        figure.canvas.draw()
        assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [r"\$a\$", r"\$"]


painted = torch.zeros(3, 3)
painted[1, 0] = 0.9

REFUSED = {
    "painted": (painted, ValueError, ["row (1,)", "0.9000", "sum to 1"]),
    "softmax over the wrong axis": (
        torch.randn(2, 3, 4).softmax(-2), ValueError, ["sum to 1", "wrong axis"]),
    "dropout": (torch.full((1, 2, 2), 0.625), ValueError, ["1.25", "dropout"]),
    "scores": (torch.tensor([[2.0, -1.0]]), ValueError, ["negative", "-1", "scores"]),
    "nan": (torch.full((2, 2), torch.nan), ValueError, ["finite", "masked"]),
    "a batch": (torch.eye(3).expand(4, 2, 3, 3), ValueError, ["[4, 2, 3, 3]", "weights[0]"]),
    "one row": (torch.ones(1), ValueError, ["[1]"]),
    "integers": (torch.eye(2).long(), TypeError, ["weights", "int64"]),
    "a list": ([[1.0]], TypeError, ["weights", "list"]),
    "nothing": (torch.zeros(0, 0), ValueError, ["[0, 0]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_is_not_attention(name):
    weights, error, words = REFUSED[name]
    with pytest.raises(error) as caught:
        plotting.plot_heads(weights)
    assert all(word in str(caught.value) for word in words), str(caught.value)


BAD_MASKS = {
    "the wrong way round": (~causal_mask(3), ValueError, ["map 0", "query 0", "1.0000 to key 0"]),
    "of another figure": (
        torch.stack([torch.ones(3, 3), torch.ones(3, 3).triu(1)])[None].bool(), ValueError,
        ["mask forbids a look that has weight", "map 1", "True = may look"]),
    "of numbers": (torch.ones(3, 3), TypeError, ["mask must be boolean", "float32"]),
    "a list": ([[True]], TypeError, ["mask", "list"]),
    "too small": (causal_mask(2), ValueError, ["mask", "[2, 2]", "T_q=3, T_k=3"]),
    "3-D, one a head": (causal_mask(3).expand(2, 3, 3), ValueError, ["[B=1, T_q=3, T_k=3]"]),
    "of keys alone": (torch.ones(3).bool(), ValueError, ["mask must have 2 dimensions"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_MASKS)
def test_refuses_a_mask_that_is_not_the_weights(name):
    mask, error, words = BAD_MASKS[name]
    with pytest.raises(error) as caught:
        plotting.plot_heads(torch.eye(3).expand(2, 3, 3), mask=mask)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(("dtype", "off"), [(torch.float32, 3e-4), (torch.bfloat16, 4e-2)])
def test_the_tolerance_of_row_sums_fits_the_dtype(dtype, off):
    row = torch.tensor([[0.5, 0.5]])
    require_attention(row.to(dtype))
    with pytest.raises(ValueError, match="sum to 1"):
        require_attention((row + off).to(dtype))


@pytest.mark.parametrize(
    "labels",
    [{"tokens": ["a"]}, {"key_tokens": ["a"]}, {"titles": ["a"]}, {"colors_of": [None]}],
)
def test_labels_must_fit(labels):
    with pytest.raises(ValueError, match=f"{next(iter(labels))} must hold"):
        plotting.plot_heads(some_weights(h=2, T_q=3, T_k=3), **labels)


@pytest.mark.parametrize("columns", [0, -1, True, 1.5])
def test_a_line_holds_some_heads(columns):
    with pytest.raises((TypeError, ValueError), match="columns must be"):
        plotting.plot_heads(some_weights(h=2, T_q=3, T_k=3), columns=columns)
