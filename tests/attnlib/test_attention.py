"""Attention against its formula in float64: any shapes, limits and dtypes, and their gradients."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import F64, make_module

from attnlib import (
    KVCache,
    MultiHeadAttention,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from attnlib.positions import RotaryPositions

TOLERANCE = {F64: 1e-9, torch.float32: 1e-3, torch.bfloat16: 0.2}


def close(found, expected, tolerance=1e-9):
    torch.testing.assert_close(found.double(), expected.double(), atol=tolerance, rtol=tolerance)


def plain_attention(q, k, v, allowed, bias=0.0):
    """Return outputs and weights; a row that may look nowhere has weights 0."""
    scores = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1]) + bias
    weights = scores.masked_fill(~allowed, -1e9).softmax(-1) * allowed
    return torch.einsum("...ij,...jd->...id", weights, v), weights


def plain_module(
    module, query, key=None, value=None, *,
    mask=None, key_mask=None, score_bias=None, causal=False, head_mask=None,
):  # fmt: skip
    """Return what a module's projections make of its tokens: output, weights, contributions."""
    key = query if key is None else key
    value = key if value is None else value
    h, h_kv = module.num_heads, module.num_kv_heads
    allowed = torch.ones(len(query), 1, query.shape[1], key.shape[1], dtype=torch.bool)
    if mask is not None:
        allowed = allowed & (mask[:, None] if mask.dim() == 3 else mask)
    if key_mask is not None:
        allowed = allowed & key_mask[:, None, None]
    if score_bias is not None:
        allowed = allowed & (score_bias > -math.inf)
    allowed = allowed.tril() if causal else allowed

    def heads_of(x, number):
        return torch.stack(x.chunk(number, -1), 1).repeat_interleave(h // number, 1)

    q, k = heads_of(module.W_q(query), h), heads_of(module.W_k(key), h_kv)
    if module.rotary:
        q, k = module.rotary(q), module.rotary(k)
    v = heads_of(module.W_v(value), h_kv)
    heads, weights = plain_attention(q, k, v, allowed, 0 if score_bias is None else score_bias)
    if head_mask is not None:
        heads = heads * head_mask[..., None, None]
    parts = torch.einsum("bhtk,hdk->bhtd", heads, torch.stack(module.W_o.weight.chunk(h, 1)))
    return parts.sum(1) + (0 if module.W_o.bias is None else module.W_o.bias), weights, parts


def gradients(results, learned):
    """Return those of a number to which each result contributes, each entry in its own way."""
    results = [x for x in results if x is not None]
    ways = [torch.linspace(-1, 2, x.numel(), dtype=F64, device="cpu").view_as(x) for x in results]
    total = sum((x * way).sum() for x, way in zip(results, ways, strict=True))
    return torch.autograd.grad(total, learned, retain_graph=True, materialize_grads=True)


PARTS = ["query", "score_bias", "head_mask", "W_q.weight", "W_k.weight", "W_v.weight"]


@st.composite
def calls(draw):
    """Draw a module, its tokens and its limits, all in float64, and what of them learns."""
    torch.manual_seed(draw(st.integers(0, 999)))
    B, T_q, T_k, h, d_k, _ = draw(st.permutations(range(1, 7)))
    h_kv = draw(st.sampled_from([number for number in range(1, h + 1) if h % number == 0]))
    given = draw(st.integers(1, 3))  # the query alone, with a key, or with key and value
    causal = draw(st.booleans())
    T_k = T_q if causal or given == 1 else T_k
    widths = [{}, {"kdim": 7, "vdim": 7}, {"kdim": 7, "vdim": 8}][given - 1]
    module = make_module(h * d_k, h, num_kv_heads=h_kv, bias=draw(st.booleans()), **widths)
    shapes = [(B, T_q, h * d_k), *((B, T_k, width) for width in widths.values())]
    tokens = [torch.randn(shape, dtype=F64) for shape in shapes[:given]]

    def numbers(*shapes):
        shape = draw(st.sampled_from([None, *shapes]))
        return None if shape is None else torch.randn(shape, dtype=F64)

    maps = [(T_q, T_k), (B, h, T_q, T_k), (1, h, T_q, T_k), (B, 1, 1, T_k), (1, h, T_q, 1)]
    limits = {"mask": numbers((B, T_q, T_k), *maps), "key_mask": numbers((B, T_k))}
    limits = {name: None if x is None else x > -0.5 for name, x in limits.items()}
    if (bias := numbers(*maps)) is not None:
        bias[torch.rand(bias.shape) < 0.3] = -math.inf
    limits |= {"score_bias": bias, "head_mask": numbers((h,), (B, h)), "causal": causal}
    named = {**dict(module.requires_grad_(False).named_parameters()), **limits, "query": tokens[0]}
    learns = draw(st.sampled_from([[], PARTS, *([name] for name in PARTS)]))
    learned = [named[name].requires_grad_() for name in learns if named[name] is not None]
    return module, tokens, limits, learned


@given(calls(), st.sampled_from([F64, F64, torch.float32, torch.bfloat16]), st.data())
def test_it_is_its_formula(call, dtype, data):
    module, tokens, limits, learned = call
    output, weights, parts = plain_module(module, *tokens, **limits)
    if dtype != F64:
        module, tokens, learned = copy.deepcopy(module).to(dtype), [x.to(dtype) for x in tokens], []
    tolerance = TOLERANCE[dtype]
    if limits["score_bias"] is not None and data.draw(st.booleans(), "a bias in float32"):
        limits |= {"score_bias": limits["score_bias"].float()}
        tolerance = max(tolerance, 1e-3)
    # A tensor that is made without saying where would be on another device than the tokens.
    with torch.device(data.draw(st.sampled_from(["cpu", "meta"]))):
        for asked, rows in (False, None), (True, weights):
            found = module(*tokens, **limits, need_weights=asked)
            assert found[0].dtype == dtype
            close(found[0], output, tolerance)
            assert (found[1] is None) == (rows is None)
            if rows is not None:
                assert found[1].dtype == dtype
                close(found[1], rows, tolerance)
            if learned:
                expected = gradients([output, rows], learned)
                for ours, theirs in zip(gradients(found, learned), expected, strict=True):
                    close(ours, theirs, tolerance)
        close(module.contributions(*tokens, **limits), parts, tolerance)
    with torch.no_grad(), torch.device("meta"):
        found = module(*tokens, **limits, need_weights=True)
    close(found[0], output, tolerance)
    close(found[1], weights, tolerance)


@given(
    st.sampled_from([(), (3,), (2, 4)]), st.permutations([1, 3, 5, 6]), st.booleans(),
    st.sampled_from([None, 0, 1, 2]), st.booleans(),
)  # fmt: skip
def test_the_function_is_its_formula(leading, sizes, causal, mask_dims, learns):
    T_q, T_k, d_k, d_v = sizes
    T_k = T_q if causal else T_k
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v)
    q, k, v = tokens = [torch.randn(*leading, *shape, dtype=F64) for shape in shapes]
    allowed, mask = torch.ones(T_q, T_k, dtype=torch.bool), None
    if mask_dims is not None and mask_dims <= len(leading):
        mask = torch.rand(*leading[:mask_dims], T_q, T_k) < 0.6
        allowed = mask[:, None] if mask.dim() == 3 and len(leading) == 2 else mask
    for x in tokens:
        x.requires_grad_(learns)
    expected = plain_attention(q, k, v, allowed.tril() if causal else allowed)
    found = scaled_dot_product_attention(q, k, v, mask, causal=causal)
    torch.testing.assert_close(found, expected)
    if learns:
        torch.testing.assert_close(gradients(found, tokens), gradients(expected, tokens))


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sampled_from([1, 2, 3, 6]),
    st.sampled_from([None, RotaryPositions()]), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_chunks_through_a_cache_are_one_pass(chunks, h_kv, rotary, causal, limited, learning):
    module = make_module(12, 6, num_kv_heads=h_kv, rotary=rotary)
    T = sum(chunks)
    x = torch.randn(2, T, 12, dtype=F64, requires_grad=learning)
    bias = torch.randn(1, 6, T, T, dtype=F64) if limited else None
    # Padding on the left, as in batched generation: the first rows may look nowhere.
    key_mask = torch.rand(2, T).sort().values > 0.5 if limited else None
    sizes = torch.tensor(chunks)
    seen_by = sizes.cumsum(0).repeat_interleave(sizes)  # how many keys there are with each token
    order = {"causal": True} if causal else {"mask": torch.arange(T) < seen_by[:, None]}
    whole = plain_module(module, x, key_mask=key_mask, score_bias=bias, **order)
    cache, outputs = KVCache(), []
    for chunk in x.split(chunks, 1):
        past = len(cache)
        seen = past + chunk.shape[1]
        output, weights, parts = (y[..., past:seen, :] for y in whole)
        limits = {"causal": causal}
        if limited:
            limits |= {"key_mask": key_mask[:, :seen], "score_bias": bias[..., past:seen, :seen]}
        with torch.set_grad_enabled(learning), torch.device("meta"):
            close(module.contributions(chunk, cache=cache, **limits), parts)
            assert len(cache) == past
            branch = copy.copy(cache)
            found = module(chunk, cache=branch, need_weights=True, **limits)
            outputs.append(module(chunk, cache=cache, **limits)[0])
        assert len(cache) == len(branch) == seen
        close(found[0], output)
        close(found[1], weights[..., :seen])
        close(outputs[-1], output)
    if learning:
        close(*gradients([torch.cat(outputs, 1)], [x]), *gradients(whole[:1], [x]))


