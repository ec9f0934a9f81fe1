"""Checks of L04: what is right passes in other words, and odd answers get a hint that helps."""

import math
from itertools import permutations

import pytest
import torch
from tools import ROOT
from torch import nn

from attncourse.lessons import l04
from attncourse.lessons.l04.by_hand import _six_numbers
from attncourse.lessons.l04.repair import BUGGY_LISTING
from attnlib import MultiHeadAttention, merge_heads, split_heads

BY_HAND = _six_numbers().tolist()


def test_rounding_too_much_is_told_apart_from_being_wrong():
    assert l04.head_by_hand([round(number, 3) for number in BY_HAND])
    assert "more digits" in l04.head_by_hand([round(number, 2) for number in BY_HAND]).message


def test_numbers_in_rows_are_read_as_well():
    assert l04.head_by_hand([BY_HAND[:2], BY_HAND[2:4], BY_HAND[4:]])
    assert l04.one_token([[4, 11], [6, 9]])


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([*BY_HAND[:4], 1, 1], "The weights are right, the output isn't"),
        ([*BY_HAND[:2], 0.4, 0.6, *BY_HAND[4:]], "token 1's aren't"),
        ([0.5, 0.5, *BY_HAND[2:]], "Write Q, K and V down first"),
        ([*_six_numbers(scale=1.0).tolist()[:4], 9, 9], "The scale is missing"),
    ],
)
def test_the_first_row_that_is_wrong_is_told(numbers, words):
    assert words in l04.head_by_hand(numbers).message


def test_each_head_of_one_token_is_told_apart():
    assert "Head 1 is right, head 2 isn't" in l04.one_token([4, 11, 6, 8]).message
    assert l04.one_token([4, 10, 6, 9]).message.startswith("Head 1: ")


class TestReads:
    def test_other_ways_to_find_out_pass(self):
        def by_changing(head, heads_of, x):
            right, found = heads_of(x)[:, head], []
            for number in range(x.shape[-1]):
                changed = x.clone()
                changed[..., number] += 1
                found.append(not torch.allclose(heads_of(changed)[:, head], right))
            return torch.tensor(found)

        def by_jacobian(head, heads_of, x):
            jacobian = torch.autograd.functional.jacobian(lambda y: heads_of(y)[:, head], x)
            return jacobian.abs().flatten(0, -2).sum(0) > 0

        def by_backward(head, heads_of, x):
            x.requires_grad_()
            heads_of(x)[:, head].abs().sum().backward()
            return (x.grad != 0).flatten(0, 1).any(0).numpy()

        assert l04.reads(by_changing) and l04.reads(by_jacobian) and l04.reads(by_backward)

    @pytest.mark.parametrize(
        ("take", "conclude", "words"),
        [
            (lambda heads, i: heads[:, i].sum(), lambda g: g[0, 0] != 0, "a plain sum"),
            (lambda heads, i: heads[:, i].sum(), lambda g: g, "a plain sum"),
            (lambda heads, i: heads[:, i].sum(), lambda g: g.sum((0, 1)) > 0, "positive gradients"),
            (lambda heads, i: heads[i].sum(), lambda g: g, "is a sample"),
            (lambda heads, i: heads[..., i].pow(2).sum(), lambda g: g != 0, "one number of every"),
            (lambda heads, i: heads[:, i].pow(2).sum(), lambda g: g != 0, "every token by itself"),
            (lambda heads, i: heads[:, i], lambda g: g, "moves *one* number"),
        ],
    )
    def test_of_several_mistakes_one_is_told(self, take, conclude, words):
        def answer(head, heads_of, x):
            x = x.clone().requires_grad_()
            return conclude(torch.autograd.grad(take(heads_of(x), head), x)[0])

        assert words in l04.reads(answer).message

    def test_a_mean_is_a_plain_sum(self):
        def of_a_mean(head, heads_of, x):
            x = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(heads_of(x)[:, head].mean(), x)
            return (gradient != 0).flatten(0, 1).any(0)

        assert "a plain sum" in l04.reads(of_a_mean).message


def test_split_heads_is_not_to_be_called():
    assert "`split_heads` made them" in l04.split(split_heads).message


def test_merge_heads_is_not_to_be_called():
    assert "`merge_heads` made them" in l04.merge(merge_heads).message


