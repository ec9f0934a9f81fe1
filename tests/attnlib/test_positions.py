"""Positions against complex numbers in plain loops, and what they promise."""

import cmath
import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools import oracle
from tools.modules import F64, make_module

from attnlib import KVCache, MultiHeadAttention
from attnlib.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    alibi_bias,
    sinusoidal_positions,
)

pairs = st.integers(1, 4)
tokens = st.integers(1, 6)
starts = st.integers(0, 50)


def turned_by_hand(vector, position, base, interleaved):
    """One vector's pairs as complex numbers, each times e^(i angle)."""
    half = len(vector) // 2
    result = [0.0] * len(vector)
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        angle = position / base ** (2 * i / len(vector))
        number = complex(vector[a], vector[b]) * cmath.exp(1j * angle)
        result[a], result[b] = number.real, number.imag
    return result


class TestSinusoids:
    @given(st.integers(1, 40), pairs, st.sampled_from([10_000.0, 7.0, 2]))
    def test_they_are_the_formula(self, length, half, base):
        d = 2 * half
        table = sinusoidal_positions(length, d, base=base, dtype=F64)
        assert table.shape == (length, d)
        for position in range(length):
            for i in range(half):
                angle = position / base ** (2 * i / d)
                assert math.isclose(table[position, 2 * i], math.sin(angle), abs_tol=1e-9)
                assert math.isclose(table[position, 2 * i + 1], math.cos(angle), abs_tol=1e-9)

    def test_dot_products_depend_on_the_distance_alone(self):
        table = sinusoidal_positions(64, 32, dtype=F64)
        products = table @ table.T
        for distance in range(64):
            diagonal = products.diagonal(distance)
            assert diagonal.max() - diagonal.min() < 1e-9
        assert torch.allclose(products.diagonal(), torch.full((64,), 16.0, dtype=F64))

    def test_far_positions_are_exact_in_half_precision(self):
        far = sinusoidal_positions(5000, 8, dtype=torch.float16)[4097]
        near = sinusoidal_positions(5000, 8, dtype=F64)[4097]
        assert (far.double() - near).abs().max() < 1e-3

    @pytest.mark.parametrize("make", ["sinusoids", "learned"])
    def test_they_are_added_from_a_start_on(self, make):
        module = {
            "sinusoids": SinusoidalPositions(6, base=50.0),
            "learned": LearnedPositions(12, 6),
        }[make]
        x = torch.randn(2, 9, 6)
        whole = module(x)
        parts = torch.cat([module(x[:, :4]), module(x[:, 4:], start=4)], dim=1)
        assert torch.allclose(whole, parts, atol=1e-6) and not torch.equal(whole, x)
        assert torch.allclose((whole - x)[0], (whole - x)[1], atol=1e-6)
        if make == "sinusoids":
            table = sinusoidal_positions(9, 6, base=50.0)
            assert torch.allclose(whole - x, table.expand(2, 9, 6), atol=1e-6)
            assert not list(module.parameters()) and not module.state_dict()

    def test_learned_ones_learn_only_where_a_token_stood(self):
        module = LearnedPositions(7, 4, std=0.5)
        module(torch.randn(3, 2, 4), start=3).sum().backward()
        assert module.weight.grad.tolist() == [[0] * 4] * 3 + [[3] * 4] * 2 + [[0] * 4] * 2
        before = module.weight.clone()
        module.reset_parameters()
        assert not torch.equal(module.weight, before) and 0.2 < module.weight.std() < 1


class TestRotary:
    @given(st.integers(1, 3), tokens, pairs, starts, st.booleans(), st.sampled_from([1e4, 3.0]))
    def test_each_pair_is_a_complex_number_that_turns(self, h, T, half, start, neighbors, base):
        x = torch.randn(2, h, T, 2 * half, dtype=F64)
        turned = RotaryPositions(base=base, interleaved=neighbors)(x, start=start)
        assert turned.shape == x.shape
        for b in range(2):
            for head in range(h):
                for i in range(T):
                    vector = x[b, head, i].tolist()
                    wanted = turned_by_hand(vector, start + i, base, neighbors)
                    assert torch.allclose(
                        turned[b, head, i], torch.tensor(wanted, dtype=F64), atol=1e-9
                    )

    @given(pairs, starts, starts, st.booleans())
    def test_a_score_depends_on_the_distance_alone(self, half, start, other, neighbors):
        rotary = RotaryPositions(interleaved=neighbors)
        q, k = torch.randn(2, 1, 1, 5, 2 * half, dtype=F64)
        here = rotary(q, start=start) @ rotary(k, start=start).mT
        there = rotary(q, start=other) @ rotary(k, start=other).mT
        assert torch.allclose(here, there, atol=1e-9)

    def test_lengths_stay_and_position_0_is_not_turned(self):
        x = torch.randn(2, 3, 4, 6, dtype=F64)
        turned = RotaryPositions()(x)
        assert torch.allclose(turned.norm(dim=-1), x.norm(dim=-1))
        assert torch.equal(turned[..., 0, :], x[..., 0, :])
        assert not torch.allclose(turned[..., 1, :], x[..., 1, :])

    def test_far_positions_are_told_apart_in_half_precision(self):
        x = torch.ones(1, 2, 8, dtype=torch.bfloat16)
        turned = RotaryPositions()(x, start=4096)
        wanted = RotaryPositions()(x.double(), start=4096)
        assert turned.dtype == torch.bfloat16
        assert (turned.double() - wanted).abs().max() < 0.02
        assert (turned[:, 0] - turned[:, 1]).abs().max() > 0.5

    def test_the_two_orders_differ_by_a_permutation(self):
        x = torch.randn(1, 5, 8, dtype=F64)
        order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])  # all firsts, then all seconds
        neighbors = RotaryPositions(interleaved=True)(x)
        halves = RotaryPositions(interleaved=False)(x[..., order])
        assert torch.allclose(neighbors[..., order], halves)


