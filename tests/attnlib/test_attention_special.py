"""Memory, torch.func, second derivatives, autocast and devices: what a formula doesn't show."""

import copy

import pytest
import torch
from tools.modules import F64, make_module, random_mask
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from attnlib import KVCache, MultiHeadAttention, scaled_dot_product_attention, split_heads

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch's kernel


def kept_for_backward(call):
    """Return the largest number of elements that a call keeps for its backward pass."""
    kept = []
    with saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        call()
    return max(kept)


@pytest.mark.parametrize("learns", ["", "W_q", "W_k", "W_v"])
def test_recording_keeps_no_map(learns):
    module, x = MultiHeadAttention(8, 4), torch.randn(1, 96, 8)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name.startswith(learns))
    kept = kept_for_backward(lambda: module(x, need_weights=True))
    assert kept == kept_for_backward(lambda: module(x)) < 96 * 96
    q = split_heads(x, 4).requires_grad_()  # the explicit function keeps one
    assert kept_for_backward(lambda: scaled_dot_product_attention(q, q, q)) >= 4 * 96 * 96


class MapsMade(TorchDispatchMode):
    """Notes the memories of 9 x 9 numbers that are made while it is entered."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            if result.shape[-2:] == (9, 9):
                self.held[result.untyped_storage().data_ptr()] = result  # so that none is reused
        return result


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("options", [{"causal": True}, {"mask": random_mask(9, 9)}])
def test_where_nothing_learns_one_map_is_made(mode, options):
    module, x = make_module(8, 2).requires_grad_(False), torch.randn(2, 9, 8, dtype=F64)
    q = split_heads(x, 2)
    for call in (
        lambda: module(x, need_weights=True, **options),
        lambda: scaled_dot_product_attention(q, q, q, **options),
    ):
        with mode(), MapsMade() as made:
            made.held = {}
            call()
        assert len(made.held) == 1


@pytest.mark.parametrize("asked", [{"need_weights": True}, {}], ids=str)
def test_second_derivatives(asked):
    """The fused kernel of processors has none, and says so; PyTorch's plain one is exact."""
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(1, 3, 8, dtype=F64)
    bias = torch.randn(1, 4, 3, 3, dtype=F64, requires_grad=True)
    x, mask = x.requires_grad_(), random_mask(3, 3)

    def loss(x, **limits):
        output, weights = module(x, causal=True, **limits, **asked)
        return output.square().sum() + (0 if weights is None else 3 * weights[..., 0].sum())

    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(lambda x, b: loss(x, score_bias=b), (x, bias))
        assert torch.autograd.gradgradcheck(lambda x: loss(x, mask=mask), (x,))
        expected = torch.autograd.functional.hessian(loss, x)
        torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(loss))(x), expected)
    (gradient,) = torch.autograd.grad(loss(x), x, create_graph=True)
    with pytest.raises(RuntimeError):
        gradient.sum().backward()
    with pytest.raises(NotImplementedError):
        torch.func.hessian(loss)(x.detach())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_forward_mode_is_reverse_mode(mode):
    module, x = make_module(8, 2), torch.randn(1, 5, 8, dtype=F64)
    mask, cache = random_mask(5, 5), KVCache()
    module(x, cache=cache)
    for weights in (
        lambda x: scaled_dot_product_attention(x, x, x, mask)[1],
        lambda x: module(x, mask=mask, need_weights=True)[1],
        lambda x: module(x, score_bias=x[0] @ x[0].mT, need_weights=True)[1],
        lambda x: module(x, causal=True, cache=copy.copy(cache), need_weights=True)[1],
    ):
        expected = torch.func.jacrev(weights)(x)
        with mode():
            torch.testing.assert_close(torch.func.jacfwd(weights)(x), expected)


@pytest.mark.parametrize("learning", [True, False])
def test_weights_and_gradients_of_each_sample(learning):
    asked = {"need_weights": True}
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(5, 3, 8, dtype=F64)
    limits = torch.randn(5, 3, 3, dtype=F64)

    def loss(one):
        output, weights = module(one[None], causal=True, **asked)
        return output.square().sum() + weights.square().sum()

    with torch.set_grad_enabled(learning):
        for call, samples in (
            (lambda one: module(one[None], **asked)[1], x),
            (lambda one: module(one[None], causal=True, **asked)[1], x),
            (lambda one: module.contributions(one[None]), x),
            (lambda bias: module(x, score_bias=bias, **asked)[1], limits),
            (lambda bias: module(x, mask=bias > 0, **asked)[1], limits),
            (lambda bias: scaled_dot_product_attention(x, x, x, bias > 0)[1], limits),
            (torch.func.grad(loss), x),
        ):
            expected = torch.stack([call(one) for one in samples])
            torch.testing.assert_close(torch.func.vmap(call)(samples), expected)


@pytest.mark.parametrize("asked", [{"need_weights": True}, {}], ids=str)
@pytest.mark.parametrize("learning", [True, False])
def test_autocast(asked, learning):
    module, x = make_module(8, 4, dtype=torch.float32), torch.randn(2, 3, 8)
    options = {"score_bias": torch.randn(3, 3), "causal": True}
    exact = module(x, **options, **asked)
    with torch.set_grad_enabled(learning), torch.autocast("cpu", torch.bfloat16):
        found = module(x, **options, **asked)
        parts = module.contributions(x, **options)
        again, _ = module(found[0])  # the next layer gets what this one gives
    assert found[0].dtype == again.dtype == torch.bfloat16
    torch.testing.assert_close(found, exact, atol=0.05, rtol=0, check_dtype=False)
    whole = parts.float().sum(1) + module.W_o.bias
    torch.testing.assert_close(whole, exact[0], atol=0.05, rtol=0)
    if learning:
        again.float().sum().backward()
        assert all(p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="runs where CUDA is present")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu(dtype):
    module = MultiHeadAttention(64, 4, dtype=dtype, device="cuda")
    x = torch.randn(2, 9, 64, dtype=dtype, device="cuda")
    mask = random_mask(2, 1, 9, 9).cuda()
    fused, explicit = module(x, mask=mask)[0], module(x, mask=mask, need_weights=True)[0]
    torch.testing.assert_close(fused, explicit, atol=2e-2, rtol=0)
    assert fused.isfinite().all()