def test_a_view_of_a_transpose_is_told():
    verdict = l04.merge(lambda x: x.transpose(1, 2).view(len(x), x.shape[2], -1))
    assert not verdict and "`reshape` copies" in verdict.message


def test_split_and_merge_in_other_words_pass():
    assert l04.split(lambda x, h: torch.stack(x.chunk(h, -1), 1))
    assert l04.merge(lambda x: torch.cat(x.unbind(1), -1))


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


def test_a_plain_tensor_is_no_parameter():
    def assign(theirs):
        ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
        ours.W_o.weight = theirs.out_proj.weight.detach()
        return ours

    assert "by copy_" in l04.loaded(assign).message


def test_what_is_no_module_is_named():
    assert "a dict came" in l04.loaded(lambda theirs: theirs.state_dict() and {}).message


def test_settings_that_differ_in_several_ways_are_told_in_which():
    runs = [(h, symbols, 400, seed) for h in (1, 2) for symbols in (8, 16) for seed in range(3)]
    assert l04.comparison(runs).message.startswith("Heads and symbols differ")


def test_forgetting_no_grad_is_named():
    def load(theirs):
        ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
        ours.W_o.weight.copy_(theirs.out_proj.weight)
        return ours

    assert "torch.no_grad()" in l04.loaded(load).message


class TestSumOverHeads:
    def test_other_sums_pass(self):
        def by_einsum(heads, W_o, b_o):
            return torch.einsum("bhtk,hkd->btd", heads, W_o.unflatten(0, heads.shape[1::2])) + b_o

        def by_broadcasting(heads, W_o, b_o):
            return (heads @ W_o.unflatten(0, heads.shape[1::2])).sum(1) + b_o

        assert l04.sum_over_heads(by_einsum) and l04.sum_over_heads(by_broadcasting)

    def test_joining_is_seen_however_it_is_written(self):
        for join in (
            lambda heads: torch.cat(heads.unbind(1), -1),
            lambda heads: heads.transpose(1, 2).flatten(2),
            lambda heads: heads.permute(0, 2, 1, 3).reshape(-1, heads.shape[1] * heads.shape[3]),
        ):
            verdict = l04.sum_over_heads(
                lambda heads, W_o, b_o, join=join: (join(heads) @ W_o + b_o).view(
                    len(heads), -1, len(b_o)
                )
            )
            assert not verdict and "joined" in verdict.message


class Plain(nn.Module):
    """Right on level 1; `allow` decides what becomes of a mask."""

    def __init__(self, d, h):
        super().__init__()
        self.h, self.d_k = h, d // h
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d, d) for _ in range(4))

    def allow(self, scores, mask):
        return scores.masked_fill(~mask, -math.inf).softmax(-1)

    def forward(self, x, mask=None):
        q, k, v = (split_heads(W(x), self.h) for W in (self.W_q, self.W_k, self.W_v))
        scores = q @ k.transpose(-2, -1) / self.d_k**0.5
        weights = scores.softmax(-1) if mask is None else self.allow(scores, mask)
        return self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights


class Blind(Plain):
    """Right on all levels."""

    def allow(self, scores, mask):
        mask = mask.unsqueeze(-3)
        blind = ~mask.any(-1, keepdim=True)
        return super().allow(scores, mask | blind).masked_fill(blind, 0)


def shared_out(weights, eps):
    return weights / (weights.sum(-1, keepdim=True) + eps)


