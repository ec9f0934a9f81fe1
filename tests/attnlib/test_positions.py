"""Positions against sines, cosines and complex numbers in plain loops, and what they promise."""

import cmath
import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import F64, make_module

from attnlib import MultiHeadAttention
from attnlib.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    alibi_bias,
    sinusoidal_positions,
)

BASES = st.sampled_from([10_000.0, 7.0, 2])
STARTS, PAIRS = st.integers(0, 50), st.integers(1, 4)
LEADING = st.lists(st.integers(1, 3), max_size=3)


def plain_sinusoids(start, T, d, base):
    """Return sin and cos of position / base^(2 i / d), one after the other."""
    rows = [
        [wave(at / base ** (2 * i / d)) for i in range(d // 2) for wave in (math.sin, math.cos)]
        for at in range(start, start + T)
    ]
    return torch.tensor(rows, dtype=F64)


def turned_by_hand(vector, position, base, interleaved):
    """Return a vector whose pairs are complex numbers, each times e^(i angle)."""
    half = len(vector) // 2
    result = [0.0] * len(vector)
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        angle = position / base ** (2 * i / len(vector))
        number = complex(vector[a], vector[b]) * cmath.exp(1j * angle)
        result[a], result[b] = number.real, number.imag
    return result


@given(LEADING, st.integers(1, 6), PAIRS, BASES, STARTS)
def test_sinusoids_are_their_formula_and_are_added(leading, T, half, base, start):
    d = 2 * half
    wanted = plain_sinusoids(0, start + T, d, base)
    torch.testing.assert_close(sinusoidal_positions(start + T, d, base=base, dtype=F64), wanted)
    module, x = SinusoidalPositions(d, base=base), torch.randn(*leading, T, d, dtype=F64)
    torch.testing.assert_close(module(x, start=start), x + wanted[start:])
    assert torch.equal(module(x), module(x, start=0))
    assert not list(module.parameters()) and not module.state_dict()
    assert sinusoidal_positions(1, d).dtype == torch.float32


@given(LEADING, st.integers(1, 4), PAIRS, st.integers(0, 3))
def test_learned_ones_are_added_and_learn_only_where_a_token_stood(leading, T, half, start):
    module = LearnedPositions(7, 2 * half, std=0.5, dtype=F64)
    x = torch.randn(*leading, T, 2 * half, dtype=F64)
    torch.testing.assert_close(module(x, start=start), x + module.weight[start : start + T])
    assert torch.equal(module(x), module(x, start=0))
    module(x, start=start).sum().backward()
    wanted = torch.zeros_like(module.weight)
    wanted[start : start + T] = math.prod(leading)
    assert torch.equal(module.weight.grad, wanted)


def test_where_learning_begins():
    module = LearnedPositions(50, 40, std=0.5)
    before = module.weight.clone()
    assert before.std().item() == pytest.approx(0.5, rel=0.1)
    module.reset_parameters()
    assert not torch.equal(module.weight, before)
    assert module.weight.std().item() == pytest.approx(0.5, rel=0.1)
    assert LearnedPositions(50, 40).weight.std().item() == pytest.approx(0.02, rel=0.1)
    there = LearnedPositions(5, 4, device="meta", dtype=torch.bfloat16).weight
    assert there.is_meta and there.dtype == torch.bfloat16


@given(LEADING, st.integers(1, 5), PAIRS, STARTS, st.booleans(), BASES)
def test_each_pair_is_a_complex_number_that_turns(leading, T, half, start, neighbors, base):
    x = torch.randn(*leading, T, 2 * half, dtype=F64, requires_grad=True)
    turn = RotaryPositions(base=base, interleaved=neighbors)
    turned = turn(x, start=start)
    assert torch.equal(turn(x), turn(x, start=0))
    rows = [
        [turned_by_hand(row, start + i, base, neighbors) for i, row in enumerate(rows)]
        for rows in x.reshape(-1, T, 2 * half).tolist()
    ]
    torch.testing.assert_close(turned, torch.tensor(rows, dtype=F64).view_as(x))
    (gradient,) = torch.autograd.grad(turned.square().sum() / 2, x)
    torch.testing.assert_close(gradient, x)  # lengths stay


def test_far_positions_are_exact_in_half_precision():
    far = sinusoidal_positions(5000, 8, dtype=torch.float16)[4097]
    near = sinusoidal_positions(5000, 8, dtype=F64)[4097]
    assert far.dtype == torch.float16 and (far.double() - near).abs().max() < 1e-3
    x = torch.ones(1, 2, 8, dtype=torch.bfloat16)
    turned = RotaryPositions()(x, start=4096)
    assert turned.dtype == torch.bfloat16
    wanted = RotaryPositions()(x.double(), start=4096)
    assert (turned.double() - wanted).abs().max() < 0.02
    assert (turned[:, 0] - turned[:, 1]).abs().max() > 0.5


@pytest.mark.parametrize("kv_heads", [2, 1])
def test_in_attention_only_distances_count(kv_heads):
    """Which is why tokens after padding get the answer that they get alone."""
    module = make_module(8, 2, num_kv_heads=kv_heads, rotary=RotaryPositions())
    x, padding = torch.randn(1, 6, 8, dtype=F64), torch.randn(1, 3, 8, dtype=F64)
    real = torch.tensor([[False] * 3 + [True] * 6])
    alone, _ = module(x)
    behind, _ = module(torch.cat([padding, x], dim=1), key_mask=real)
    torch.testing.assert_close(behind[:, 3:], alone)
    order = torch.tensor([3, 0, 4, 1, 2, 5])
    assert not torch.allclose(module(x[:, order])[0], alone[:, order])


def test_turning_has_no_weights_is_copied_and_says_its_base():
    plain, turned = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2, rotary=RotaryPositions())
    assert plain.state_dict().keys() == turned.state_dict().keys()
    x = torch.randn(1, 4, 8)
    assert torch.equal(copy.deepcopy(turned)(x)[0], turned(x)[0])
    assert "base=10000, interleaved=True" in repr(turned)
    assert "base=10000" in repr(SinusoidalPositions(4)) and "th=7" in repr(LearnedPositions(7, 4))


def test_alibi_is_a_slope_times_the_distance():
    for h, T in ((8, 5), (2, 7)):
        slopes = [2 ** (-8 * (head + 1) / h) for head in range(h)]
        wanted = [[[-s * abs(i - j) for j in range(T)] for i in range(T)] for s in slopes]
        found = alibi_bias(h, T, dtype=F64)
        torch.testing.assert_close(found, torch.tensor(wanted, dtype=F64)[None])


def turn(*shape, start=0, **options):
    return lambda: RotaryPositions(**options)(torch.ones(shape), start=start)


def add(*shape):
    return lambda: SinusoidalPositions(4)(torch.ones(shape))


def learned(*shape, length=5, start=0, dtype=None, **options):
    x = torch.ones(1, *shape, dtype=dtype)
    return lambda: LearnedPositions(length, 4, **options)(x, start=start)


REFUSED = [
    ("d_model .* even.* got 5", lambda: sinusoidal_positions(3, 5)),
    ("length", lambda: sinusoidal_positions(0, 4)),
    ("d_model", lambda: SinusoidalPositions("8")),
    ("base", lambda: SinusoidalPositions(8, base=0)),
    ("base", turn(2, 4, base=math.inf)),
    ("interleaved", turn(2, 4, interleaved=1)),
    ("d_k must be even", turn(2, 3)),
    ("x must have shape", turn(4)),
    ("x must .* token", turn(0, 4)),
    ("x .*int32", lambda: RotaryPositions()(torch.ones(2, 4).int())),
    ("start", turn(2, 4, start=-1)),
    ("x must end in d_model=4", add(2, 6)),
    (r"x must have shape \[B, T, d\]", add(4)),
    (r"5 positions.* 4 .* 2\b", learned(4, 4, start=2)),
    ("std", learned(2, 4, std=-1)),
    ("length", learned(2, 4, length=0)),
    ("x .*float64", learned(2, 4, dtype=F64)),
    ("num_heads", lambda: alibi_bias(0, 3)),
    ("T", lambda: alibi_bias(2, 0)),
    ("dtype", lambda: alibi_bias(2, 3, dtype=torch.int32)),
]


@pytest.mark.parametrize(("named", "call"), REFUSED)
def test_what_does_not_fit_is_refused(named, call):
    with pytest.raises((TypeError, ValueError), match=named):
        call()
