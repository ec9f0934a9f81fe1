"""CacheCalculator's Python side: the papers' numbers, its traits, its refusals."""

import pytest
import torch

from attncourse.widgets import CacheCalculator
from attncourse.widgets.cache_calculator.widget import MODELS
from attnlib import KVCache, MultiHeadAttention

KIB, MIB, GIB = 2**10, 2**20, 2**30
NAMES = [model.name for model in MODELS]

# What a token leaves, and a whole context, in numbers of 16 bits.
PUBLISHED = {
    "GPT-2 small": (36 * KIB, 36 * MIB),
    "GPT-3 175B": (4.5 * MIB, 9 * GIB),
    "Llama 2 7B": (512 * KIB, 2 * GIB),
    "Llama 2 70B": (320 * KIB, 1.25 * GIB),
    "Llama 3.1 8B": (128 * KIB, 16 * GIB),
    "Falcon 7B": (8 * KIB, 16 * MIB),
    "DeepSeek-V2": (2 * 34_560, 2 * 34_560 * 128 * KIB),
}
# Widths of the models: heads side by side are as wide as the model, but for DeepSeek-V2's.
D_MODEL = {
    "GPT-2 small": 768,
    "GPT-3 175B": 12_288,
    "Llama 2 7B": 4096,
    "Llama 2 70B": 8192,
    "Llama 3.1 8B": 4096,
    "Falcon 7B": 4544,
}


def state(widget):
    names = ("layers", "heads", "d_k", "latent", "tokens", "sequences", "bytes_per_number")
    return tuple(getattr(widget, name) for name in (*names, "memory"))


@pytest.mark.parametrize("name", NAMES)
def test_a_models_numbers_are_the_published_ones(name):
    calculator = CacheCalculator(name)
    assert (calculator.bytes_per_token, calculator.bytes_in_all) == PUBLISHED[name]
    if name in D_MODEL:
        assert calculator.heads[0] * calculator.d_k == D_MODEL[name]


def test_what_sharing_saves_is_what_the_papers_say():
    shared, alone = CacheCalculator("Llama 2 70B"), CacheCalculator("Llama 2 70B", num_kv_heads=64)
    assert alone.bytes_in_all == 10 * GIB == 8 * shared.bytes_in_all
    assert CacheCalculator("Llama 2 70B", num_kv_heads=1).bytes_per_token == 40 * KIB
    # DeepSeek-V2, Table 9: 34.6K numbers per token.
    deepseek = CacheCalculator("DeepSeek-V2", bytes_per_number=1)
    assert round(deepseek.bytes_per_token / 1000, 1) == 34.6
    assert (
        CacheCalculator("DeepSeek-V2", latent=(), bytes_per_number=1).bytes_per_token == 1_966_080
    )


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_the_formula_counts_what_a_cache_holds(num_kv_heads):
    B, T, layers = 3, 5, 2
    module = MultiHeadAttention(16, num_heads=4, num_kv_heads=num_kv_heads)
    cache = KVCache()
    module(torch.randn(B, T, 16), causal=True, cache=cache)
    held = sum(tensor.numel() * tensor.element_size() for tensor in (cache.keys, cache.values))
    calculator = CacheCalculator(
        layers=layers,
        num_heads=4,
        num_kv_heads=num_kv_heads,
        d_k=4,
        tokens=T,
        sequences=B,
        bytes_per_number=4,
    )
    assert calculator.bytes_in_all == layers * held


def test_it_starts_as_told():
    assert state(CacheCalculator()) == (12, [12, 12], 64, [], 1024, 1, 2, 24)
    own = CacheCalculator(
        "Llama 2 7B", num_heads=8, d_k=16, tokens=100, sequences=4, bytes_per_number=1, memory=80
    )
    assert state(own) == (32, [8, 8], 16, [], 100, 4, 1, 80)
    latent = CacheCalculator(layers=3, num_heads=4, num_kv_heads=2, latent=[64, 0])
    assert state(latent)[:4] == (3, [4, 2], 64, [64, 0])


def test_what_a_reader_moves_is_observable():
    widget, seen = CacheCalculator(), []
    widget.observe(lambda change: seen.append((change["name"], change["new"])))
    moves = {"layers": 3, "heads": [8, 2], "d_k": 32, "latent": [128, 16], "tokens": 7}
    moves |= {"sequences": 2, "bytes_per_number": 4, "memory": 80}
    for name, value in moves.items():
        setattr(widget, name, value)
    assert seen == list(moves.items())
    assert set(moves) <= set(widget.keys)  # synced with the browser


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ValueError, r"model must be one of \['GPT-2 small', .* got 'GPT-5'", {"model": "GPT-5"}),
        (TypeError, r"layers must be an int, got float", {"layers": 2.0}),
        (ValueError, "layers must be at least 1, got 0", {"layers": 0}),
        (ValueError, "layers must be from 1 to 128, got 200", {"layers": 200}),
        (TypeError, "num_heads must be an int", {"num_heads": "8"}),
        (ValueError, "num_heads must be from 1 to 128, got 256", {"num_heads": 256}),
        (ValueError, r"num_kv_heads must divide num_heads=12, got 5: .*12\]", {"num_kv_heads": 5}),
        (ValueError, "num_kv_heads must divide num_heads=12, got 24", {"num_kv_heads": 24}),
        (ValueError, "d_k must be from 1 to 512, got 1024", {"d_k": 1024}),
        (TypeError, "latent must be a list, got int", {"latent": 512}),
        (TypeError, "each of latent must be an int, got float", {"latent": [512, 0.5]}),
        (ValueError, r"latent must be empty or \[d_c, d_R\], got \[512\]", {"latent": [512]}),
        (ValueError, "latent's d_c must be from 1 to 2048, got 4096", {"latent": (4096, 64)}),
        (ValueError, "latent's d_R must be from 0 to 512, got 600", {"latent": (512, 600)}),
        (ValueError, "tokens must be from 1 to 1048576, got 2000000", {"tokens": 2_000_000}),
        (ValueError, "sequences must be from 1 to 128, got 500", {"sequences": 500}),
        (ValueError, r"bytes_per_number must be one of \[4, 2, 1\]", {"bytes_per_number": 8}),
        (TypeError, "memory must be an int, got str", {"memory": "24 GiB"}),
        (ValueError, "memory must be from 1 to 1024, got 2048", {"memory": 2048}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, options):
    with pytest.raises(error, match=message):
        CacheCalculator(**options)


def test_repr_says_what_is_shown():
    assert repr(CacheCalculator()) == (
        "CacheCalculator(layers=12, heads=[12, 12], d_k=64, tokens=1024: 37748736 bytes)"
    )
    assert "latent=[512, 64]" in repr(CacheCalculator("DeepSeek-V2"))