class TestModule:
    def test_levels_are_told(self):
        class NoMask(Plain):
            def forward(self, x):
                return super().forward(x)

        class PerSample(Plain):
            def allow(self, scores, mask):
                return super().allow(scores, mask[:, None] if mask.dim() == 3 else mask)

        for candidate, told in (
            (NoMask, "Level 1 is reached"),
            (Plain, "Level 2 is reached"),
            (PerSample, "Level 3 lacks only the rows that may look nowhere"),
        ):
            verdict = l04.module(candidate)
            assert not verdict and verdict.message.startswith(told)

    def test_all_levels(self):
        assert l04.module(Blind)

    @pytest.mark.parametrize(
        ("results", "words"),
        [
            (lambda output, weights: output, "it comes alone"),
            (lambda output, weights: (output,), "it comes alone"),
            (lambda output, weights: (weights, output), "The output comes first"),
            (lambda output, weights: (output, None), "is None"),
            (lambda output, weights: (output, weights.mean(1)), "the mean over the heads"),
            (lambda output, weights: (output, weights, weights), "Return two tensors"),
            (lambda output, weights: {"output": output, "weights": weights}, "returns: dict"),
            (lambda output, weights: (output, weights.detach().numpy()), "Tensor, ndarray"),
            (lambda output, weights: (output, weights.flatten(1)), "the weights have shape"),
        ],
    )
    def test_both_results_are_wanted(self, results, words):
        class Returning(Blind):
            def forward(self, x, mask=None):
                return results(*super().forward(x, mask))

        verdict = l04.module(Returning)
        assert not verdict and words in verdict.message

    @pytest.mark.parametrize("layers", ["W_q W_k W_v W_o", "W_q", "W_o"])
    def test_a_layer_without_its_bias_is_refused(self, layers):
        class WithoutBias(Blind):
            def __init__(self, d, h):
                super().__init__(d, h)
                for name in layers.split():
                    setattr(self, name, nn.Linear(d, d, bias=False))

        verdict = l04.module(WithoutBias)
        assert not verdict and "for layers without biases" in verdict.message

    def test_bare_matrices_are_layers_without_biases(self):
        class Bare(Blind):
            def __init__(self, d, h):
                super().__init__(d, h)
                for name in ("W_q", "W_k", "W_v", "W_o"):
                    delattr(self, name)
                    setattr(self, name, nn.Parameter(torch.randn(d, d) / d**0.5))

            def forward(self, x, mask=None):
                q, k, v = (split_heads(x @ W, self.h) for W in (self.W_q, self.W_k, self.W_v))
                scores = q @ k.mT / self.d_k**0.5
                weights = scores.softmax(-1) if mask is None else self.allow(scores, mask)
                return (weights @ v).transpose(1, 2).flatten(2) @ self.W_o, weights

        assert "for layers without biases" in l04.module(Bare).message

    @pytest.mark.parametrize(
        "allow",
        [
            lambda scores, mask: shared_out(scores.softmax(-1) * mask, 0.0),
            lambda scores, mask: shared_out(scores.softmax(-1) * mask, 1e-9),
            lambda scores, mask: shared_out(scores.softmax(-1) * mask, 0.0).nan_to_num(0),
            lambda scores, mask: (scores - 100.0 * ~mask).softmax(-1),
            lambda scores, mask: scores.masked_fill(~mask, -100.0).softmax(-1),
        ],
    )
    @pytest.mark.parametrize("seed", range(5))
    def test_masks_that_fail_where_scores_are_far_apart_are_told(self, allow, seed):
        class Fragile(Plain):
            def allow(self, scores, mask):
                mask = mask.unsqueeze(-3)
                return allow(scores, mask) * mask.any(-1, keepdim=True)

        torch.manual_seed(seed)
        verdict = l04.module(Fragile)
        assert not verdict and verdict.message.startswith("Level 2 is nearly reached")

    @pytest.mark.parametrize("fill", [-1e4, -1e9, torch.finfo().min, -math.inf])
    def test_low_numbers_pass(self, fill):
        class Filled(Plain):
            def allow(self, scores, mask):
                mask = mask.unsqueeze(-3)
                seeing = mask.any(-1, keepdim=True)
                return scores.masked_fill(~mask & seeing, fill).softmax(-1) * seeing

        assert l04.module(Filled)

    def test_a_module_that_is_built_already_is_told(self):
        assert "Hand in the class" in l04.module(Plain(12, 3)).message

    def test_of_an_unknown_difference_the_first_line_is_told(self):
        class Doubled(Plain):
            def forward(self, x, mask=None):
                output, weights = super().forward(x, mask)
                return 2 * output, weights

        message = l04.module(Doubled).message
        assert message.startswith("Level 1, without a mask: ") and "\n" not in message

    def test_a_mask_that_is_not_used_has_no_effect_yet(self):
        class Unmasked(Plain):
            def allow(self, scores, mask):
                return scores.softmax(-1)

        assert "it has no effect yet" in l04.module(Unmasked).message

    def test_what_the_doctor_says_of_a_call_is_told_to_its_end(self):
        class Refusing(Plain):
            def allow(self, scores, mask):
                raise ValueError("five axes were wanted")

        assert l04.module(Refusing).message.endswith("turns [B, T, T] into [T, T, B].")

    def test_layers_that_are_not_found_are_asked_for_by_name(self):
        class Listed(Plain):
            def __init__(self, d, h):
                super().__init__(d, h)
                del self.W_q, self.W_k, self.W_v
                self.three = nn.ModuleList(
                    nn.ModuleList([nn.Linear(d, d // h) for _ in range(h)]) for _ in range(3)
                )

            def forward(self, x, mask=None):
                q, k, v = (torch.stack([W(x) for W in each], 1) for each in self.three)
                weights = (q @ k.mT / self.d_k**0.5).softmax(-1)
                return self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights

        message = l04.module(Listed).message
        assert "Call them W_q, W_k, W_v and W_o" in message and "load=" not in message

    def test_what_builds_no_module_is_named(self):
        assert "a Tensor was built" in l04.module(lambda d, h: torch.zeros(d, h)).message
        assert "without calling it" in l04.module(Plain(12, 3).W_o.weight).message

        class Stub(Plain):
            def forward(self, x, mask=None):
                raise NotImplementedError

        assert "still the stub" in l04.module(Stub).message

    def test_a_width_that_the_heads_do_not_divide_is_never_asked(self):
        class Strict(Plain):
            def __init__(self, d, h):
                if d % h:
                    raise ValueError("heads don't fit")
                super().__init__(d, h)

        assert l04.module(Strict).message.startswith("Level 2")


@pytest.mark.parametrize("scale", [1.0, 4.0, 0.5])  # none, d_k, multiplied: with d_k = 4
def test_a_scale_that_was_changed_and_is_wrong_is_one_of_the_bugs_left(scale):
    def attention(x, W_q, W_k, W_v, W_o, h):
        B, T, d = x.shape
        d_k = d // h
        q, k, v = (t.view(B, T, h, d_k).transpose(1, 2) for t in (x @ W_q, x @ W_k, x @ W_v))
        weights = (q @ k.mT / d_k ** {1.0: 0, 4.0: 1, 0.5: -0.5}[scale]).softmax(-1)
        return (weights @ v).reshape(B, T, d) @ W_o

    assert "the scale, the merge" in l04.mended(attention).message


class TestBuggyLines:
    def test_the_listing_has_the_four_bugs(self):
        found = {"math": math}
        exec(BUGGY_LISTING, found)
        assert l04.mended(found["attention"]).message.startswith("All four bugs")

    def test_the_page_shows_it(self):
        page = (ROOT / "book/L04_Multi_Head_Attention.md").read_text(encoding="utf-8")
        assert f"{BUGGY_LISTING}\n\n\ncheck.mended(attention)" in page

    def test_any_order_and_any_collection_pass(self):
        assert l04.buggy_lines((10, 5, 8, 7)) and l04.buggy_lines({5, 7, 8, 10})
        assert l04.buggy_lines(torch.tensor([5, 7, 8, 10]))

    def test_some_of_them_are_counted(self):
        assert l04.buggy_lines([7, 10]).message.startswith("2 of the four so far")

    def test_numbers_beyond_the_listing_are_no_lines(self):
        for lines in ([5, 7, 8, 12], [[5, 7], [8, 10]], ["5", "7", "8", "10"], "5,7,8,10"):
            assert "from 1 to 11" in l04.buggy_lines(lines).message


class TestComparison:
    def test_more_seeds_in_any_order_pass(self):
        runs = [(1, symbols, 400, seed) for seed in (7, 1, 5, 3) for symbols in (8, 16)]
        assert l04.comparison(runs) and l04.comparison([list(run) for run in runs])
        assert l04.comparison(torch.tensor(runs)) and l04.comparison(set(runs))

    def test_any_other_order_of_the_four_numbers_is_told(self):
        run = (1, 16, 400, 0)
        for order in permutations(range(4)):
            runs = [(1, symbols, 400, seed) for seed in range(3) for symbols in (8, 16)]
            verdict = l04.comparison([tuple(run[i] for i in order) for run in runs])
            assert bool(verdict) == (order == (0, 1, 2, 3))
            assert verdict or "(heads, symbols, steps, seed)" in verdict.message, run

    def test_a_run_too_many_is_refused(self):
        runs = [(1, symbols, 400, seed) for seed in range(3) for symbols in (8, 12, 16)]
        assert "no other runs" in l04.comparison(runs).message

    def test_a_run_twice_is_no_second_seed(self):
        runs = [(1, symbols, 400, seed) for seed in (0, 0, 1) for symbols in (8, 16)]
        assert "different runs" in l04.comparison(runs).message
