"""Norms, feed-forward network and block, against plain loops, torch and each other."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attnlib import (
    FeedForward,
    KVCache,
    LayerNorm,
    MultiHeadAttention,
    RMSNorm,
    TransformerBlock,
)

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).flatmap(
    lambda front: st.integers(2, 9).map(lambda d: [*front, d])
)


def random_(shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def with_random_parameters(module, seed=0):
    """Gains of 1 and biases of 0 would hide that they are used."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3 + 0.1)
    return module


def layer_norm_by_loops(token, gain, bias, eps):
    d = len(token)
    mean = sum(token) / d
    variance = sum((number - mean) ** 2 for number in token) / d
    return [
        (number - mean) / math.sqrt(variance + eps) * g + b
        for number, g, b in zip(token, gain, bias, strict=True)
    ]


def rms_norm_by_loops(token, gain, eps):
    mean_square = sum(number**2 for number in token) / len(token)
    return [n / math.sqrt(mean_square + eps) * g for n, g in zip(token, gain, strict=True)]


# --- norms ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(shapes, st.integers(0, 10**6))
def test_layer_norm_equals_plain_loops(shape, seed):
    norm = with_random_parameters(LayerNorm(shape[-1], dtype=torch.float64), seed)
    x = random_(shape, seed)
    gain, bias = norm.gain.tolist(), norm.bias.tolist()
    loops = [layer_norm_by_loops(t, gain, bias, norm.eps) for t in x.flatten(0, -2).tolist()]
    expected = torch.tensor(loops, dtype=torch.float64).view(shape)
    torch.testing.assert_close(norm(x), expected)


@settings(deadline=None)
@given(shapes, st.integers(0, 10**6))
def test_rms_norm_equals_plain_loops_and_torch(shape, seed):
    norm = with_random_parameters(RMSNorm(shape[-1], dtype=torch.float64), seed)
    x = random_(shape, seed)
    loops = [rms_norm_by_loops(t, norm.gain.tolist(), norm.eps) for t in x.flatten(0, -2).tolist()]
    expected = torch.tensor(loops, dtype=torch.float64).view(shape)
    torch.testing.assert_close(norm(x), expected)
    torch.testing.assert_close(norm(x), F.rms_norm(x, shape[-1:], norm.gain, norm.eps))


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_eps_stands_inside_the_root(norm):
    x = torch.tensor([[1e-3, -1e-3, 1e-3, -1e-3]], dtype=torch.float64)  # mean 0, mean square 1e-6
    expected = x / math.sqrt(1e-6 + 3e-6)  # with eps outside, it would be nearly x / 1e-3
    torch.testing.assert_close(norm(4, eps=3e-6, dtype=torch.float64)(x), expected)


@settings(deadline=None)
@given(st.floats(-50, 50), st.floats(0.1, 50), st.integers(0, 10**6))
def test_layer_norm_ignores_shift_and_scale(shift, scale, seed):
    norm, x = LayerNorm(7, eps=0, dtype=torch.float64), random_([3, 7], seed)
    torch.testing.assert_close(norm(scale * x + shift), norm(x), atol=1e-8, rtol=1e-8)


@settings(deadline=None)
@given(st.floats(0.1, 50), st.integers(0, 10**6))
def test_rms_norm_ignores_scale_but_not_shift(scale, seed):
    norm, x = RMSNorm(7, eps=0, dtype=torch.float64), random_([3, 7], seed)
    torch.testing.assert_close(norm(scale * x), norm(x))
    assert not torch.allclose(norm(x + 10), norm(x), atol=0.1)


