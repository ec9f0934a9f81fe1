"""Weights recorded in training: the right gradients, and no T x T tensor kept for them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.modules import F64, make_module, random_mask
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from attnlib import MultiHeadAttention, causal_mask, scaled_dot_product_attention, split_heads


def kept_for_backward(call):
    """Return the numbers of elements of all tensors that a call keeps for its backward pass."""
    kept = []
    with saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        call()
    return kept


@pytest.mark.parametrize("asked", [{"need_weights": True}, {"weights_for": [1]}])
def test_recording_keeps_no_map(asked):
    module = MultiHeadAttention(8, 2)
    x = torch.randn(1, 96, 8, requires_grad=True)
    plain = kept_for_backward(lambda: module(x))
    recorded = kept_for_backward(lambda: module(x, **asked))
    assert max(recorded) == max(plain) < 96 * 96
    # The same measurement sees the map that the explicit function keeps.
    q = split_heads(x, 2)
    explicit = kept_for_backward(lambda: scaled_dot_product_attention(q, q, q))
    assert max(explicit) >= 2 * 96 * 96


@pytest.mark.parametrize("trained", ["W_q", "W_k", "W_v"])
def test_nor_where_one_projection_alone_learns(trained):
    module = MultiHeadAttention(8, 2).requires_grad_(False)
    getattr(module, trained).requires_grad_(True)
    assert max(kept_for_backward(lambda: module(torch.randn(1, 96, 8), need_weights=True))) < 96**2


def test_recording_changes_no_gradient_of_the_output():
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(2, 5, 8, dtype=F64)
    gradients = []
    for asked in ({}, {"need_weights": True}, {"weights_for": [0]}):
        module.zero_grad()
        module(x, causal=True, **asked)[0].pow(2).sum().backward()
        gradients.append([p.grad.clone() for p in module.parameters()])
    for other in gradients[1:]:
        assert all(torch.equal(a, b) for a, b in zip(gradients[0], other, strict=True))


@settings(max_examples=30)
@given(st.integers(1, 2), st.integers(1, 2), st.sampled_from([None, "mask", "bias", "causal"]))
def test_gradients_of_the_weights_themselves(h_kv, sharing, limit):
    h = h_kv * sharing
    module = make_module(2 * h, h, num_kv_heads=h_kv)
    x = torch.randn(2, 3, 2 * h, dtype=F64, requires_grad=True)
    limits = {
        "mask": random_mask(2, h, 3, 3) if limit == "mask" else None,
        "score_bias": torch.randn(1, h, 3, 3, dtype=F64) if limit == "bias" else None,
        "causal": limit == "causal",
    }
    assert torch.autograd.gradcheck(lambda x: module(x, **limits, need_weights=True), (x,))
    assert torch.autograd.gradcheck(lambda x: module(x, **limits, weights_for=[h - 1])[1], (x,))


def test_gradients_of_the_weights_reach_a_bias():
    module, x = make_module(4, 2), torch.randn(2, 4, 4, dtype=F64)
    mask = causal_mask(4)
    for shape in ((4, 4), (1, 2, 4, 4), (2, 1, 1, 4)):
        bias = torch.randn(shape, dtype=F64, requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda b: module(x, score_bias=b, mask=mask, need_weights=True)[1], (bias,)
        )


class MapsMade(TorchDispatchMode):
    """Counts the memories of T x T numbers that are made while it is entered."""

    def __init__(self, T):
        super().__init__()
        self.T, self.held = T, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            if result.shape[-2:] == (self.T, self.T):
                self.held[result.untyped_storage().data_ptr()] = result  # so that none is reused
        return result


ONE_MAP = {"plain": {}, "causal": {"causal": True}, "masked": {"mask": random_mask(9, 9)}}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("options", ONE_MAP.values(), ids=ONE_MAP)
def test_where_nothing_learns_one_map_is_made(mode, options):
    module, x = make_module(8, 2).requires_grad_(False), torch.randn(2, 9, 8, dtype=F64)
    q = split_heads(x, 2)
    with mode():
        with MapsMade(9) as made:
            module(x, need_weights=True, **options)
        assert len(made.held) == 1
        with MapsMade(9) as made:
            scaled_dot_product_attention(q, q, q, **options)
        assert len(made.held) == 1


@pytest.mark.parametrize("options", [{"need_weights": True}, {"weights_for": [3, 0]}], ids=str)
def test_second_gradients_of_the_weights(options):
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(2, 3, 8, dtype=F64)
    bias = torch.randn(1, 4, 3, 3, dtype=F64, requires_grad=True)
    options |= {"mask": random_mask(3, 3)}
    assert torch.autograd.gradgradcheck(
        lambda x, bias: module(x, score_bias=bias, **options)[1], (x.requires_grad_(), bias)
    )


@pytest.mark.parametrize("asked", [{}, {"need_weights": True}, {"weights_for": [3, 0]}], ids=str)
def test_second_gradients_of_output_and_weights(asked):
    """The fused kernel of processors has none, and says so; PyTorch's plain one is exact."""
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(1, 3, 8, dtype=F64)
    x.requires_grad_()

    def loss(x):
        output, weights = module(x, causal=True, **asked)
        return output.square().sum() + (0 if weights is None else 3 * weights[..., 0].sum())

    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(loss, (x,))
    (gradient,) = torch.autograd.grad(loss(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        gradient.sum().backward()
