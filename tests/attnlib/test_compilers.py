"""The module in PyTorch's compilers: one graph, any number of tokens."""

import pytest
import torch
from tools.modules import F64, make_module, random_mask
from torch._dynamo.testing import CompileCounterWithBackend

from attnlib import KVCache
from attnlib.positions import RotaryPositions

pytestmark = pytest.mark.thorough

OPTIONS = {
    "causal weights": {"need_weights": True, "causal": True},
    "head mask": {"head_mask": torch.tensor([1.0, 0.5, 0.0, 1.0])},
    "rotary": {"causal": True},
    "mask": {"mask": random_mask(9, 9)},
    "score_bias": {"score_bias": torch.randn(9, 9, dtype=F64)},
}


def module_for(name):
    torch._dynamo.reset()
    rotary = RotaryPositions() if name == "rotary" else None
    return make_module(16, 4, num_kv_heads=2, rotary=rotary)


def same(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("name", OPTIONS)
def test_compiled_in_one_graph_for_all_lengths(name):
    """A size that gets into a message becomes a constant, and every length compiles anew."""
    module, counter = module_for(name), CompileCounterWithBackend("aot_eager")  # backward, too
    compiled = torch.compile(module, fullgraph=True, backend=counter)  # a break is an error
    for T in range(5, 10):
        options = dict(OPTIONS[name])
        if name in ("mask", "score_bias"):
            options[name] = options[name][:T, :T].contiguous()  # strides are sizes, too
        x = torch.randn(2, T, 16, dtype=F64, requires_grad=True)
        found, expected = compiled(x, **options), module(x, **options)
        same(found, expected)
        gradients = [
            torch.autograd.grad(sum(y.square().sum() for y in ys if y is not None), x)[0]
            for ys in (found, expected)
        ]
        assert torch.allclose(*gradients, atol=1e-10)
    assert counter.frame_count <= 2
    if name == "rotary":
        with torch.no_grad():
            chunks, cache = x.split([6, 1, 2], 1), KVCache()
            outputs = [compiled(chunk, causal=True, cache=cache)[0] for chunk in chunks]
        assert torch.allclose(torch.cat(outputs, 1), expected[0], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "learning"),
    [("head mask", True), ("causal weights", True), ("causal weights", False), ("rotary", False)],
)
def test_exports_with_any_number_of_tokens(name, learning):
    module, options = module_for(name), OPTIONS[name]
    T = torch.export.Dim("T", min=2, max=512)
    shapes, x = {"query": {1: T}} | dict.fromkeys(options), torch.randn(2, 5, 16, dtype=F64)
    with torch.set_grad_enabled(learning):
        exported = torch.export.export(module, (x,), options, dynamic_shapes=shapes)
        program = exported.module()
    for tokens in (2, 11):
        x = torch.randn(2, tokens, 16, dtype=F64)
        same(program(x, **options), module(x, **options))


@torch.no_grad()
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # of the checks: sizes become text
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_for_any_number_of_tokens():
    module = module_for("mask").requires_grad_(False)  # parameters become constants of the trace

    def attend(x, mask):
        return module(x, mask=mask, causal=True, need_weights=True)

    traced = torch.jit.trace(attend, (torch.randn(2, 5, 16, dtype=F64), random_mask(5, 5)))
    inputs = torch.randn(3, 7, 16, dtype=F64), random_mask(7, 7)
    same(traced(*inputs), attend(*inputs))
