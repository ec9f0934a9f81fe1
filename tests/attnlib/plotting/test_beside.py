"""A right map beside a broken one: as attention if both are, as plain numbers otherwise."""

import math

import pytest
import torch
from tools.figure_reading import titles

from attnlib import causal_mask
from attnlib.plotting import plot_beside


def test_attention_beside_attention_is_drawn_as_attention():
    right, broken = torch.rand(2, 3, 3).softmax(-1)
    assert titles(plot_beside(right, broken, list("abc"))) == ["right", "broken"]
    broken[1] = 0.0  # fully masked
    assert titles(plot_beside(right, broken)) == ["right", "broken"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w * 1.5, "broken: rows sum to 1.50"),
        (lambda w: w * torch.tensor([[0.5], [1.0], [2.0]]), "broken: rows sum to 0.50 ... 2.00"),
        (lambda w: w.masked_fill(torch.eye(3).bool(), torch.nan), "broken: 3 of 3 rows NaN"),
        (lambda w: w[:2, :2], "broken: rows sum to"),
        (lambda w: w - 0.5, "broken: rows sum to"),
    ],
)
def test_what_is_not_attention_is_drawn_as_plain_numbers(change, words):
    right = torch.rand(3, 3).softmax(-1)
    first, second = titles(plot_beside(right, change(right), list("abc")))
    assert first == "right: rows sum to 1.00" and words in second


def test_a_mask_leaves_blank_what_it_forbids_unless_it_has_weight():
    left = causal_mask(3)
    right = torch.ones(3, 3).masked_fill(~left, -math.inf).softmax(-1)
    broken = right.clone()
    broken[1] = torch.tensor([0.25, 0.25, 0.5])  # peeks
    figure = plot_beside(right, broken, mask=left)
    drawn = [ax.images[0].get_array() for ax in figure.axes[:2]]
    blank = torch.tensor([[0, 1, 1], [0, 0, 1], [0, 0, 0]]).bool()
    assert torch.equal(torch.from_numpy(drawn[0].mask), blank)
    blank[1] = False
    assert torch.equal(torch.from_numpy(drawn[1].mask), blank)
    with pytest.raises(ValueError, match="mask forbids a look that has weight: in map 0"):
        plot_beside(broken, right, mask=left)


def test_only_maps_are_drawn():
    with pytest.raises(ValueError, match=r"broken must have shape"):
        plot_beside(torch.rand(2, 2).softmax(-1), torch.rand(2, 2, 2))
    with pytest.raises(TypeError, match="right must hold floating point"):
        plot_beside(torch.ones(2, 2, dtype=torch.bool), torch.rand(2, 2))


def test_tokens_stand_at_the_sides_that_have_as_many():
    right, broken = torch.rand(2, 2, 3).softmax(-1)
    ax = plot_beside(right, broken, list("abc")).axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == list("abc")
    assert [text.get_text() for text in ax.get_yticklabels()] == []
    with pytest.raises(ValueError, match=r"tokens must .* got 4 for \[2, 3\] and \[2, 3\]"):
        plot_beside(right, broken, list("abcd"))


def test_maps_of_two_dtypes_are_judged_in_one():
    right, broken = torch.eye(3), torch.rand(3, 3).softmax(-1).bfloat16()
    assert titles(plot_beside(right, broken))[0] == "right: rows sum to 1.00"  # coarse as float32
    assert titles(plot_beside(right.bfloat16(), broken)) == ["right", "broken"]