def test_layer_norm_is_rms_norm_of_the_centered_token():
    x = random_([2, 3, 8])
    layer, rms = LayerNorm(8, dtype=torch.float64), RMSNorm(8, dtype=torch.float64)
    torch.testing.assert_close(layer(x), rms(x - x.mean(-1, keepdim=True)))


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_each_token_is_normalized_by_itself(norm):
    x = random_([2, 5, 6])
    changed = x.clone()
    changed[1, 3] = 100 * random_([6], seed=1)
    module = norm(6, dtype=torch.float64)
    same = torch.isclose(module(changed), module(x)).all(-1)
    assert not same[1, 3] and same.sum() == 9


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_a_token_of_equal_numbers_stays_finite_also_in_the_gradient(norm):
    x = torch.zeros(1, 4, requires_grad=True)
    norm(4)(x).sum().backward()
    assert torch.isfinite(x.grad).all()


def test_layer_norm_of_a_constant_token_is_its_bias():
    norm = with_random_parameters(LayerNorm(4))
    torch.testing.assert_close(norm(torch.full([2, 4], 3.0)), norm.bias.expand(2, 4))


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_half_precision_is_normalized_in_float32(norm):
    x = (random_([64, 256]) + 8).to(torch.bfloat16)
    result = norm(256, dtype=torch.bfloat16)(x)
    assert result.dtype == torch.bfloat16
    wide = norm(256, dtype=torch.float64)(x.double())
    torch.testing.assert_close(result.double(), wide, atol=1e-3, rtol=2**-8)  # one rounding


# --- feed-forward network ------------------------------------------------------------------------


def test_feed_forward_is_two_matrices_with_gelu_between():
    module = with_random_parameters(FeedForward(5, 7, dtype=torch.float64))
    x = random_([2, 3, 5])
    hidden = x @ module.W_1.weight.T + module.W_1.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    torch.testing.assert_close(module(x), hidden @ module.W_2.weight.T + module.W_2.bias)


def test_feed_forward_is_four_times_as_wide_inside_unless_told():
    assert FeedForward(6).d_ff == 24
    assert FeedForward(6, 10).W_1.weight.shape == (10, 6)
    assert sum(p.numel() for p in FeedForward(6).parameters()) == 2 * 24 * 6 + 24 + 6


def test_feed_forward_starts_with_xavier_weights_and_no_bias():
    torch.manual_seed(0)
    module = FeedForward(64)
    bound = math.sqrt(6 / (64 + 256))
    for layer in (module.W_1, module.W_2):
        assert 0.98 * bound < layer.weight.abs().max() <= bound
        assert (layer.bias == 0).all()


# --- block ---------------------------------------------------------------------------------------


def by_hand(block, x, **limits):
    """The block's five variants, written out one by one."""

    def attend(tokens):
        return block.attention(tokens, **limits)[0]

    mlp, norm_1, norm_2 = block.feed_forward, block.norm_1, block.norm_2
    match block.norm_position, block.residual:
        case "pre", True:
            x = x + attend(norm_1(x))
            return x + mlp(norm_2(x))
        case "post", True:
            x = norm_1(x + attend(x))
            return norm_2(x + mlp(x))
        case None, True:
            x = x + attend(x)
            return x + mlp(x)
        case "pre", False:
            return mlp(norm_2(attend(norm_1(x))))
        case "post", False:
            return norm_2(mlp(norm_1(attend(x))))
        case None, False:
            return mlp(attend(x))


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("position", ["pre", "post", None])
def test_block_equals_its_parts_put_together_by_hand(position, residual, norm):
    block = TransformerBlock(
        12, 3, norm_position=position, residual=residual, norm=norm, dtype=torch.float64
    )
    with_random_parameters(block)
    x = random_([2, 5, 12])
    torch.testing.assert_close(block(x)[0], by_hand(block, x))
    torch.testing.assert_close(block(x, causal=True)[0], by_hand(block, x, causal=True))


