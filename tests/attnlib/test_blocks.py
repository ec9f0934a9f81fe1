"""Norms, feed-forward network and block against their formulas in float64, gradients included."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import F64, randomize
from torch import nn

from attnlib import FeedForward, KVCache, LayerNorm, MultiHeadAttention, RMSNorm, TransformerBlock


def plain_norm(norm, x):
    """Return (x - mean) / sqrt(variance + eps) * gain + bias; an RMSNorm has no mean, no bias."""
    if isinstance(norm, LayerNorm):
        x = x - x.mean(-1, keepdim=True)
    y = x / ((x * x).mean(-1, keepdim=True) + norm.eps).sqrt()
    y = y if norm.gain is None else y * norm.gain
    return y if getattr(norm, "bias", None) is None else y + norm.bias


def plain_feed_forward(module, x):
    def matrix(layer, x):
        y = torch.einsum("...i,oi->...o", x, layer.weight)
        return y if layer.bias is None else y + layer.bias

    hidden = matrix(module.W_1, x)
    cubic = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)
    return matrix(
        module.W_2,
        {
            "gelu": hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))),
            "gelu_tanh": hidden * 0.5 * (1 + torch.tanh(cubic)),
            "relu": hidden * (hidden > 0),
        }[module.activation],
    )


def plain_block(block, x, **options):
    """Return a block's tokens and weights."""
    weights = []

    def attend(tokens):
        output, found = block.attention(tokens, **options)
        weights.append(found)
        return output

    sublayers = [(attend, block.norm_1)]
    if block.feed_forward is not None:
        sublayers.append((partial(plain_feed_forward, block.feed_forward), block.norm_2))
    for f, norm in sublayers:
        added = f(plain_norm(norm, x) if block.norm_position == "pre" else x)
        x = x + added if block.residual else added
        x = plain_norm(norm, x) if block.norm_position == "post" else x
    return x, weights[0]


def assert_same(found, wanted, learned):
    """Compare two tensors, and the gradients that they give to some others."""
    torch.testing.assert_close(found, wanted)
    ways = torch.linspace(-1, 2, found.numel(), dtype=F64).view_as(found)
    for ours, theirs in zip(
        torch.autograd.grad((found * ways).sum(), learned),
        torch.autograd.grad((wanted * ways).sum(), learned),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@st.composite
def norms(draw, d):
    eps = draw(st.sampled_from([1e-5, 1e-2, 3.0]))
    make, option = draw(st.sampled_from([(LayerNorm, "bias"), (RMSNorm, "gain")]))
    return randomize(make(d, eps, **{option: draw(st.booleans())}, dtype=F64))


@st.composite
def feed_forwards(draw, d):
    activation = draw(st.sampled_from(["gelu", "gelu_tanh", "relu"]))
    options = {"activation": activation, "bias": draw(st.booleans()), "dtype": F64}
    return randomize(FeedForward(d, draw(st.sampled_from([None, 1, 7])), **options))


@given(st.data(), st.lists(st.integers(1, 3), max_size=3), st.integers(2, 6))
def test_parts_are_their_formulas(data, leading, d):
    """Each token by itself: tokens of any leading shape."""
    x = torch.randn(*leading, d, dtype=F64, requires_grad=True)
    norm, feed_forward = data.draw(norms(d)), data.draw(feed_forwards(d))
    assert_same(norm(x), plain_norm(norm, x), [x, *norm.parameters()])
    learned = [x, *feed_forward.parameters()]
    assert_same(feed_forward(x), plain_feed_forward(feed_forward, x), learned)


@given(st.data(), st.permutations([1, 2, 3, 5]), st.sampled_from([(2, 2), (4, 2), (2, 1)]))
def test_a_block_is_its_formula(data, sizes, heads):
    B, T, d_k, _ = sizes
    h, h_kv = heads
    d, draw = h * d_k * 2, data.draw
    attention = MultiHeadAttention(d, h, num_kv_heads=h_kv, bias=draw(st.booleans()), dtype=F64)
    feed_forward = draw(st.none() | feed_forwards(d))
    position = draw(st.sampled_from(["pre", "post", None]))
    made = [draw(norms(d)), draw(norms(d))][: (1 if feed_forward is None else 2)]
    block = TransformerBlock.of_parts(
        randomize(attention), feed_forward, made if position else [], norm_position=position,
        residual=draw(st.booleans()),
    )  # fmt: skip
    x = torch.randn(B, T, d, dtype=F64, requires_grad=True)
    options = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "causal": st.just(True), "mask": st.just(torch.rand(B, T, T) > 0.3),
                "key_mask": st.just(torch.rand(B, T) > 0.3), "need_weights": st.just(True),
                "score_bias": st.just(torch.randn(1, h, T, T, dtype=F64)),
                "head_mask": st.just(torch.rand(h, dtype=F64)),
            },
        )
    )  # fmt: skip
    with torch.device("meta"):  # all that is made on the way is made where the tokens are
        output, weights = block(x, **options)
    wanted, expected = plain_block(block, x, **options)
    assert_same(output, wanted, [x, block.attention.W_v.weight])
    torch.testing.assert_close(weights, expected)
    assert (weights is not None) == ("need_weights" in options)
    if options.keys() <= {"causal", "need_weights"}:
        whole, _ = block(x, causal=True)
        cache, chunks = KVCache(), x.split([1, T - 1] if T > 1 else [1], 1)
        outputs = [block(chunk, causal=True, cache=cache)[0] for chunk in chunks]
        torch.testing.assert_close(torch.cat(outputs, 1), whole)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm, nn.LayerNorm])