class TestInAttention:
    @pytest.mark.parametrize("neighbors", [True, False])
    @pytest.mark.parametrize("kv_heads", [4, 2])
    def test_equals_plain_loops(self, neighbors, kv_heads):
        rotary = RotaryPositions(base=100.0, interleaved=neighbors)
        module = make_module(24, 4, num_kv_heads=kv_heads, rotary=rotary)
        x = torch.randn(2, 5, 24, dtype=F64)
        output, weights = module(x, causal=True, need_weights=True)
        fused, _ = module(x, causal=True)
        for b in range(2):
            q, k = (
                oracle.affine(x[b].tolist(), layer.weight.tolist(), layer.bias.tolist())
                for layer in (module.W_q, module.W_k)
            )
            for head in range(4):
                theirs = head * kv_heads // 4
                rows = [turned_by_hand(r[6 * head : 6 * head + 6], i, 100.0, neighbors)
                        for i, r in enumerate(q)]  # fmt: skip
                columns = [turned_by_hand(r[6 * theirs : 6 * theirs + 6], i, 100.0, neighbors)
                           for i, r in enumerate(k)]  # fmt: skip
                causal = [[j <= i for j in range(5)] for i in range(5)]
                _, wanted = oracle.attend(rows, columns, columns, causal)
                assert torch.allclose(weights[b, head], torch.tensor(wanted, dtype=F64), atol=1e-10)
        values = module.W_v(x).unflatten(-1, (kv_heads, 6)).transpose(1, 2)
        values = values.repeat_interleave(4 // kv_heads, dim=1)  # never turned
        wanted = module.W_o((weights @ values).transpose(1, 2).flatten(2))
        assert torch.allclose(output, wanted, atol=1e-10)
        assert torch.allclose(fused, output, atol=1e-10)

    @given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.booleans())
    def test_chunk_by_chunk_is_the_full_pass(self, chunks, padded):
        module = make_module(12, 3, rotary=RotaryPositions())
        T = sum(chunks)
        x = torch.randn(2, T, 12, dtype=F64)
        key_mask = torch.ones(2, T, dtype=torch.bool)
        key_mask[1, 0] = not padded
        whole, _ = module(x, causal=True, key_mask=key_mask)
        cache, outputs = KVCache(), []
        with torch.no_grad():
            for chunk in x.split(chunks, dim=1):
                seen = key_mask[:, : len(cache) + chunk.shape[1]]
                outputs.append(module(chunk, causal=True, key_mask=seen, cache=cache)[0])
        assert torch.allclose(torch.cat(outputs, dim=1), whole, atol=1e-10)

    def test_shifted_tokens_get_the_same_answer(self):
        module = make_module(8, 2, rotary=RotaryPositions())
        x = torch.randn(1, 6, 8, dtype=F64)
        padding = torch.randn(1, 3, 8, dtype=F64)
        real = torch.tensor([[False] * 3 + [True] * 6])
        alone, _ = module(x)
        behind, _ = module(torch.cat([padding, x], dim=1), key_mask=real)
        assert torch.allclose(behind[:, 3:], alone, atol=1e-10)

    def test_order_matters_with_it_and_not_without(self):
        x, order = torch.randn(1, 5, 8, dtype=F64), torch.tensor([3, 0, 4, 1, 2])
        for rotary, matters in ((None, False), (RotaryPositions(), True)):
            module = make_module(8, 2, rotary=rotary)
            shuffled, _ = module(x[:, order])
            assert torch.allclose(shuffled, module(x)[0][:, order], atol=1e-9) != matters

    def test_heads_still_add_up(self):
        module = make_module(8, 2, rotary=RotaryPositions())
        x = torch.randn(1, 5, 8, dtype=F64)
        summed = module.contributions(x).sum(1) + module.W_o.bias
        assert torch.allclose(summed, module(x)[0], atol=1e-10)

    def test_gradients_reach_queries_and_keys(self):
        module = make_module(6, 1, rotary=RotaryPositions())
        x = torch.randn(1, 3, 6, dtype=F64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: module(x, causal=True, need_weights=True), x)

    def test_it_has_no_weights_and_is_copied(self):
        plain, turned = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2, rotary=RotaryPositions())
        assert plain.state_dict().keys() == turned.state_dict().keys()
        twin = copy.deepcopy(turned)
        x = torch.randn(1, 4, 8)
        assert torch.equal(twin(x)[0], turned(x)[0])
        assert "RotaryPositions(base=10000, interleaved=True)" in repr(turned)


