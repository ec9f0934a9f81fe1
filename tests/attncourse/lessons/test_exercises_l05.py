"""Checks of L05: right answers in other words, and what is nearly right."""

import itertools

import numpy as np
import pytest
import torch
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l05
from attncourse.lessons.l05.judging import DESIGN, VARIANTS
from attnlib import TransformerBlock


def in_numpy(x, g, b, e):
    x, g, b = x.numpy(), g.numpy(), b.numpy()
    return (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + e) ** 0.5 * g + b


def in_order(*which):
    """Return a stack that runs these of attention and feed-forward, each behind its norm."""

    def stack(x, layers, final_norm):
        for parts in layers:
            for i in which:
                x = parts[i](parts[i + 1](x)) + x
        return final_norm(x)

    return stack


def cosine_of_a_stack(variant, depth, seed):
    """The mean cosine between the tokens that leave a random stack, as in the lesson."""
    skip, norm = VARIANTS[variant]
    torch.manual_seed(seed)
    options = {"residual": skip, "norm_position": norm, "dtype": torch.float64}
    x, _ = torch.randn(2, 1, 16, 64, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(depth):
            x, _ = TransformerBlock(64, 4, **options)(x)
    unit = nn.functional.normalize(x[0], dim=-1)
    return ((unit @ unit.T).sum() - 16).item() / (16 * 15)


@pytest.mark.parametrize("pair", [("neither", "residual only"), ("norm only", "post-norm")])
def test_a_design_passes_at_the_depths_at_which_its_stacks_can_be_told_apart(pair):
    too_deep = {l05.design.hints["upper_end"], l05.design.hints["too_deep"]}
    for depth in (2, 12, 24):
        without, with_skip = (
            [cosine_of_a_stack(variant, depth, seed) for seed in range(2)] for variant in pair
        )
        apart = min(without) - max(with_skip) > 0.04
        verdict = l05.design(DESIGN | {"compare": pair, "depth": depth})
        assert verdict.passed == apart, (depth, without, with_skip)
        assert apart or verdict.message in too_deep


DIFFERENCES = {  # some pairs that differ in more than the skip, or in something else
    ("neither", "pre-norm"): "the skip, whether there is a norm and the final norm",
    ("post-norm", "pre-norm"): "where the norms sit and the final norm; both",
    ("neither", "norm only"): "whether there is a norm; neither",
}


def test_stacks_may_differ_in_the_skip_alone_and_are_told_in_what_they_do():
    for pair in itertools.permutations(VARIANTS, 2):
        verdict = l05.design(DESIGN | {"compare": pair})
        fair = {*pair} in ({"neither", "residual only"}, {"norm only", "post-norm"})
        assert verdict.passed == fair, pair
        assert DIFFERENCES.get(pair, DIFFERENCES.get(pair[::-1], "")) in verdict.message


def zero(layer):
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)


def zero_last_matrices(block):
    zero(block.attention.W_o)
    zero(block.feed_forward.W_2)


def after_zeros(change):
    """Return an answer that is right, and then changes something else."""

    def answer(block):
        zero_last_matrices(block)
        change(block)

    return answer


test_answers = verdicts(
    {
        l05.layer_norm: {
            PASSES: [in_numpy],
            "ready-made": [
                lambda x, g, b, e: torch.native_layer_norm(x, x.shape[-1:], g, b, e)[0],
                lambda x, g, b, e: g * nn.functional.layer_norm(x, x.shape[-1:], eps=e) + b,
            ],
        },
        l05.rms_norm: {
            PASSES: [lambda x, g, e: x * g / (x.pow(2).mean(-1, keepdim=True) + e).sqrt()]
        },
        l05.by_hand: {
            PASSES: [[-1.414, 0, 0, 1.414, 0.471, 0.943, 0.943, 1.414]],
            "standard deviation": [[[-2, 0, 0, 2], [9, 9, 9, 9]]],  # whatever is below
        },
        l05.through: {
            PASSES: [[(0.5, 0), (1.5, 1)]],
            "skip": [[[9, 9], [1.5, 1]], [[1.5, 1], [1.5, 1]]],  # not swapped: one row is right
        },
        l05.pre_norm: {
            PASSES: [in_order(0, 2)],
            "norm_2, feed_forward, norm_1, attention, norm_2": [in_order(2, 0)],
        },
        l05.design: {
            PASSES: [DESIGN | {"depth": np.int64(2), "compare": {"neither", "residual only"}}],
            l05.design.hints["too_few_seeds"]: [DESIGN | {"seeds": n} for n in range(3)],
            '"compare" wants': [DESIGN | {"compare": ("norm only", "skip")}],
            '"depth" wants': [DESIGN | {"depth": 7}],
            '"measure" wants': [DESIGN | {"measure": "the cosine"}],
            '"seeds" wants': [DESIGN | {"seeds": "three"}],
        },
        l05.identity_at_start: {
            PASSES: [zero_last_matrices, lambda block: zero_last_matrices(block) or block],
            "frozen": [after_zeros(lambda block: block.requires_grad_(False))],
            "carries x": [lambda block: setattr(block, "residual", False)],
            "W_o or W_2": [after_zeros(lambda block: zero(block.attention.W_v))],
            "run any more": [after_zeros(lambda b: setattr(b.attention, "W_o", nn.Linear(3, 3)))],
            ": the feed-forward part.": [
                after_zeros(lambda block: nn.init.ones_(block.feed_forward.W_2.weight))
            ],
            "another forward": [lambda block: nn.Identity()],
        },
    }
)
