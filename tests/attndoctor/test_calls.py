"""A mistake in calling is an error that says what mends it, and never a diagnosis."""

import pytest
import torch
import torch.nn.functional as F
from tools.broken_attentions import Plain, but, returning, scaled_by
from tools.diagnoses import ask, diagnoses, refusals
from torch import nn

from attndoctor import CallError
from attndoctor.museum import named
from attndoctor.museum.known_modules import MultiHeadedAttention


class Refuses(Plain):
    def __init__(self, d_model, num_heads):
        assert d_model % 64 == 0, "d_model must be divisible by 64"


class ForgetsSuper(nn.Module):
    def __init__(self, d_model, num_heads):
        self.W_q = nn.Linear(d_model, d_model)


class OneHead(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        for name in ("eins", "zwei", "drei", "vier"):
            self.add_module(name, nn.Linear(d_model, d_model))

    def forward(self, x):
        W_q, W_k, W_v, W_o = self.children()
        return W_o(attention(W_q(x), W_k(x), W_v(x)))


def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


class OtherNames(nn.Module):
    """A module that doesn't say how many heads it has."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.eins, self.zwei, self.drei = (nn.Linear(d_model, d_model) for _ in range(3))

    def forward(self, x):
        return x


class Lazy(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.W_q = nn.LazyLinear(d_model)


NeedsPositions = but(Plain, forward=lambda self, x, freqs_cis: self.attend(x))
THREE = returning(lambda output, weights: (output, output, weights))
test_a_mistake_in_calling_is_told_with_what_mends_it = refusals({
    "no output": (returning(lambda output, weights: None), {}, CallError, "call: result",
        "NoneType", "returns="),
    "three values": (THREE, {}, CallError, "call: result", "(Tensor, Tensor, Tensor)",
        "returns=lambda result: (result[0], result[2])"),
    "the other order": (returning(lambda output, weights: (weights, output)), {}, CallError,
        "call: other order", "[2, 3, 7, 7]", "[2, 7, 30]"),
    "a cache as weights": (returning(lambda output, weights: (output, (output, output))), {},
        CallError, "call: something else", "tuple"),
    "sparse weights": (returning(lambda output, weights: (output, weights.to_sparse())), {},
        CallError, "weights", "torch.sparse_coo"),
    "an unknown argument": (NeedsPositions, {}, CallError, "call: needed arguments",
        "arguments={'freqs_cis': ...}"),
    "no tokens": (but(Plain, forward=lambda self: None), {}, CallError, "call: no tokens"),
    "an unknown size": (lambda d_model, num_heads, flavor: None, {}, CallError,
        "build: unknown arguments", "'flavor'", "diagnose(lambda d_model, num_heads:"),
    "a refusal": (Refuses, {}, CallError, "build: construction failed", "d_model=30",
        "AssertionError: d_model must be divisible by 64"),
    "no super().__init__()": (ForgetsSuper, {}, CallError, "build: no super"),
    "no module": (lambda d_model, num_heads: 7, {}, CallError, "build: no module built", "int"),
    "one head": (OneHead, {}, CallError, "build: no number of heads", "num_heads=..."),
    "a function": (attention, {}, CallError, "build: an attention itself"),
    "a kernel": (F.scaled_dot_product_attention, {}, CallError, "build: built into C"),
    "a method": (Plain(8, 2).split, {}, CallError, "build: no sizes", "split", "'x'"),
    "other sizes": (lambda d_model, num_heads: Plain(48, 4), {}, CallError, "d_model=30",
        "num_heads=3", "W_q.weight [48, 48]"),
    "no numbers": (nn.MultiheadAttention(16, 4, device="meta"), {}, CallError, "meta"),
    "lazy, built": (Lazy(12, 3), {}, CallError, "build: lazy", "W_q.weight"),
    "other names": (OtherNames, {}, CallError, "build: not found", "eins.weight", "load="),
    "two attentions": (nn.TransformerDecoderLayer(16, 4), {}, CallError, "and 10 more"),
    "no number of heads": (OtherNames(30, 3), {}, CallError, "build: heads of a module",
        "OtherNames", "num_heads=..."),
    "no widths": (nn.ReLU, {}, CallError, "ReLU"),
    "arguments": (Plain, {"arguments": {"flavor": 1}}, CallError, "call: unknown arguments",
        "'flavor'"),
    "returns": (Plain, {"returns": lambda result: result["output"]}, CallError, "call: returns",
        "TypeError"),
    "load": (Plain, {"load": lambda module, reference: None}, CallError,
        "module_under_test: load changed nothing", "W_q.weight"),
})  # fmt: skip

test_an_option_that_does_not_fit_is_refused = refusals({
    "candidate": (7, {}, TypeError, "candidate", "int"),
    "causal": (Plain, {"causal": True}, ValueError, "causal", "'always', 'when asked'", "True"),
    "mask": (Plain, {"mask": "drop"}, ValueError, "mask", "'keep', 'hide', 'add'", "'drop'"),
    "mask_shape": (Plain, {"mask_shape": "[T]"}, ValueError, "mask_shape", "'[T]'"),
    "qkv": (Plain, {"qkv": "rows"}, ValueError, "qkv", "'blocks', 'heads', 'interleaved'"),
    "bias": (Plain, {"bias": 1}, TypeError, "bias", "int"),
    "batch_first": (Plain, {"batch_first": "yes"}, TypeError, "batch_first", "str"),
    "out_projection": (Plain, {"out_projection": None}, TypeError, "out_projection"),
    "num_heads": (Plain(30, 3), {"num_heads": 0}, ValueError, "num_heads", "got 0"),
    "num_heads of a class": (Plain, {"num_heads": 3}, ValueError, "num_heads", "got 3"),
    "no mask": (Plain, {"mask": "add"}, CallError, "examine: no mask", "'add'",
        "forward(query, key, value)", "mask or attn_mask"),
    "qkv apart": (Plain, {"qkv": "heads"}, CallError, "module_under_test: qkv apart", "qkv"),
    "arguments": (Plain, {"arguments": [1]}, TypeError, "arguments", "list"),
    "load": (Plain, {"load": "W_q"}, TypeError, "load", "str"),
    "scale": (Plain, {"scale": 0}, ValueError, "scale", "got 0"),
    "scale of d_k": (Plain, {"scale": lambda d_k: -d_k}, ValueError, "scale", "-10"),
    "scale as text": (Plain, {"scale": "1"}, TypeError, "scale", "str"),
    "returns": (Plain, {"returns": 0}, TypeError, "returns", "int"),
    "edges": (Plain, {"edges": 1}, TypeError, "edges", "int"),
    "no seconds": (Plain, {"seconds": 0}, ValueError, "seconds"),
    "seconds as text": (Plain, {"seconds": "1"}, TypeError, "seconds"),
})  # fmt: skip


def test_names_of_exhibits_are_checked():
    for name in ("no scales", "no scle"):
        with pytest.raises(ValueError, match="'no scale'"):
            named(name)
    with pytest.raises(TypeError, match="name"):
        named(["no scale"])


# --- what the errors advise helps ----------------------------------------------------------------


def load_all_but_last(module, reference):
    for name in ("W_q", "W_k", "W_v"):
        module.get_submodule(name).load_state_dict(reference.get_submodule(name).state_dict())


def load_in_order(module, reference):
    for mine, name in zip(module.children(), ("W_q", "W_k", "W_v", "W_o"), strict=True):
        mine.load_state_dict(reference.get_submodule(name).state_dict())


class Swallows(Plain):
    """**kwargs take num_kv_heads and dropout, and need not do anything with them."""

    def __init__(self, d_model, num_heads, **kwargs):
        super().__init__(d_model, num_heads)


DropsUntold = but(Plain, weigh=lambda self, scores, allowed:
    torch.dropout(Plain.weigh(self, scores, allowed), 0.1, self.training))  # fmt: skip
CALLED = but(Plain, scores=lambda self, q, k: q @ k.mT / self.d_k() ** 0.5)
BIASES, IDENTITY = "module_under_test: biases told", "module_under_test: projection told"
test_what_the_errors_advise_helps = diagnoses({
    "three values": (THREE, {"returns": lambda result: result[::2]}, "healthy"),
    "positions": (NeedsPositions, {"arguments": {"freqs_cis": None}}, "healthy"),
    "names of its own": (OneHead(16), {"num_heads": 1, "load": load_in_order}, "healthy"),
    "swallowed": (Swallows, {}, "healthy", "skipped: grouped heads",
        "skipped: training with dropout"),
    "dropout that isn't told": (DropsUntold, {}, "healthy", "report: random in training"),
    "an error inside": (CALLED, {}, "broken", "TypeError: 'int' object"),
    "all but W_o loaded": (Plain(30, 3), {"load": load_all_but_last}, "not asked",
        "no exhibit", "not_comparable: not loaded", "W_o.weight, W_o.bias"),
    "too wide for two bugs": (scaled_by(lambda T, **_: T - 1)(264, 3), {}, "broken",
        "report: too wide for two bugs", "d_model=256"),
    "biases told": (Plain, {"bias": False}, "healthy", BIASES, "W_o.bias"),
    "no projection, told": (Plain, {"out_projection": False}, "", IDENTITY, "W_o.weight"),
    "nothing told": (Plain, {}, "healthy", f"not {BIASES}", f"not {IDENTITY}"),
})  # fmt: skip


def test_a_built_module_is_asked_as_a_copy():
    module = MultiHeadedAttention(4, 48).train()
    x = torch.randn(2, 3, 48)
    module(x, x, x)  # it keeps its weights, which are part of a graph
    before = {name: numbers.clone() for name, numbers in module.state_dict().items()}
    ask(module, "at the edges", "report: one size", "d_model=48, num_heads=4")
    assert module.training and module.dropout.p == 0.1
    assert all(torch.equal(before[name], now) for name, now in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())
