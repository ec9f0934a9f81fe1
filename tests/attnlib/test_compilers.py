"""The module in PyTorch's compilers: one graph, any number of tokens."""

import pytest
import torch
import torch._dynamo.testing
from tools.modules import F64, make_module, random_mask

from attnlib import KVCache
from attnlib.positions import RotaryPositions

pytestmark = pytest.mark.thorough

OPTIONS = {
    "output": {},
    "causal": {"causal": True},
    "causal weights": {"need_weights": True, "causal": True},
    "head mask": {"head_mask": torch.tensor([1.0, 0.5, 0.0, 1.0])},
}


def same(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, atol=1e-12)


@pytest.fixture
def module():
    torch._dynamo.reset()
    return make_module(16, 4, num_kv_heads=2)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_compiles_without_a_graph_break(module, options):
    # fullgraph=True makes a graph break an error; aot_eager traces the backward pass too.
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for T in (5, 7):
        x = torch.randn(2, T, 16, dtype=F64, requires_grad=True)
        gradients = []
        for function in (compiled, module):
            output, weights = function(x, **options)
            loss = output.pow(2).sum() + (0 if weights is None else weights.pow(2).sum())
            gradients.append(torch.autograd.grad(loss, x)[0])
        same(compiled(x, **options), module(x, **options))
        assert torch.allclose(*gradients, atol=1e-10)


@pytest.mark.parametrize("options", [OPTIONS["output"], OPTIONS["causal weights"]], ids=str)
@pytest.mark.parametrize("learning", [True, False])
def test_exports_with_any_number_of_tokens(module, options, learning):
    T = torch.export.Dim("T", min=2, max=512)
    shapes, x = {"query": {1: T}} | dict.fromkeys(options), torch.randn(2, 5, 16, dtype=F64)
    with torch.set_grad_enabled(learning):
        exported = torch.export.export(module, (x,), options, dynamic_shapes=shapes)
        program = exported.module()
    for tokens in (2, 11):
        x = torch.randn(2, tokens, 16, dtype=F64)
        same(program(x, **options), module(x, **options))


@pytest.mark.parametrize("name", ["mask", "score_bias"])
def test_compiled_once_for_all_lengths(module, name):
    """A size that gets into a message becomes a constant, and every length compiles anew."""
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(module, fullgraph=True, backend=counter)
    for T in range(5, 17):
        limit = torch.ones(T, T, dtype=torch.bool if name == "mask" else F64)
        compiled(torch.randn(2, T, 16, dtype=F64), **{name: limit})
    assert counter.frame_count <= 2


@torch.no_grad()
def test_rotary_positions_are_compiled_once_and_exported():
    torch._dynamo.reset()
    module = make_module(16, 4, num_kv_heads=2, rotary=RotaryPositions())
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(module, fullgraph=True, backend=counter)
    T = torch.export.Dim("T", min=2, max=512)
    shapes, causal = {"query": {1: T}, "causal": None}, {"causal": True}
    x = torch.randn(2, 12, 16, dtype=F64)
    exported = torch.export.export(module, (x,), causal, dynamic_shapes=shapes).module()
    for length in range(5, 13):
        tokens = torch.randn(2, length, 16, dtype=F64)
        for other in (compiled, exported):
            same(other(tokens, causal=True), module(tokens, causal=True))
    assert counter.frame_count <= 2
    cache = KVCache()
    chunks = [compiled(c, causal=True, cache=cache)[0] for c in x.split([9, 1, 2], 1)]
    assert torch.allclose(torch.cat(chunks, 1), module(x, causal=True)[0], atol=1e-12)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # of the checks: sizes become text
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_for_any_number_of_tokens(module):
    def attend(x, mask):
        return module(x, mask=mask, **OPTIONS["causal weights"])

    module.requires_grad_(False)  # a function's parameters become constants of its trace
    traced = torch.jit.trace(attend, (torch.randn(2, 5, 16, dtype=F64), random_mask(5, 5)))
    inputs = torch.randn(3, 7, 16, dtype=F64), random_mask(7, 7)
    same(traced(*inputs), attend(*inputs))
