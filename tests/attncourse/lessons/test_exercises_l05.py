"""What the checks of lesson L05 do beyond what every check does."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from attncourse.lessons import l05
from attncourse.lessons.l05.experiments import COSINE, DESIGN, VARIANTS
from attncourse.lessons.l05.training_logs import CHOICES, DIAGNOSIS
from attnlib import TransformerBlock


def zero_last_matrices(block):
    for last in (block.attention.W_o, block.feed_forward.W_2):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)


def pre_norm_stack(x, layers, final_norm):
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = attention(norm_1(x)) + x
        x = feed_forward(norm_2(x)) + x
    return final_norm(x)


def test_solutions_may_be_written_in_other_ways():
    assert l05.by_hand(torch.tensor([[-1.414, 0, 0, 1.414], [0.471, 0.943, 0.943, 1.414]]))
    assert l05.layer_norm(
        lambda x, gain, bias, eps: (
            gain * (x - x.mean(-1)[..., None]) / (x.var(-1, correction=0)[..., None] + eps) ** 0.5
            + bias
        )
    )
    assert l05.rms_norm(
        lambda x, gain, eps: x * gain * (x.pow(2).mean(-1, keepdim=True) + eps).pow(-0.5)
    )
    assert l05.through([(0.5, 0), (1.5, 1)])
    assert l05.pre_norm(pre_norm_stack)
    assert l05.design(
        {"seeds": 5, "measure": COSINE, "depth": 2, "compare": ["residual only", "neither"]}
    )
    assert l05.design(DESIGN | {"depth": np.int64(6), "seeds": np.int64(3)})
    assert l05.diagnosis({"C": "both", "B": "norm", "A": "residual"})
    assert l05.by_hand([[-1.414, 0, 0, 1.414, 0.471, 0.943, 0.943, 1.414]])
    assert l05.identity_at_start(zero_last_matrices)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.5, 0], [1, 2]], "The first row is right, the second isn't"),
        ([[9, 9], [1.5, 1]], "Without the skip: multiply"),
        ([[1.5, -1], [1.5, 1]], "You sent the gradient up"),
        ([[1.5, 1], [1.5, 1]], "Without the skip: multiply"),  # not swapped: one row is right
    ],
)
def test_the_first_wrong_row_below_a_layer_is_told(rows, words):
    assert words in l05.through(rows).message


def mean(x):
    return x.mean(-1, keepdim=True)


@pytest.mark.parametrize(
    "norm",
    [
        lambda x, g, b, e: (
            torch.addcmul(b, (x - mean(x)) * (mean(x * x) - mean(x) ** 2 + e) ** -0.5, g)
        ),
        lambda x, g, b, e: torch.stack(
            [(t - t.mean()) / (t.var(correction=0) + e) ** 0.5 * g + b for t in x.flatten(0, -2)]
        ).view_as(x),
        lambda x, g, b, e: (
            (x.numpy() - x.numpy().mean(-1, keepdims=True))
            / (x.numpy().var(-1, keepdims=True) + e) ** 0.5 * g.numpy() + b.numpy()
        ),
    ],
)  # fmt: skip
def test_layer_norm_may_be_written_in_any_way(norm):
    assert l05.layer_norm(norm)


def norm_of_torch(x, gain, bias, eps):
    norm = nn.LayerNorm(x.shape[-1], eps, dtype=x.dtype)
    norm.load_state_dict({"weight": gain, "bias": bias})
    return norm(x)


@pytest.mark.parametrize(
    "ready_made",
    [
        norm_of_torch,
        lambda x, gain, bias, eps: torch.layer_norm(x, x.shape[-1:], gain, bias, eps),
        lambda x, gain, bias, eps: torch.native_layer_norm(x, x.shape[-1:], gain, bias, eps)[0],
        lambda x, gain, bias, eps: gain * nn.functional.layer_norm(x, x.shape[-1:], eps=eps) + bias,
    ],
)
def test_a_ready_made_norm_is_no_answer(ready_made):
    verdict = l05.layer_norm(ready_made)
    assert not verdict and "ready-made norm" in verdict.message


@pytest.mark.parametrize(
    "function",
    [
        lambda x, gain, bias, eps: x.mean(-1) - x,
        lambda x, gain, bias, eps: (
            (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0) + eps).sqrt() * gain + bias
        ),
    ],
)
def test_a_lost_axis_is_told_wherever_it_is_lost(function):
    assert "keepdim=True keeps it" in l05.layer_norm(function).message


def test_another_error_is_not_taken_for_a_lost_axis():
    verdict = l05.rms_norm(lambda x, gain, eps: x @ gain[:2])
    assert not verdict and "keepdim" not in verdict.message


def test_a_design_must_change_the_skip_alone_where_that_can_be_seen():
    right = DESIGN | {"compare": ("neither", "residual only")}
    for pair in itertools.permutations(VARIANTS, 2):
        fair = set(pair) in ({"neither", "residual only"}, {"norm only", "post-norm"})
        assert bool(l05.design(DESIGN | {"compare": pair})) == fair
    assert l05.design(right | {"compare": {"neither", "residual only"}})
    for seeds in range(5):
        assert bool(l05.design(right | {"seeds": seeds})) == (seeds >= 3)


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
    for depth in (2, 6, 12, 24):
        without, with_skip = (
            [cosine_of_a_stack(variant, depth, seed) for seed in range(3)] for variant in pair
        )
        apart = min(without) - max(with_skip) > 0.04
        verdict = l05.design(DESIGN | {"compare": pair, "depth": depth})
        assert bool(verdict) == apart, (depth, without, with_skip)
        assert apart or "upper end" in verdict.message or "next to nothing" in verdict.message


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (("norm only", "pre-norm"), "the skip, where the norms sit and the final norm"),
        (("neither", "pre-norm"), "the skip, whether there is a norm and the final norm"),
        (("neither", "post-norm"), "the skip and whether there is a norm"),
        (("post-norm", "pre-norm"), "where the norms sit and the final norm; both have a skip"),
        (("neither", "norm only"), "whether there is a norm; neither has a skip"),
        (("pre-norm", "pre-norm"), "named twice"),
    ],
)
def test_stacks_are_told_what_they_differ_in(pair, words):
    for compared in (pair, pair[::-1]):
        assert words in l05.design(DESIGN | {"compare": compared}).message


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("compare", ("norm only", "skip")), ("compare", "norm only"), ("compare", [..., ...]),
        ("depth", 7), ("depth", True), ("depth", ...), ("measure", "the cosine"),
        ("measure", ...), ("seeds", "three"), ("seeds", ...),
    ],
)  # fmt: skip
def test_an_unfinished_design_names_what_is_missing(slot, value):
    verdict = l05.design(DESIGN | {slot: value})
    assert not verdict and f'"{slot}" wants' in verdict.message


def test_a_wrong_row_gets_its_hint_whatever_the_other_row_holds():
    verdict = l05.by_hand([[-2, 0, 0, 2], [9, 9, 9, 9]])
    assert "haven't divided by the standard deviation" in verdict.message
    verdict = l05.by_hand([[-1.414, 0, 0, 1.414], [9, 9, 9, 9]])
    assert "second row isn't right" in verdict.message


def test_rounding_too_much_is_told_apart_from_being_wrong():
    assert "Very close" in l05.by_hand([[-1.41, 0, 0, 1.41], [0.47, 0.94, 0.94, 1.41]]).message


def test_an_unknown_wiring_is_answered_with_the_order_in_which_parts_ran():
    def attention_last(x, layers, final_norm):
        for attention, norm_1, feed_forward, norm_2 in layers:
            x = x + feed_forward(norm_2(x))
            x = x + attention(norm_1(x))
        return final_norm(x)

    verdict = l05.pre_norm(attention_last)
    assert not verdict and "norm_2, feed_forward, norm_1, attention, norm_2" in verdict.message


def test_every_wrong_diagnosis_gets_a_hint():
    right = DIAGNOSIS
    for choice in itertools.product(CHOICES, repeat=3):
        answer = dict(zip("ABC", choice, strict=True))
        assert bool(l05.diagnosis(answer)) == (answer == right)
    assert "A: one of these" in l05.diagnosis({"A": "skip", "B": "norm", "C": "both"}).message
    assert "wanted: A, B, C" in l05.diagnosis({"A": "norm"}).message


def switch_off_the_residual(block):
    block.residual = False


def zero_without_no_grad(block):
    block.attention.W_o.weight.zero_()


def zero_values_and_output(block):
    zero_last_matrices(block)
    nn.init.zeros_(block.attention.W_v.weight)
    nn.init.zeros_(block.attention.W_v.bias)


def break_the_block(block):
    zero_last_matrices(block)
    block.attention.W_o = nn.Linear(3, 3)


def leave_the_feed_forward_part(block):
    nn.init.zeros_(block.attention.W_o.weight)
    nn.init.zeros_(block.attention.W_o.bias)
    nn.init.ones_(block.feed_forward.W_2.weight)


def shrink(block):
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.mul_(1e-5)


def freeze_everything(block):
    zero_last_matrices(block)
    block.requires_grad_(False)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (freeze_everything, "frozen"),
        (switch_off_the_residual, "nothing carries x"),
        (zero_without_no_grad, "with torch.no_grad():"),
        (zero_values_and_output, "W_o or W_2 gets no gradient"),
        (break_the_block, "doesn't run any more"),
        (lambda block: nn.init.ones_(block.attention.W_o.weight), "still differs"),
        (leave_the_feed_forward_part, "adds something: the feed-forward part."),
        (shrink, "Small numbers come nearer"),
        (lambda block: nn.Identity(), "Another module in its place"),
        (lambda block: setattr(block, "forward", lambda x: (x, None)), "or another forward"),
    ],
)
def test_identity_hints_for_what_a_reader_may_try(answer, words):
    verdict = l05.identity_at_start(answer)
    assert not verdict and words in verdict.message


def test_identity_accepts_a_changed_block_that_is_returned():
    def change(block):
        zero_last_matrices(block)
        return block

    assert l05.identity_at_start(change)


def test_checks_leave_the_random_state_alone():
    torch.manual_seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)
    l05.identity_at_start(zero_last_matrices)
    l05.pre_norm(pre_norm_stack)
    l05.layer_norm(lambda x, gain, bias, eps: x)
    assert torch.equal(torch.rand(1), wanted)


def test_a_block_of_the_course_is_the_identity_after_the_solution():
    block = TransformerBlock(12, 3)
    zero_last_matrices(block)
    x = torch.randn(2, 5, 12)
    assert torch.equal(block(x)[0], x)