@pytest.mark.parametrize("position", ["pre", "post"])
def test_block_equals_torch_s_encoder_layer(position):
    block = with_random_parameters(TransformerBlock(12, 3, 20, norm_position=position))
    peer = nn.TransformerEncoderLayer(
        12, 3, 20, dropout=0.0, activation="gelu", batch_first=True, norm_first=position == "pre"
    )
    ours, mha = block.attention, peer.self_attn
    with torch.no_grad():
        mha.in_proj_weight.copy_(torch.cat([m.weight for m in (ours.W_q, ours.W_k, ours.W_v)]))
        mha.in_proj_bias.copy_(torch.cat([m.bias for m in (ours.W_q, ours.W_k, ours.W_v)]))
    mha.out_proj.load_state_dict(ours.W_o.state_dict())
    peer.linear1.load_state_dict(block.feed_forward.W_1.state_dict())
    peer.linear2.load_state_dict(block.feed_forward.W_2.state_dict())
    for theirs, norm in ((peer.norm1, block.norm_1), (peer.norm2, block.norm_2)):
        theirs.load_state_dict({"weight": norm.gain, "bias": norm.bias})
    x = random_([2, 5, 12], dtype=torch.float32)
    torch.testing.assert_close(block(x)[0], peer(x))


def recorded_order(block, x):
    order = []
    for name, module in block.named_children():
        module.register_forward_hook(lambda *_, name=name: order.append(name))
    block(x)
    return order


@pytest.mark.parametrize(
    ("position", "order"),
    [
        ("pre", ["norm_1", "attention", "norm_2", "feed_forward"]),
        ("post", ["attention", "norm_1", "feed_forward", "norm_2"]),
        (None, ["attention", "feed_forward"]),
    ],
)
def test_parts_run_in_the_order_that_the_position_says(position, order):
    x = torch.randn(2, 5, 12)
    assert recorded_order(TransformerBlock(12, 3, norm_position=position), x) == order


def test_pre_norm_leaves_the_residual_path_alone():
    block = TransformerBlock(12, 3)
    for last in (block.attention.W_o, block.feed_forward.W_2):
        nn.init.zeros_(last.weight)
    x = torch.randn(2, 5, 12)
    assert torch.equal(block(x)[0], x)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 4), st.integers(1, 5))
def test_shapes(B, T, h, d_k):
    block = TransformerBlock(h * d_k, h, 7)
    output, weights = block(torch.randn(B, T, h * d_k), need_weights=True)
    assert output.shape == (B, T, h * d_k) and weights.shape == (B, h, T, T)


def test_masks_and_need_weights_reach_the_attention():
    block, x = TransformerBlock(12, 3), torch.randn(2, 5, 12)
    assert block(x)[1] is None
    causal = block(x, causal=True, need_weights=True)[1]
    assert (causal.triu(1) == 0).all() and (causal.diagonal(dim1=-2, dim2=-1) > 0).all()
    mask = torch.rand(2, 5, 5) > 0.5
    assert (block(x, mask=mask, need_weights=True)[1].amax(1)[~mask] == 0).all()
    key_mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    padded = block(x, key_mask=key_mask, need_weights=True)[1]
    assert (padded[1, ..., 3:] == 0).all() and (padded[0] > 0).all()


def test_the_past_doesn_t_see_the_future_through_stacked_causal_blocks():
    blocks = [TransformerBlock(12, 3, norm_position=p) for p in ("pre", "post")]
    x = torch.randn(1, 6, 12)
    changed = x.clone()
    changed[0, 4] += 1
    for block in blocks:
        x, changed = block(x, causal=True)[0], block(changed, causal=True)[0]
    same = torch.isclose(x, changed, atol=1e-6).all(-1)[0]
    assert same.tolist() == [True] * 4 + [False] * 2


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm, nn.LayerNorm])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_dtype_passes_forward_and_backward(dtype, norm):
    block = TransformerBlock(12, 3, norm=norm, dtype=dtype)
    output, weights = block(torch.randn(2, 5, 12, dtype=dtype), need_weights=True)
    output.float().square().sum().backward()
    assert output.dtype == weights.dtype == dtype
    assert all(p.dtype == dtype and torch.isfinite(p.grad).all() for p in block.parameters())


