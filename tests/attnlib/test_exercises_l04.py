"""Checks of L04: what is right passes in other words, and odd answers get a hint that helps."""

import torch
from torch import nn

from attnlib import MultiHeadAttention, split_heads
from attnlib.exercises import l04
from attnlib.exercises.l04.by_hand import _six_numbers

BY_HAND = _six_numbers().tolist()


def test_rounding_too_much_is_told_apart_from_being_wrong():
    assert l04.head_by_hand([round(number, 3) for number in BY_HAND])
    assert "more digits" in l04.head_by_hand([round(number, 2) for number in BY_HAND]).message


def test_split_and_merge_in_other_words_pass():
    assert l04.split(lambda x, h: torch.stack(x.chunk(h, -1), 1))
    assert l04.merge(lambda x: torch.cat(x.unbind(1), -1))


def test_a_list_of_heads_is_not_one_tensor():
    assert "A list counts as several" in l04.split(lambda x, h: x.chunk(h, -1)).message


def test_nan_is_named():
    assert "holds nan" in l04.split(lambda x, h: split_heads(x, h) / 0 * 0).message


def test_a_long_error_is_cut():
    def complain(x):
        raise ValueError(x)

    assert len(l04.merge(complain).message) < 400


def test_copying_the_wrong_way_around_is_not_loading():
    def backwards(theirs):
        ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
        with torch.no_grad():
            theirs.in_proj_weight.copy_(
                torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight])
            )
            theirs.in_proj_bias.zero_()
            theirs.out_proj.load_state_dict(ours.W_o.state_dict())
        return ours

    verdict = l04.loaded(backwards)
    assert not verdict and "changed the module" in verdict.message


def test_loading_by_sharing_passes():
    def share(theirs):
        ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
        weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
        layers = ours.W_q, ours.W_k, ours.W_v
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
        ours.W_o = theirs.out_proj
        return ours

    assert l04.loaded(share)


def test_what_is_no_module_is_named():
    assert "a dict came" in l04.loaded(lambda theirs: theirs.state_dict() and {}).message