@pytest.mark.parametrize(("position", "residual"), [("pre", True), ("post", False), (None, True)])
def test_a_block_of_sizes_is_one_of_parts(position, residual, norm):
    options = {"norm_position": position, "residual": residual}
    made = TransformerBlock(12, 3, 7, norm=norm, dtype=torch.bfloat16, **options)
    parts = nn.ModuleList([made.norm_1, made.norm_2]) if position else None
    built = TransformerBlock.of_parts(made.attention, made.feed_forward, parts, **options)
    x = torch.randn(2, 5, 12, dtype=torch.bfloat16)
    output, weights = made(x, need_weights=True)
    assert torch.equal(built(x)[0], output) and repr(built) == repr(made)
    assert output.dtype == weights.dtype == x.dtype and weights.shape == (2, 3, 5, 5)
    assert made.feed_forward.d_ff == 7 and type(made.norm_1) is (norm if position else type(None))
    output.float().square().sum().backward()
    assert all(p.dtype == x.dtype and p.grad.isfinite().all() for p in made.parameters())
    left_out = TransformerBlock.of_parts(made.attention, made.feed_forward, **options)
    for found in (left_out.norm_1, left_out.norm_2):
        assert type(found) is (LayerNorm if position else type(None))
        assert getattr(found, "gain", x).dtype == x.dtype
    assert TransformerBlock.of_parts(made.attention, **options).norm_2 is None


def test_where_training_begins():
    module = FeedForward(64)
    assert module.d_ff == 256
    bound = math.sqrt(6 / (64 + 256))  # Xavier-uniform
    for layer in (module.W_1, module.W_2):
        assert 0.98 * bound < layer.weight.abs().max() <= bound
        assert not layer.bias.any()
    for norm in (LayerNorm(6), RMSNorm(6)):
        assert (norm.gain == 1).all() and norm.eps == 1e-5
        there = type(norm)(6, device="meta", dtype=torch.bfloat16).gain
        assert there.is_meta and there.dtype == torch.bfloat16
    assert not LayerNorm(6).bias.any()
    there = TransformerBlock(8, 2, device="meta", dtype=torch.bfloat16).parameters()
    assert all(p.is_meta and p.dtype == torch.bfloat16 for p in there)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_norms_round_once_and_a_token_of_zeros_has_a_gradient(norm):
    x = (torch.randn(64, 256) + 8).to(torch.bfloat16)
    result = norm(256, dtype=torch.bfloat16)(x)
    assert result.dtype == torch.bfloat16
    wide = norm(256, dtype=F64)(x.double())
    torch.testing.assert_close(result.double(), wide, atol=1e-3, rtol=2**-8)
    zeros = torch.zeros(1, 4, requires_grad=True)
    norm(4)(zeros).sum().backward()
    assert zeros.grad.isfinite().all()


def test_dropout_acts_on_what_a_sublayer_adds():
    parts = MultiHeadAttention(12, 3), nn.Identity()  # the second sub-layer adds x itself
    block = TransformerBlock.of_parts(*parts, norm_position=None, dropout=0.5)
    x = torch.randn(1, 400, 12)
    first = x + block.attention(x)[0]
    torch.testing.assert_close(block.eval()(x)[0], 2 * first)
    nn.init.zeros_(block.attention.W_o.weight)  # so that only the second sub-layer adds something
    factors = ((block.train()(x)[0] - x) / x).round(decimals=3).unique()
    assert factors.tolist() == [0, 2]  # kept ones are scaled by 1 / (1 - p)
    assert "dropout=0.5" in repr(block)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, that quantization moves to torchao