def test_no_norm_means_no_norm_parameters():
    def count(**options):
        return sum(p.numel() for p in TransformerBlock(12, 3, **options).parameters())

    bare = count(norm_position=None)
    attention = sum(p.numel() for p in MultiHeadAttention(12, 3).parameters())
    assert bare == attention + sum(p.numel() for p in FeedForward(12).parameters())
    assert count() == count(norm_position="post") == bare + 4 * 12
    assert count(norm=RMSNorm) == bare + 2 * 12


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [LayerNorm, RMSNorm, FeedForward])
@pytest.mark.parametrize(
    ("d_model", "error", "words"),
    [(0, ValueError, "at least 1, got 0"), (2.0, TypeError, "d_model must be an int, got float")],
)
def test_widths_that_make_no_sense_are_refused(make, d_model, error, words):
    with pytest.raises(error, match=words):
        make(d_model)


@pytest.mark.parametrize("make", [LayerNorm, RMSNorm, FeedForward])
def test_wrong_input_is_refused(make):
    module = make(4)
    with pytest.raises(TypeError, match=r"x must be a torch\.Tensor, got list"):
        module([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(TypeError, match=r"floating point numbers, got torch\.int64"):
        module(torch.tensor([1, 2, 3, 4]))
    with pytest.raises(ValueError, match=r"x must end in d_model=4, got shape \[4, 1\]"):
        module(torch.zeros(4, 1))  # would broadcast silently
    with pytest.raises(ValueError, match="x must end in d_model=4"):
        module(torch.tensor(1.0))
    with pytest.raises(TypeError, match=r"got torch\.float64 and torch\.float32"):
        module(torch.zeros(2, 4, dtype=torch.float64))


@pytest.mark.parametrize("make", [LayerNorm, RMSNorm])
def test_bad_eps_is_refused(make):
    for eps in (-1e-5, math.nan):
        with pytest.raises(ValueError, match="eps must not be negative"):
            make(4, eps)
    with pytest.raises(TypeError, match="eps must be a number, got Tensor"):
        make(4, torch.tensor(1.0))


def test_feed_forward_refuses_a_bad_hidden_width():
    with pytest.raises(ValueError, match="d_ff must be at least 1, got 0"):
        FeedForward(4, 0)


def test_block_refuses_sizes_and_positions_that_don_t_exist():
    with pytest.raises(ValueError, match="d_model=12 and num_heads=5"):
        TransformerBlock(12, 5)
    for position in ("before", "Pre", True):
        with pytest.raises(ValueError, match=r'norm_position must be "pre", "post" or None, got'):
            TransformerBlock(12, 3, norm_position=position)


@pytest.mark.parametrize("position", ["pre", "post", None])
def test_block_refuses_wrong_input(position):
    block = TransformerBlock(12, 3, norm_position=position)
    with pytest.raises(TypeError, match=r"x must be a torch\.Tensor"):
        block("tokens")
    with pytest.raises(ValueError, match="x must end in d_model=12"):
        block(torch.zeros(2, 5, 11))
    with pytest.raises(ValueError, match=r"x must have shape \[B, T, 12\], got \[5, 12\]"):
        block(torch.zeros(5, 12))
    with pytest.raises(ValueError, match="at least one token"):
        block(torch.zeros(2, 0, 12))
    with pytest.raises(TypeError, match="mask must be boolean"):
        block(torch.zeros(2, 5, 12), mask=torch.ones(5, 5))


# --- the attention's options in a block ----------------------------------------------------------


def test_a_stack_generates_chunk_by_chunk():
    blocks = [TransformerBlock(8, 2, dtype=torch.float64) for _ in range(2)]
    caches = [KVCache() for _ in blocks]
    x = random_((2, 6, 8))
    full, chunks = x, []
    for block in blocks:
        full, _ = block(full, causal=True)
    for chunk in x.split([3, 1, 2], 1):
        for block, cache in zip(blocks, caches, strict=True):
            chunk, _ = block(chunk, causal=True, cache=cache)
        chunks.append(chunk)
    torch.testing.assert_close(torch.cat(chunks, 1), full)


@pytest.mark.parametrize(
    "options",
    [
        {"score_bias": random_((5, 5))},
        {"head_mask": torch.tensor([0.0, 1.0])},
        {"mask": torch.eye(5, dtype=torch.bool)},
        {"key_mask": torch.tensor([[True, True, False, True, False]] * 3)},
        {"causal": True},
    ],
)
def test_a_block_passes_options_to_its_attention(options):
    block, x = (
        with_random_parameters(TransformerBlock(8, 2, dtype=torch.float64)),
        random_((3, 5, 8)),
    )
    output, weights = block(x, weights_for=[1], **options)
    change, expected = block.attention(block.norm_1(x), weights_for=[1], **options)
    after = x + change
    torch.testing.assert_close(output, after + block.feed_forward(block.norm_2(after)))
    torch.testing.assert_close(weights, expected)
    assert not torch.allclose(output, block(x)[0])


@pytest.mark.parametrize("norm_position", ["pre", "post", None])
@pytest.mark.parametrize("residual", [True, False])
def test_a_stack_runs_under_autocast(norm_position, residual):
    options = {"norm_position": norm_position, "residual": residual}
    blocks = nn.ModuleList(TransformerBlock(8, 2, **options) for _ in range(2))
    x = torch.randn(2, 5, 8)
    exact, rough = x, x
    for block in blocks:
        exact, _ = block(exact)
    with torch.autocast("cpu", torch.bfloat16):
        for block in blocks:
            rough, _ = block(rough)
    assert (rough.float() - exact).abs().max() < 0.1
    rough.float().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in blocks.parameters())


# --- a block of parts ----------------------------------------------------------------------------


@pytest.mark.parametrize("norm_position", ["pre", "post", None])
@pytest.mark.parametrize("residual", [True, False])
def test_parts_made_as_the_block_makes_them_give_the_same_block(norm_position, residual):
    plumbing = {"norm_position": norm_position, "residual": residual}
    made = with_random_parameters(TransformerBlock(12, 3, 7, dtype=torch.float64, **plumbing))
    norms = [made.norm_1, made.norm_2] if norm_position else None
    built = TransformerBlock.of_parts(made.attention, made.feed_forward, norms, **plumbing)
    x = random_((2, 5, 12))
    torch.testing.assert_close(built(x, causal=True)[0], made(x, causal=True)[0])
    assert built.state_dict().keys() == made.state_dict().keys()
    assert repr(built) == repr(made)


def test_attention_alone_without_any_bias():
    attention = MultiHeadAttention(12, 3, bias=False, dtype=torch.float64)
    block = TransformerBlock.of_parts(attention, norms=[RMSNorm(12, dtype=torch.float64)])
    assert all("bias" not in name for name, _ in block.named_parameters())
    x = random_((2, 5, 12))
    output, weights = block(x, need_weights=True)
    change, expected = attention(block.norm_1(x), need_weights=True)
    torch.testing.assert_close(output, x + change)
    torch.testing.assert_close(weights, expected)


def test_a_whole_block_without_any_bias():
    parts = {"bias": False, "dtype": torch.float64}
    block = TransformerBlock.of_parts(
        MultiHeadAttention(12, 6, num_kv_heads=2, **parts),
        FeedForward(12, 5, **parts),
        [LayerNorm(12, **parts), LayerNorm(12, **parts)],
    )
    assert all("bias" not in name for name, _ in block.named_parameters())
    assert not block(torch.zeros(1, 3, 12, dtype=torch.float64))[0].any()
    cache, x = KVCache(), random_((2, 5, 12))
    chunks = [block(chunk, causal=True, cache=cache)[0] for chunk in x.split([2, 3], 1)]
    torch.testing.assert_close(torch.cat(chunks, 1), block(x, causal=True)[0])
    assert cache.keys.shape == (2, 2, 5, 2)


def test_norms_left_out_are_like_the_attention():
    attention = MultiHeadAttention(12, 3, dtype=torch.float64)
    block = TransformerBlock.of_parts(attention, FeedForward(12, dtype=torch.float64))
    assert [norm.gain.dtype for norm in (block.norm_1, block.norm_2)] == [torch.float64] * 2
    assert TransformerBlock.of_parts(attention).norm_2 is None
    assert TransformerBlock.of_parts(attention, norm_position=None).norm_1 is None


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


def test_a_block_takes_memory_for_its_weights():
    block, x = TransformerBlock(8, 2), torch.randn(3, 5, 8)
    memory = torch.empty(3, 2, 5, 5)
    with torch.no_grad():
        _, weights = block(x, weights_out=memory)
        expected = block(x, need_weights=True)[1]
    assert weights.data_ptr() == memory.data_ptr()
    torch.testing.assert_close(memory, expected)


def test_a_stack_of_parts_compiles_and_exports():
    blocks = nn.ModuleList(
        TransformerBlock.of_parts(MultiHeadAttention(8, 4, num_kv_heads=2), feed_forward)
        for feed_forward in (FeedForward(8), None)
    ).eval()

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = blocks

        def forward(self, x):
            for block in self.blocks:
                x, _ = block(x, causal=True)
            return x

    stack, x = Stack(), torch.randn(2, 5, 8)
    compiled = torch.compile(stack, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), stack(x))
    tokens = torch.export.Dim("T", min=2, max=512)
    exported = torch.export.export(stack, (x,), dynamic_shapes={"x": {1: tokens}}).module()
    longer = torch.randn(2, 11, 8)
    torch.testing.assert_close(exported(longer), stack(longer))