def test_heads_are_slices_of_columns():
    x = torch.randn(2, 3, 20)
    heads = split_heads(x, 4)
    assert torch.equal(heads, torch.stack([x[:, :, i : i + 5] for i in (0, 5, 10, 15)], 1))
    assert torch.equal(merge_heads(heads), x)


def test_where_training_begins():
    """Matrices are Xavier-uniform (Glorot & Bengio 2010), biases 0; each draw is another."""
    module = MultiHeadAttention(120, 6, num_kv_heads=1, kdim=400, vdim=500)
    first = copy.deepcopy(module.state_dict())
    module.reset_parameters()
    for name, again in module.state_dict().items():
        for drawn in (first[name], again):
            bound = 0 if name.endswith("bias") else math.sqrt(6 / sum(drawn.shape))
            assert 0.98 * bound <= drawn.abs().max() <= bound
        assert name.endswith("bias") or not torch.equal(again, first[name])
    assert module.W_k.weight.shape == (20, 400) and module.W_v.weight.shape == (20, 500)
    there = MultiHeadAttention(8, 2, device="meta", dtype=torch.bfloat16).parameters()
    assert all(p.is_meta and p.dtype == torch.bfloat16 for p in there)
    assert "num_kv_heads=1" in repr(module) and "kv" not in repr(MultiHeadAttention(4, 2))