def test_layers_may_be_wrapped_or_quantized():
    """As LoRA's are: then their weights aren't where a linear layer's are."""
    block, x = TransformerBlock(32, 4).eval(), torch.randn(2, 5, 32)
    expected, _ = block(x)
    quantized = torch.ao.quantization.quantize_dynamic(block, {nn.Linear})
    for layers, name in ((block.attention, "W_q"), (block.feed_forward, "W_1")):
        setattr(layers, name, nn.Sequential(getattr(layers, name)))
    for changed, tolerance in ((block, 0), (quantized, 0.1)):
        again = TransformerBlock.of_parts(changed.attention, changed.feed_forward)
        for found in (changed(x)[0], again(x)[0]):
            torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


attention, norm = MultiHeadAttention(12, 3), LayerNorm(12)
x = torch.zeros(2, 5, 12)


def parts(*given, **options):
    return lambda: TransformerBlock.of_parts(attention, *given, **options)


def run(part, residual=True):
    return lambda: TransformerBlock.of_parts(attention, part, residual=residual)(x)


def block(*given, **options):
    return lambda: TransformerBlock(12, 3)(*given, **options)


REFUSED = [  # what is named first, and the call
    *((name, lambda make=make, x=x: make(4)(x))
        for make in (LayerNorm, RMSNorm, FeedForward)
        for name, x in (
            ("x.* be a", [1.0]), ("x", torch.tensor([1, 2, 3, 4])),
            ("x", torch.zeros(2, 4).double()), ("x.* end in d_model=4", torch.zeros(4, 1)))),
    *(("d_model", lambda make=make: make(2.0)) for make in (LayerNorm, RMSNorm, FeedForward)),
    *(("eps", lambda make=make, eps=eps: make(4, eps))
        for make in (LayerNorm, RMSNorm) for eps in (-1e-5, math.nan)),
    *(("bias", lambda make=make: make(4, bias=0)) for make in (LayerNorm, FeedForward)),
    ("gain", lambda: RMSNorm(4, gain=1)),
    ("activation", lambda: FeedForward(4, activation="swish")),
    ("d_ff", lambda: FeedForward(4, 0)),
    ("num_heads=5", lambda: TransformerBlock(12, 5)),
    ("norm_position", lambda: TransformerBlock(12, 3, norm_position="before")),
    ("x", block("tokens")),
    ("x.* end in d_model=12", block(torch.zeros(2, 5, 11))),
    (r"x.* have shape \[B, T, 12\]", block(torch.zeros(5, 12))),
    ("x", block(torch.zeros(2, 0, 12))),
    ("a block takes .* got key", block(x, key=x)),
    ("attention.* int", lambda: TransformerBlock.of_parts(12, 3)),
    *(("attention.*d_model=12", lambda width=width: TransformerBlock.of_parts(
        MultiHeadAttention(12, 3, **{width: 5}))) for width in ("kdim", "vdim")),
    ("feed_forward.* function", parts(lambda x: x)),
    ("feed_forward.*d_model=12, got 8", parts(FeedForward(8))),
    ("feed_forward.* be .* attention once more", parts(attention)),
    ("norms.* hold .* 2, got 1", parts(FeedForward(12), [norm])),
    ("norms.* be left out", parts(None, [norm], norm_position=None)),
    ("norms.* be a list", parts(None, norm)),
    (r"norms\[0\].* be a module, got type", parts(None, [LayerNorm])),
    (r"norms\[0\].*12, got 16", parts(None, [RMSNorm(16)])),
    (r"norms\[0\].*12, got 10", parts(None, [nn.LayerNorm(10)])),
    (r"norms\[1\].* norms\[0\] once more", parts(FeedForward(12), [norm, norm])),
    (r"norms\[0\].* token by itself", lambda: TransformerBlock(12, 3, norm=nn.BatchNorm1d)),
    ("norm_position", parts(norm_position="Pre")),
    ("residual", parts(residual="no")),
    ("dropout", parts(dropout=1.0)),
    *((f"feed_forward.* return .*{words}", run(part, residual))
        for residual in (True, False)
        for part, words in (
            (nn.Linear(12, 1), r"\[2, 5, 1\]"),  # would broadcast silently
            (nn.GRU(12, 12), "tuple"))),
    ("norm.* make a module", lambda: TransformerBlock(12, 3, norm=lambda *d, **options: 3)),
    ("norm.* be a class", lambda: TransformerBlock(12, 3, norm=lambda d_model: nn.Identity())),
    ("norm must be a class", lambda: TransformerBlock(12, 3, norm=norm)),
]  # fmt: skip


@pytest.mark.parametrize(("named", "call"), REFUSED)
def test_what_does_not_fit_is_refused(named, call):
    with pytest.raises((TypeError, ValueError), match=rf"(^|\b){named}"):
        call()
