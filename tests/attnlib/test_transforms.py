"""Attention under torch.func: vmap can neither write in place nor into given memory."""

import pytest
import torch
from tools.modules import F64, make_module
from torch.nn.attention import SDPBackend, sdpa_kernel

from attnlib import KVCache, scaled_dot_product_attention

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch's kernel


@pytest.mark.parametrize("options", [{"need_weights": True}, {"weights_for": [3, 0]}], ids=str)
@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_weights_of_each_sample(options, learning, causal):
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(5, 3, 8, dtype=F64)
    options = options | {"causal": causal}
    with torch.set_grad_enabled(learning):
        found = torch.func.vmap(lambda one: module(one[None], **options)[1][0])(x)
        torch.testing.assert_close(found, module(x, **options)[1])


@pytest.mark.parametrize("score_bias", [True, False])
def test_limits_of_each_sample(score_bias):
    module, x = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64)
    limits = torch.randn(5, 3, 3, dtype=F64)
    name, limits = ("score_bias", limits) if score_bias else ("mask", limits > 0)
    found = torch.func.vmap(lambda one: module(x, **{name: one}, need_weights=True)[1])(limits)
    expected = [module(x, **{name: one}, need_weights=True)[1] for one in limits]
    torch.testing.assert_close(found, torch.stack(expected))


def test_the_function_with_a_mask_of_each_sample():
    x, masks = torch.randn(3, 4, dtype=F64), torch.rand(5, 3, 3) < 0.5
    found = torch.func.vmap(lambda mask: scaled_dot_product_attention(x, x, x, mask)[1])(masks)
    expected = [scaled_dot_product_attention(x, x, x, mask)[1] for mask in masks]
    torch.testing.assert_close(found, torch.stack(expected))


def test_gradients_of_each_sample():
    module, x = make_module(8, 2), torch.randn(5, 3, 8, dtype=F64)
    parameters = dict(module.named_parameters())

    def loss(parameters, one):
        output, weights = torch.func.functional_call(
            module, parameters, (one[None],), {"need_weights": True}
        )
        return output.square().sum() + weights.square().sum()

    found = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    for i, one in enumerate(x):
        expected = torch.autograd.grad(loss(parameters, one), list(parameters.values()))
        for name, gradient in zip(parameters, expected, strict=True):
            torch.testing.assert_close(found[name][i], gradient)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_forward_mode_is_reverse_mode(mode):
    module, x = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64)
    mask = torch.tensor([[False] * 3, [True, False, True], [True] * 3])
    for weights in (
        lambda x: scaled_dot_product_attention(x, x, x, mask)[1],
        lambda x: module(x, mask=mask, need_weights=True)[1],
    ):
        expected = torch.func.jacrev(weights)(x)
        with mode():
            torch.testing.assert_close(torch.func.jacfwd(weights)(x), expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_forward_mode_goes_through_a_cache(mode):
    module, x = make_module(8, 2), torch.randn(1, 5, 8, dtype=F64)

    def in_chunks(x):
        cache = KVCache()
        chunks = [module(c, causal=True, cache=cache, need_weights=True) for c in x.split(2, 1)]
        return chunks[-1][1]

    expected = torch.func.jacrev(lambda x: module(x, causal=True, need_weights=True)[1][:, :, 4:])
    with mode():
        torch.testing.assert_close(torch.func.jacfwd(in_chunks)(x), expected(x))


def test_given_memory_is_refused_rather_than_left_with_scores():
    module, x = make_module(8, 2).requires_grad_(False), torch.randn(1, 3, 8, dtype=F64)
    memory, masks = torch.zeros(1, 2, 3, 3, dtype=F64), torch.rand(4, 3, 3) < 0.5
    with pytest.raises(ValueError, match="weights_out must be left out"):
        torch.func.vmap(lambda mask: module(x, mask=mask, weights_out=memory)[0])(masks)
    assert not memory.any()
    with torch.no_grad(), pytest.raises(ValueError, match="weights_out must be left out"):
        torch.func.jvp(lambda x: module(x, weights_out=memory)[1], (x,), (x,))
    assert not memory.any()


def test_forward_mode_and_hessian_of_the_output():
    """The fused kernel of processors has neither, and says so; PyTorch's plain one has both."""
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(1, 3, 8, dtype=F64)

    def loss(x):
        return module(x, causal=True)[0].square().sum()

    with sdpa_kernel(SDPBackend.MATH):
        expected = torch.func.jacrev(torch.func.jacrev(loss))(x)
        torch.testing.assert_close(torch.func.hessian(loss)(x), expected)
        torch.testing.assert_close(torch.func.jacfwd(loss)(x), torch.func.jacrev(loss)(x))
    for derivative in (torch.func.jacfwd(loss), torch.func.hessian(loss)):
        with pytest.raises(NotImplementedError, match="forward AD"):
            derivative(x)


@pytest.mark.parametrize("asked", [{"need_weights": True}, {"weights_for": [3, 0]}], ids=str)
def test_second_derivatives_of_output_and_weights(asked):
    """Reverse mode twice; for forward mode over reverse mode PyTorch's sentence says what lacks."""
    module, x = make_module(8, 4, num_kv_heads=2), torch.randn(1, 3, 8, dtype=F64)

    def loss(x):
        output, weights = module(x, causal=True, **asked)
        return output.square().sum() + weights[..., 0].sum()

    with sdpa_kernel(SDPBackend.MATH):
        expected = torch.autograd.functional.hessian(loss, x)
        torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(loss))(x), expected)
        with pytest.raises(NotImplementedError, match="jvp"):
            torch.func.hessian(loss)(x)
