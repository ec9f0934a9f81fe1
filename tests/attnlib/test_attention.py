"""The function and the module against plain loops, PyTorch's own, and their promises."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tools import oracle
from tools.modules import F64, make_module, random_mask
from torch import nn

from attnlib import (
    MultiHeadAttention,
    causal_mask,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)

sizes = st.integers(1, 6)


class TestFunction:
    @given(sizes, sizes, sizes, sizes, st.booleans(), st.integers(0, 999))
    def test_equals_plain_loops(self, T_q, T_k, d_k, d_v, masked, seed):
        torch.manual_seed(seed)
        q, k, v = torch.randn(T_q, d_k), torch.randn(T_k, d_k), torch.randn(T_k, d_v)
        q, k, v = q.double(), k.double(), v.double()
        mask = random_mask(T_q, T_k) if masked else None
        output, weights = scaled_dot_product_attention(q, k, v, mask)
        expected = oracle.attend(
            q.tolist(), k.tolist(), v.tolist(), None if mask is None else mask.tolist()
        )
        assert torch.allclose(output, torch.tensor(expected[0], dtype=F64), atol=1e-12)
        assert torch.allclose(weights, torch.tensor(expected[1], dtype=F64), atol=1e-12)

    @given(sizes, sizes, sizes, sizes, sizes, st.integers(0, 999))
    def test_equals_torch_functional(self, B, h, T_q, T_k, d_k, seed):
        torch.manual_seed(seed)
        q, k = torch.randn(B, h, T_q, d_k, dtype=F64), torch.randn(B, h, T_k, d_k, dtype=F64)
        v = torch.randn(B, h, T_k, d_k + 1, dtype=F64)
        mask = torch.rand(B, 1, T_q, T_k) < 0.5
        mask[..., 0] = True
        output, _ = scaled_dot_product_attention(q, k, v, mask)
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        assert torch.allclose(output, expected, atol=1e-12)

    def test_causal_equals_its_mask(self):
        q, k, v = (torch.randn(2, 3, 5, 4) for _ in range(3))
        ours = scaled_dot_product_attention(q, k, v, causal=True)
        theirs = scaled_dot_product_attention(q, k, v, causal_mask(5))
        assert torch.equal(ours[0], theirs[0]) and torch.equal(ours[1], theirs[1])
        assert ours[1].triu(1).abs().max() == 0

    def test_a_mask_and_causal_combine(self):
        q = torch.randn(3, 4, 2)
        mask = torch.rand(4, 4) < 0.7
        _, both = scaled_dot_product_attention(q, q, q, mask, causal=True)
        _, combined = scaled_dot_product_attention(q, q, q, mask & causal_mask(4))
        assert torch.equal(both, combined)

    def test_three_dimensions_always_mean_batch(self):
        # With B == h, a mask [B, T, T] would silently mask heads if it were broadcast.
        q = torch.randn(2, 2, 3, 4)
        mask = torch.stack([causal_mask(3), torch.ones(3, 3, dtype=torch.bool)])
        _, weights = scaled_dot_product_attention(q, q, q, mask)
        assert weights[0].triu(1).max() == 0
        assert weights[1].triu(1).sum() > 0

    def test_a_row_that_may_look_nowhere_has_gradients_too(self):
        q, k, v = (torch.randn(5, 4, dtype=F64, requires_grad=True) for _ in range(3))
        output, weights = scaled_dot_product_attention(q, k, v, random_mask(5, 5))
        assert weights[0].abs().max() == 0 and output[0].abs().max() == 0
        with torch.autograd.set_detect_anomaly(True):
            (output.pow(2).sum() + weights.pow(2).sum()).backward()
        assert q.grad[0].abs().max() == 0
        assert all(torch.isfinite(x.grad).all() for x in (q, k, v))

    def test_extreme_scores_stay_finite(self):
        q, k = torch.full((1, 4), 1e4), torch.stack([torch.full((4,), 1e4), torch.zeros(4)])
        output, weights = scaled_dot_product_attention(q, k, torch.eye(2, 4))
        assert torch.equal(weights, torch.tensor([[1.0, 0.0]]))
        assert torch.isfinite(output).all()


class TestHeads:
    @given(sizes, sizes, sizes, sizes)
    def test_split_and_merge_are_inverse(self, B, T, h, d_k):
        x = torch.randn(B, T, h * d_k)
        assert split_heads(x, h).shape == (B, h, T, d_k)
        assert torch.equal(merge_heads(split_heads(x, h)), x)

    def test_a_head_is_a_slice_of_columns(self):
        x = torch.randn(2, 3, 8)
        assert torch.equal(split_heads(x, 4)[:, 1], x[:, :, 2:4])

    def test_split_accepts_a_view(self):
        x = torch.randn(3, 2, 8).transpose(0, 1)
        assert torch.equal(split_heads(x, 2), split_heads(x.contiguous(), 2))


class TestModule:
    @given(
        st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4),
        st.integers(1, 3), st.booleans(), st.integers(0, 999),
    )  # fmt: skip
    def test_equals_plain_loops(self, B, T_q, T_k, h, d_k, masked, seed):
        torch.manual_seed(seed)
        module = make_module(h * d_k, h)
        query, key, value = (torch.randn(B, T, h * d_k, dtype=F64) for T in (T_q, T_k, T_k))
        mask = random_mask(B, h, T_q, T_k) if masked else None
        output, weights = module(query, key, value, mask=mask, need_weights=True)
        for b in range(B):
            out, rows = oracle.multi_head_attention(
                query[b].tolist(), key[b].tolist(), value[b].tolist(), module,
                None if mask is None else mask[b].tolist(),
            )  # fmt: skip
            assert torch.allclose(output[b], torch.tensor(out, dtype=F64), atol=1e-10)
            assert torch.allclose(weights[b], torch.tensor(rows, dtype=F64), atol=1e-10)

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("causal", [True, False])
    def test_equals_torch_module(self, bias, causal):
        ours = make_module(12, 3, bias=bias)
        theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, dtype=F64)
        with torch.no_grad():
            parts = [ours.W_q, ours.W_k, ours.W_v]
            theirs.in_proj_weight.copy_(torch.cat([p.weight for p in parts]))
            theirs.out_proj.weight.copy_(ours.W_o.weight)
            if bias:
                theirs.in_proj_bias.copy_(torch.cat([p.bias for p in parts]))
                theirs.out_proj.bias.copy_(ours.W_o.bias)
        x = torch.randn(2, 5, 12, dtype=F64)
        # torch's module means the opposite: True = blocked.
        blocked = ~causal_mask(5) if causal else None
        expected = theirs(x, x, x, attn_mask=blocked, average_attn_weights=False)
        output, weights = ours(x, causal=causal, need_weights=True)
        assert torch.allclose(output, expected[0], atol=1e-12)
        assert torch.allclose(weights, expected[1], atol=1e-12)

    @given(
        st.integers(1, 3), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3),
        st.sampled_from(["none", "2-D", "3-D", "4-D", "blind"]), st.booleans(), st.booleans(),
    )  # fmt: skip
    def test_fused_path_equals_explicit_path(self, B, T, h, d_k, kind, padded, causal):
        module = make_module(h * d_k, h)
        x = torch.randn(B, T, h * d_k, dtype=F64)
        masks = {
            "none": None, "2-D": torch.rand(T, T) < 0.5, "3-D": torch.rand(B, T, T) < 0.5,
            "4-D": torch.rand(B, h, T, T) < 0.5, "blind": torch.zeros(T, T, dtype=torch.bool),
        }  # fmt: skip
        key_mask = padding_mask(torch.randint(0, T + 1, (B,)), T) if padded else None
        limits = {"mask": masks[kind], "key_mask": key_mask, "causal": causal}
        fused, nothing = module(x, **limits)
        explicit, weights = module(x, **limits, need_weights=True)
        assert nothing is None and weights.shape == (B, h, T, T)
        assert torch.allclose(fused, explicit, atol=1e-12)

    @pytest.mark.parametrize("need_weights", [True, False])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_a_row_that_may_look_nowhere(self, need_weights, dtype):
        module = MultiHeadAttention(8, 2, dtype=dtype)
        nn.init.normal_(module.W_o.bias)
        x = torch.randn(2, 3, 8, dtype=dtype, requires_grad=True)
        key_mask = padding_mask(torch.tensor([0, 2]), 3)
        output, weights = module(x, key_mask=key_mask, need_weights=need_weights)
        assert torch.equal(output[0], module.W_o.bias.expand(3, 8))
        if need_weights:
            assert weights[0].abs().max() == 0
            assert torch.allclose(weights[1].float().sum(-1), torch.ones(2, 3), atol=1e-2)
        with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
            output.float().pow(2).sum().backward()
        gradients = [x.grad, *(p.grad for p in module.parameters())]
        assert all(torch.isfinite(g).all() for g in gradients)

    def test_padding_changes_nothing_for_the_real_tokens(self):
        module, x = make_module(6, 2), torch.randn(1, 5, 6, dtype=F64)
        alone, _ = module(x[:, :3])
        padded, _ = module(x, key_mask=padding_mask(torch.tensor([3]), 5))
        assert torch.allclose(padded[:, :3], alone, atol=1e-12)

    def test_causal_output_ignores_the_future(self):
        module, x = make_module(6, 3), torch.randn(1, 5, 6, dtype=F64)
        changed = x.clone()
        changed[:, 3:] += 1
        before, after = module(x, causal=True)[0], module(changed, causal=True)[0]
        assert torch.allclose(before[:, :3], after[:, :3], atol=1e-12)
        assert not torch.allclose(before[:, 3:], after[:, 3:])

    def test_without_positions_order_is_invisible(self):
        module, x = make_module(6, 2), torch.randn(1, 5, 6, dtype=F64)
        order = torch.tensor([3, 0, 4, 1, 2])
        assert torch.allclose(module(x[:, order])[0], module(x)[0][:, order], atol=1e-12)

    def test_key_and_value_default_to_the_query_and_the_key(self):
        module = make_module(6, 2)
        x, y = torch.randn(2, 3, 6, dtype=F64), torch.randn(2, 4, 6, dtype=F64)
        assert torch.equal(module(x)[0], module(x, x, x)[0])
        assert torch.equal(module(x, y)[0], module(x, y, y)[0])

    @pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
    def test_lower_precision_stays_close(self, dtype, tolerance):
        exact = make_module(16, 4)
        x = torch.randn(2, 7, 16, dtype=F64)
        rough = MultiHeadAttention(16, 4, dtype=dtype)
        rough.load_state_dict(exact.state_dict())
        for need_weights in (True, False):
            output, weights = rough(x.to(dtype), need_weights=need_weights)
            assert output.dtype == dtype
            assert torch.allclose(output.double(), exact(x)[0], atol=tolerance)
            assert weights is None or weights.dtype == dtype

    @pytest.mark.parametrize("h", [1, 2, 4, 8])
    def test_the_number_of_parameters_does_not_depend_on_heads(self, h):
        count = sum(p.numel() for p in MultiHeadAttention(8, h).parameters())
        assert count == 4 * (8 * 8 + 8)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="runs where CUDA is present")
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_on_a_gpu(self, dtype):
        module = MultiHeadAttention(64, 4, dtype=dtype, device="cuda")
        x = torch.randn(2, 9, 64, dtype=dtype, device="cuda")
        mask = random_mask(2, 1, 9, 9).cuda()
        fused, explicit = module(x, mask=mask)[0], module(x, mask=mask, need_weights=True)[0]
        assert torch.allclose(fused.float(), explicit.float(), atol=2e-2)
        assert torch.isfinite(fused).all()

    def test_on_the_meta_device(self):
        module = MultiHeadAttention(8, 2, device="meta")
        output, weights = module(torch.empty(2, 3, 8, device="meta"), need_weights=True)
        assert output.shape == (2, 3, 8) and weights.shape == (2, 2, 3, 3)