attention_12 = MultiHeadAttention(12, 3)
BAD_PARTS = {
    "sizes": ((12, 3), {}, TypeError, ["attention", "MultiHeadAttention", "int"]),
    "torch's attention": ((nn.MultiheadAttention(12, 3),), {}, TypeError,
        ["attention", "attnlib", "MultiheadAttention"]),
    "attention elsewhere": ((MultiHeadAttention(12, 3, kdim=5),), {}, ValueError,
        ["attention", "d_model=12", "kdim=5"]),
    "a function": ((attention_12, lambda x: x), {}, TypeError, ["feed_forward", "function"]),
    "a narrow network": ((attention_12, FeedForward(8)), {}, ValueError,
        ["feed_forward", "d_model=12", "8"]),
    "a norm for two": ((attention_12, FeedForward(12), [LayerNorm(12)]), {}, ValueError,
        ["norms", "2", "1"]),
    "norms for nothing": ((attention_12, None, [LayerNorm(12)]), {"norm_position": None},
        ValueError, ["norms", "left out", "None", "1"]),
    "a norm by itself": ((attention_12, None, LayerNorm(12)), {}, TypeError,
        ["norms", "list", "LayerNorm"]),
    "a class of norms": ((attention_12, None, [LayerNorm]), {}, TypeError, ["norms[0]", "type"]),
    "a wide norm": ((attention_12, None, [RMSNorm(16)]), {}, ValueError, ["norms[0]", "12", "16"]),
    "another position": ((attention_12,), {"norm_position": "Pre"}, ValueError,
        ["norm_position", "'Pre'"]),
    "residual as text": ((attention_12,), {"residual": "no"}, TypeError, ["residual", "str"]),
    "attention twice": ((attention_12, attention_12), {}, ValueError,
        ["feed_forward", "of its own", "got attention once more"]),
    "a norm twice": ((attention_12, FeedForward(12), [LayerNorm(12)] * 2), {}, ValueError,
        ["norms[1]", "of its own", "got norms[0] once more"]),
    "dropout of all": ((attention_12,), {"dropout": 1.0}, ValueError, ["dropout", "below 1"]),
    "dropout as text": ((attention_12,), {"dropout": "half"}, TypeError, ["dropout", "str"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PARTS)
def test_parts_that_do_not_fit_are_refused(name):
    parts, plumbing, error, words = BAD_PARTS[name]
    with pytest.raises(error) as caught:
        TransformerBlock.of_parts(*parts, **plumbing)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("part", "error", "words"),
    [
        (nn.Linear(12, 1), ValueError, ["[2, 5, 12]", "[2, 5, 1]"]),  # would broadcast silently
        (nn.AdaptiveAvgPool2d((1, 12)), ValueError, ["[2, 5, 12]", "[2, 1, 12]"]),
        (nn.GRU(12, 12), TypeError, ["tensor", "tuple"]),
    ],
)
@pytest.mark.parametrize("residual", [True, False])
def test_a_part_that_changes_the_shape_is_refused(part, error, words, residual):
    block = TransformerBlock.of_parts(attention_12, part, residual=residual)
    with pytest.raises(error) as caught:
        block(torch.randn(2, 5, 12))
    assert all(word in str(caught.value) for word in ["feed_forward", *words]), caught.value


@pytest.mark.parametrize("name", ["key", "value", "query", "masks"])
def test_a_block_refuses_other_options(name):
    x = torch.randn(2, 5, 12)
    with pytest.raises(TypeError) as caught:
        TransformerBlock(12, 3)(x, **{name: x})
    assert all(word in str(caught.value) for word in ["block", "score_bias", f"got {name}"])


def test_a_norm_that_makes_no_module_is_refused():
    with pytest.raises(TypeError, match="norm must make a module, but made a int"):
        TransformerBlock(12, 3, norm=lambda *sizes, **options: 3)
    for norm, words in (("batch", "got 'batch'"), (LayerNorm(12), "got LayerNorm")):
        with pytest.raises(TypeError, match=f"norm must be a class of norms, such as .* {words}"):
            TransformerBlock(12, 3, norm=norm)


def test_norms_may_come_in_a_module_list():
    norms = nn.ModuleList([RMSNorm(12), RMSNorm(12)])
    block = TransformerBlock.of_parts(attention_12, FeedForward(12), norms)
    assert [block.norm_1, block.norm_2] == list(norms)


@pytest.mark.parametrize("make", [LayerNorm, FeedForward, partial(MultiHeadAttention, num_heads=2)])
def test_bias_is_true_or_false(make):
    for bias, came in ((0, "int"), ("no", "str")):
        with pytest.raises(TypeError, match=f"bias must be True or False, got {came}"):
            make(4, bias=bias)


class Wrapped(nn.Module):
    """A layer in another's hands, as LoRA's are: its own weight isn't where a linear layer's is."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def test_a_block_of_wrapped_layers():
    attention, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    feed_forward = FeedForward(8)
    expected = TransformerBlock.of_parts(attention, feed_forward)(x)[0]
    attention.W_q, feed_forward.W_1 = Wrapped(attention.W_q), Wrapped(feed_forward.W_1)
    block = TransformerBlock.of_parts(attention, feed_forward)
    assert torch.equal(block(x)[0], expected)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, that all of this moves to torchao
def test_a_quantized_block():
    block, x = TransformerBlock(32, 4).eval(), torch.randn(2, 5, 32)
    quantized = torch.ao.quantization.quantize_dynamic(block, {nn.Linear})
    torch.testing.assert_close(quantized(x)[0], block(x)[0], atol=0.1, rtol=0.1)
    again = TransformerBlock.of_parts(quantized.attention, quantized.feed_forward)
    torch.testing.assert_close(again(x)[0], quantized(x)[0])


def test_norms_of_another_width_or_over_tokens_are_refused():
    attention = MultiHeadAttention(12, 3)
    with pytest.raises(ValueError, match=r"norms\[0\] must have .* d_model=12, got 10"):
        TransformerBlock.of_parts(attention, norms=[nn.LayerNorm(10)])
    with pytest.raises(TypeError, match=r"must normalize each token by itself.*got BatchNorm1d"):
        TransformerBlock(12, 3, norm=nn.BatchNorm1d)
    assert TransformerBlock(12, 3, norm=nn.LayerNorm).norm_1.normalized_shape == (12,)