def test_dropout_acts_on_the_output_and_not_on_the_weights():
    module, x = make_module(8, 2, dropout=0.5), torch.randn(2, 9, 8, dtype=F64)
    quiet, exact = module.eval()(x, need_weights=True)
    assert torch.equal(module(x)[0], module(x)[0])
    module.train()
    for learning in (True, False):
        with torch.set_grad_enabled(learning):
            (one, weights), (other, again) = (module(x, need_weights=True) for _ in range(2))
        torch.testing.assert_close(weights, exact)
        torch.testing.assert_close(again, exact)
        assert not torch.allclose(one, other) and not torch.allclose(one, quiet)
    with torch.no_grad():
        many = torch.stack([module(x)[0] for _ in range(1000)])
    # Dropout scales what it keeps by 1 / (1 - p), so the mean stays: within 6 standard errors.
    assert ((many.mean(0) - quiet).abs() < 6 * many.std(0) / len(many) ** 0.5).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_blind_rows_bring_no_nan_anywhere(dtype, need_weights, biased):
    module = make_module(8, 2, num_kv_heads=1, dtype=dtype)
    x = torch.randn(2, 3, 8, dtype=dtype, requires_grad=True)
    limits = {"key_mask": padding_mask(torch.tensor([0, 2]), 3), "causal": True}
    if biased:
        limits["score_bias"] = torch.randn(1, 2, 3, 3, dtype=dtype)
    output, weights = module(x, **limits, need_weights=need_weights)
    assert torch.equal(output[0], module.W_o.bias.expand(3, 8))
    assert weights is None or not weights[0].any()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        sum(y.float().square().sum() for y in (output, weights) if y is not None).backward()
    assert all(y.grad.isfinite().all() for y in (x, *module.parameters()))


def test_padding_must_be_finite():
    """Its weight is 0, and 0 x NaN is NaN."""
    module, x = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64)
    expected, _ = module(x[:, :2])
    for filler in (0.0, 1e300, math.nan):
        x[:, 2] = filler
        output = module(x, key_mask=padding_mask(torch.tensor([2]), 3))[0][:, :2]
        assert output.isnan().all() if math.isnan(filler) else torch.allclose(output, expected)


def test_extreme_scores_stay_finite():
    q, k = torch.full((1, 4), 1e4), torch.tensor([[1e4] * 4, [0.0] * 4])
    _, weights = scaled_dot_product_attention(q, k, torch.eye(2, 4))
    assert weights.tolist() == [[1.0, 0.0]]