def test_alibi_is_a_slope_times_the_distance():
    bias = alibi_bias(8, 5, dtype=F64)
    for head in range(8):
        for i in range(5):
            for j in range(5):
                assert bias[0, head, i, j] == -abs(i - j) / 2 ** (head + 1)
    module, x = make_module(16, 8), torch.randn(1, 5, 16, dtype=F64)
    _, weights = module(x, score_bias=bias, causal=True, need_weights=True)
    _, flat = module(x, causal=True, need_weights=True)
    ratio = (weights / flat).log()[0, 0, 4]
    assert torch.allclose(ratio.diff(), torch.full((4,), 0.5, dtype=F64), atol=1e-9)


REFUSED = {
    "odd width": (lambda: sinusoidal_positions(3, 5), ValueError, ["d_model", "even", "5"]),
    "no positions": (lambda: sinusoidal_positions(0, 4), ValueError, ["length", "0"]),
    "width as text": (lambda: SinusoidalPositions("8"), TypeError, ["d_model", "str"]),
    "base 0": (lambda: SinusoidalPositions(8, base=0), ValueError, ["base", "above 0", "0"]),
    "endless base": (lambda: RotaryPositions(base=math.inf), ValueError, ["base", "inf"]),
    "base as text": (lambda: RotaryPositions(base="1e4"), TypeError, ["base", "str"]),
    "interleaved as 1": (lambda: RotaryPositions(interleaved=1), TypeError, ["interleaved"]),
    "odd head": (lambda: RotaryPositions()(torch.ones(2, 3)), ValueError, ["d_k", "even", "3"]),
    "one vector": (lambda: RotaryPositions()(torch.ones(4)), ValueError, ["[..., T, d_k]", "[4]"]),
    "no token": (lambda: RotaryPositions()(torch.ones(0, 4)), ValueError, ["x", "token"]),
    "whole numbers": (
        lambda: RotaryPositions()(torch.ones(2, 4).int()), TypeError, ["x", "int32"]),
    "start below 0": (
        lambda: RotaryPositions()(torch.ones(2, 4), start=-1), ValueError, ["start", "-1"]),
    "start as text": (
        lambda: SinusoidalPositions(4)(torch.ones(2, 4), start="0"), TypeError, ["start"]),
    "tokens of another width": (
        lambda: SinusoidalPositions(4)(torch.ones(2, 6)), ValueError, ["x", "4", "[2, 6]"]),
    "a token alone": (
        lambda: SinusoidalPositions(4)(torch.ones(4)), ValueError, ["[B, T, d]", "[4]"]),
    "too long": (
        lambda: LearnedPositions(5, 4)(torch.ones(1, 4, 4), start=2), ValueError,
        ["5 positions", "4 tokens", "position 2"]),
    "a negative std": (lambda: LearnedPositions(5, 4, std=-1), ValueError, ["std", "-1"]),
    "positions of another dtype": (
        lambda: LearnedPositions(5, 4)(torch.ones(1, 2, 4).double()), TypeError, ["x", "float64"]),
    "alibi without heads": (lambda: alibi_bias(0, 3), ValueError, ["num_heads", "0"]),
    "alibi of whole numbers": (
        lambda: alibi_bias(2, 3, dtype=torch.int32), TypeError, ["dtype", "int32"]),
    "another rotary": (
        lambda: MultiHeadAttention(8, 2, rotary=True), TypeError, ["rotary", "bool"]),
    "heads of odd width": (
        lambda: MultiHeadAttention(6, 2, rotary=RotaryPositions()), ValueError, ["rotary", "3"]),
    "two sequences": (
        lambda: MultiHeadAttention(8, 2, rotary=RotaryPositions())(
            torch.ones(1, 3, 8), torch.ones(1, 4, 8)),
        ValueError, ["rotary", "3 queries", "4 new keys"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_name(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)
