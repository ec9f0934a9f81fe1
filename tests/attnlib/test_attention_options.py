"""Every option of the module, alone and together, against plain loops and its promises."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools import oracle
from tools.modules import F64, make_module, random_mask
from torch import nn

from attnlib import MultiHeadAttention, causal_mask, padding_mask


def close(a, b, atol=1e-12):
    return torch.allclose(a, b, atol=atol, rtol=0)


class TestTogether:
    @given(st.data())
    def test_everything_at_once_equals_plain_loops(self, data):
        draw = data.draw
        torch.manual_seed(draw(st.integers(0, 999)))
        h_kv, sharing, d_k = (draw(st.integers(1, 3)) for _ in range(3))
        B, T_q, T_k, kdim, vdim = (draw(st.integers(1, 4)) for _ in range(5))
        h = h_kv * sharing
        module = make_module(h * d_k, h, num_kv_heads=h_kv, kdim=kdim, vdim=vdim)
        query = torch.randn(B, T_q, h * d_k, dtype=F64)
        key, value = torch.randn(B, T_k, kdim, dtype=F64), torch.randn(B, T_k, vdim, dtype=F64)
        mask, key_mask = random_mask(B, h, T_q, T_k), torch.rand(B, T_k) < 0.8
        bias, factors = torch.randn(1, h, T_q, T_k, dtype=F64) * 3, torch.randn(B, h, dtype=F64)
        inputs = (query, key, value)
        limits = {"mask": mask, "key_mask": key_mask, "score_bias": bias, "head_mask": factors}
        shown, weights = module(*inputs, **limits, need_weights=True)
        with torch.no_grad():
            explicit, in_place = module(*inputs, **limits, need_weights=True)
        for b in range(B):
            expected, rows = oracle.multi_head_attention(
                query[b].tolist(), key[b].tolist(), value[b].tolist(), module,
                (mask & key_mask[:, None, None])[b].tolist(), bias[0].tolist(), factors[b].tolist(),
            )  # fmt: skip
            for output in (shown, explicit, module(*inputs, **limits)[0]):
                assert close(output[b], torch.tensor(expected, dtype=F64), 1e-10)
            for found in (weights, in_place):
                assert close(found[b], torch.tensor(rows, dtype=F64), 1e-10)
        parts = module.contributions(*inputs, **limits)
        assert parts.shape == (B, h, T_q, h * d_k)
        assert close(parts.sum(1) + module.W_o.bias, shown, 1e-10)


class TestGroupedHeads:
    @pytest.mark.parametrize("h_kv", [1, 2, 3, 6])
    def test_equals_a_module_whose_shared_heads_are_written_out(self, h_kv):
        grouped, plain = make_module(12, 6, num_kv_heads=h_kv), make_module(12, 6)
        with torch.no_grad():
            for name in ("W_q", "W_o"):
                getattr(plain, name).load_state_dict(getattr(grouped, name).state_dict())
            for name in ("W_k", "W_v"):
                for kind in ("weight", "bias"):
                    shared = getattr(getattr(grouped, name), kind).unflatten(0, (h_kv, 2))
                    written_out = shared.repeat_interleave(6 // h_kv, 0).flatten(0, 1)
                    getattr(getattr(plain, name), kind).copy_(written_out)
        x = torch.randn(2, 5, 12, dtype=F64)
        for causal in (True, False):
            for need_weights in (True, False):
                ours = grouped(x, causal=causal, need_weights=need_weights)
                theirs = plain(x, causal=causal, need_weights=need_weights)
                assert close(ours[0], theirs[0])
                assert ours[1] is None or close(ours[1], theirs[1])

    def test_keys_and_values_shrink(self):
        module = MultiHeadAttention(12, 6, num_kv_heads=2)
        assert module.W_k.weight.shape == module.W_v.weight.shape == (4, 12)
        assert "num_kv_heads=2" in repr(module)

    def test_widths_of_keys_and_values(self):
        ours = make_module(12, 3, kdim=5, vdim=7)
        theirs = nn.MultiheadAttention(12, 3, kdim=5, vdim=7, batch_first=True, dtype=F64)
        with torch.no_grad():
            theirs.q_proj_weight.copy_(ours.W_q.weight)
            theirs.k_proj_weight.copy_(ours.W_k.weight)
            theirs.v_proj_weight.copy_(ours.W_v.weight)
            parts = (ours.W_q, ours.W_k, ours.W_v)
            theirs.in_proj_bias.copy_(torch.cat([p.bias for p in parts]))
            theirs.out_proj.load_state_dict(ours.W_o.state_dict())
        inputs = [torch.randn(2, T, d, dtype=F64) for T, d in ((4, 12), (6, 5), (6, 7))]
        expected = theirs(*inputs, average_attn_weights=False)
        output, weights = ours(*inputs, need_weights=True)
        assert close(output, expected[0]) and close(weights, expected[1])


class TestScoreBias:
    def test_minus_infinity_forbids(self):
        module, x = make_module(6, 2), torch.randn(1, 4, 6, dtype=F64)
        mask = random_mask(4, 4)
        bias = torch.randn(4, 4, dtype=F64)
        forbidding = bias.masked_fill(~mask, -torch.inf)
        for need_weights in (True, False):
            one = module(x, score_bias=forbidding, need_weights=need_weights)
            two = module(x, score_bias=bias, mask=mask, need_weights=need_weights)
            assert close(one[0], two[0])
            assert close(one[0][:, 0], module.W_o.bias)  # the row that may look nowhere
            assert one[1] is None or close(one[1], two[1])

    def test_it_multiplies_the_weights_by_its_exponential(self):
        # As ALiBi does: a slope a head, so that far keys count less.
        module, x = make_module(6, 2), torch.randn(2, 4, 6, dtype=F64)
        steps = torch.arange(4)
        distance = (steps[:, None] - steps).abs()
        bias = -torch.tensor([0.5, 2.0], dtype=F64)[:, None, None] * distance  # [h, T_q, T_k]
        _, plain = module(x, need_weights=True)
        _, sloped = module(x, score_bias=bias[None], need_weights=True)
        expected = plain * bias.exp()
        assert close(sloped, expected / expected.sum(-1, keepdim=True))

    @pytest.mark.parametrize("need_weights", [True, False])
    def test_gradients_reach_the_bias(self, need_weights):
        module, x = make_module(4, 2), torch.randn(2, 3, 4, dtype=F64)
        bias = torch.randn(1, 2, 3, 3, dtype=F64, requires_grad=True)

        def output(bias):
            return module(x, score_bias=bias, causal=True, need_weights=need_weights)[0]

        assert torch.autograd.gradcheck(output, (bias,))

    @pytest.mark.parametrize("need_weights", [True, False])
    def test_may_be_of_another_precision(self, need_weights):
        module, x = make_module(6, 2, dtype=torch.float32), torch.randn(2, 4, 6)
        bias = torch.randn(4, 4)
        expected, _ = module(x, score_bias=bias)
        output, _ = module(x, score_bias=bias.double(), need_weights=need_weights)
        assert torch.allclose(output, expected, atol=1e-6)


class TestHeadMask:
    def test_zero_mutes_a_head_and_only_it(self):
        module, x = make_module(6, 3), torch.randn(2, 4, 6, dtype=F64)
        parts = module.contributions(x)
        muted, weights = module(x, head_mask=torch.tensor([1.0, 0.0, 1.0]), need_weights=True)
        assert close(muted, module(x)[0] - parts[:, 1])
        assert close(weights, module(x, need_weights=True)[1])

    def test_each_sample_may_mute_its_own(self):
        module, x = make_module(6, 3), torch.randn(2, 4, 6, dtype=F64)
        keep = torch.tensor([[1, 0, 1], [0, 1, 1]], dtype=torch.bool)
        both = module(x, head_mask=keep)[0]
        for b in range(2):
            assert close(both[b], module(x[b : b + 1], head_mask=keep[b])[0][0])

    def test_gradients_flow_through_it(self):
        module, x = make_module(4, 2), torch.randn(2, 3, 4, dtype=F64)
        factors = torch.rand(2, dtype=F64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda f: module(x, head_mask=f)[0], (factors,))


class TestWeightsAskedFor:
    @pytest.mark.parametrize("gradient", [True, False])
    @pytest.mark.parametrize("h_kv", [1, 2, 4])
    @pytest.mark.parametrize("per_head", [True, False])
    def test_of_some_heads_in_the_order_asked(self, gradient, h_kv, per_head):
        module, x = make_module(8, 4, num_kv_heads=h_kv), torch.randn(3, 5, 8, dtype=F64)
        mask = random_mask(3, 4, 5, 5) if per_head else random_mask(5, 5)
        bias = torch.randn(1, 4, 5, 5, dtype=F64)
        with torch.set_grad_enabled(gradient):
            output, all_heads = module(x, mask=mask, score_bias=bias, need_weights=True)
            again, some = module(x, mask=mask, score_bias=bias, weights_for=(3, 1))
        assert close(some, all_heads[:, [3, 1]]) and close(again, output)

    @pytest.mark.parametrize("h_kv", [2, 4])
    @pytest.mark.parametrize("options", [{}, {"weights_for": [2, 0]}, {"causal": True}])
    def test_into_memory_that_is_there(self, h_kv, options):
        module, x = make_module(8, 4, num_kv_heads=h_kv), torch.randn(3, 5, 8, dtype=F64)
        buffer = torch.full(
            (3, len(options.get("weights_for", range(4))), 5, 5), torch.nan
        ).double()
        with torch.no_grad():
            output, weights = module(x, weights_out=buffer, **options)
            expected = module(x, need_weights=True, **options)
        assert weights.data_ptr() == buffer.data_ptr()
        assert close(buffer, expected[1]) and close(output, expected[0])

    def test_are_those_before_dropout(self):
        module, x = make_module(8, 2, dropout=0.5).train(), torch.randn(2, 9, 8, dtype=F64)
        quiet, exact = module.eval()(x, need_weights=True)
        module.train()
        for gradient in (True, False):
            with torch.set_grad_enabled(gradient):
                outputs, weights = zip(
                    *(module(x, need_weights=True) for _ in range(2)), strict=True
                )
            assert all(close(w, exact) for w in weights)
            assert not close(outputs[0], outputs[1]) and not close(outputs[0], quiet)
        with torch.no_grad():
            many = torch.stack([module(x)[0] for _ in range(2000)])
        # Dropout scales what it keeps by 1 / (1 - p), so the mean stays: within 6 standard errors.
        assert ((many.mean(0) - quiet).abs() < 6 * many.std(0) / len(many) ** 0.5).all()


class TestBlindRows:
    @pytest.mark.parametrize("filler", [0.0, 1e300, torch.nan])
    def test_padding_must_be_finite(self, filler):
        """Its weight is 0, and 0 x NaN is NaN."""
        module, x = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64)
        key_mask = padding_mask(torch.tensor([2]), 3)
        expected = module(x[:, :2])[0]
        x[:, 2] = filler
        output = module(x, key_mask=key_mask)[0][:, :2]
        assert output.isnan().all() if filler != filler else close(output, expected)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
    @pytest.mark.parametrize("asked", [{}, {"need_weights": True}, {"weights_for": [1]}])
    @pytest.mark.parametrize("biased", [True, False])
    @pytest.mark.parametrize("h_kv", [1, 2])
    @pytest.mark.parametrize("gradient", [True, False])
    def test_no_nan_anywhere(self, dtype, asked, biased, h_kv, gradient):
        module = MultiHeadAttention(8, 2, num_kv_heads=h_kv, dtype=dtype, dropout=0.5)
        nn.init.normal_(module.W_o.bias)
        x = torch.randn(2, 3, 8, dtype=dtype, requires_grad=gradient)
        bias = torch.randn(1, 2, 3, 3, dtype=dtype) if biased else None
        limits = {"key_mask": padding_mask(torch.tensor([0, 2]), 3), "score_bias": bias}
        with torch.set_grad_enabled(gradient):
            output, weights = module(x, causal=True, **limits, **asked)
        assert torch.equal(output[0], module.W_o.bias.expand(3, 8))
        assert weights is None or weights[0].abs().max() == 0
        if gradient:
            loss = output.float().pow(2).sum()
            loss = loss if weights is None else loss + weights.float().pow(2).sum()
            with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
                loss.backward()
            gradients = [x.grad, *(p.grad for p in module.parameters())]
            assert all(torch.isfinite(g).all() for g in gradients)


class TestContributions:
    def test_are_what_each_head_adds(self):
        module, x = make_module(6, 3), torch.randn(2, 4, 6, dtype=F64)
        parts = module.contributions(x, causal=True)
        for head in range(3):
            alone = torch.eye(3, dtype=F64)[head]
            expected = module(x, causal=True, head_mask=alone)[0] - module.W_o.bias
            assert close(parts[:, head], expected)

    def test_without_a_bias(self):
        module, x = make_module(6, 3, bias=False), torch.randn(2, 4, 6, dtype=F64)
        assert close(module.contributions(x).sum(1), module(x)[0])


class TestMixedPrecision:
    @pytest.mark.parametrize("asked", [{}, {"need_weights": True}, {"weights_for": [1]}])
    @pytest.mark.parametrize("gradient", [True, False])
    def test_autocast(self, asked, gradient):
        module, x = make_module(8, 2, dtype=torch.float32), torch.randn(2, 3, 8)
        bias = torch.randn(3, 3)
        exact, exact_weights = module(x, score_bias=bias, causal=True, **asked)
        with torch.set_grad_enabled(gradient), torch.autocast("cpu", torch.bfloat16):
            output, weights = module(x, score_bias=bias, causal=True, **asked)
            again, _ = module(output)  # the next layer gets what this one gives
            parts = module.contributions(x, score_bias=bias, causal=True)
        assert output.dtype == again.dtype == torch.bfloat16
        assert (output.float() - exact).abs().max() < 0.05
        assert (parts.float().sum(1) + module.W_o.bias - exact).abs().max() < 0.05
        assert weights is None or (weights.float() - exact_weights).abs().max() < 0.02
        if gradient:
            again.float().sum().backward()
            assert all(torch.isfinite(p.grad).all() for p in module.parameters())


def test_a_hook_on_the_last_projection_fires():
    # nn.MultiheadAttention calls its out_proj as a function, so hooks on it stay silent.
    module, seen = make_module(6, 2), []
    module.W_o.register_forward_hook(lambda *_: seen.append("W_o"))
    module(torch.randn(1, 3, 6, dtype=F64))
    assert seen == ["W_o"]


def test_causal_and_padding_and_mask_combine():
    module, x = make_module(6, 2), torch.randn(3, 4, 6, dtype=F64)
    mask, key_mask = torch.rand(3, 4, 4) < 0.7, padding_mask(torch.tensor([1, 3, 4]), 4)
    _, weights = module(x, mask=mask, key_mask=key_mask, causal=True, need_weights=True)
    allowed = mask & key_mask[:, None] & causal_mask(4)
    expected = module(x, mask=allowed[:, None].expand(3, 2, 4, 4), need_weights=True)[1]
    assert close(weights, expected)
    assert (weights.transpose(0, 1)[:, ~allowed] == 0).all()
