"""CacheCalculator's Python side: the papers' numbers, its traits, its refusals."""

import pytest
import torch
from tools.refusing import refusals

from attncourse.widgets import CacheCalculator
from attncourse.widgets.cache_calculator.widget import MODELS
from attnlib import KVCache, MultiHeadAttention

KIB, MIB, GIB = 2**10, 2**20, 2**30
NAMES = [model.name for model in MODELS]

# What a token leaves, and a whole context, in numbers of 16 bits; how wide the heads are together.
PUBLISHED = {
    "GPT-2 small": (36 * KIB, 36 * MIB, 768),
    "GPT-3 175B": (4.5 * MIB, 9 * GIB, 12_288),
    "Llama 2 7B": (512 * KIB, 2 * GIB, 4096),
    "Llama 2 70B": (320 * KIB, 1.25 * GIB, 8192),
    "Llama 3.1 8B": (128 * KIB, 16 * GIB, 4096),
    "Falcon 7B": (8 * KIB, 16 * MIB, 4544),
    "DeepSeek-V2": (2 * 34_560, 2 * 34_560 * 128 * KIB, 128 * 128),
}


def state(widget):
    names = ("layers", "heads", "d_k", "latent", "tokens", "sequences", "bytes_per_number")
    return tuple(getattr(widget, name) for name in (*names, "memory"))


@pytest.mark.parametrize("name", NAMES)
def test_a_models_numbers_are_the_published_ones(name):
    calculator = CacheCalculator(name)
    width = calculator.heads[0] * calculator.d_k
    assert (calculator.bytes_per_token, calculator.bytes_in_all, width) == PUBLISHED[name]


def test_what_sharing_saves_is_what_the_papers_say():
    assert CacheCalculator("Llama 2 70B", num_kv_heads=64).bytes_in_all == 10 * GIB
    assert CacheCalculator("Llama 2 70B", num_kv_heads=1).bytes_per_token == 40 * KIB
    alone = CacheCalculator("DeepSeek-V2", latent=(), bytes_per_number=1)
    assert alone.bytes_per_token == 1_966_080


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_the_formula_counts_what_a_cache_holds(num_kv_heads):
    B, T, layers = 3, 5, 2
    module = MultiHeadAttention(16, num_heads=4, num_kv_heads=num_kv_heads)
    cache = KVCache()
    module(torch.randn(B, T, 16), causal=True, cache=cache)
    held = sum(tensor.numel() * tensor.element_size() for tensor in (cache.keys, cache.values))
    calculator = CacheCalculator(
        layers=layers, num_heads=4, num_kv_heads=num_kv_heads, d_k=4, tokens=T, sequences=B,
        bytes_per_number=4,
    )  # fmt: skip
    assert calculator.bytes_in_all == layers * held


def test_it_starts_as_told():
    assert state(CacheCalculator()) == (12, [12, 12], 64, [], 1024, 1, 2, 24)
    own = CacheCalculator(
        "Llama 2 7B", num_heads=8, d_k=16, tokens=100, sequences=4, bytes_per_number=1, memory=80
    )
    assert state(own) == (32, [8, 8], 16, [], 100, 4, 1, 80)
    latent = CacheCalculator(layers=3, num_heads=4, num_kv_heads=2, latent=[64, 0])
    assert state(latent)[:4] == (3, [4, 2], 64, [64, 0])


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            CacheCalculator: {
                "layers": [2.0], "num_heads": ["8"], "latent": [512], "memory": ["24 GiB"],
            },
        },
        ValueError: {
            CacheCalculator: {
                "model": ["GPT-5"], "layers": [0, 200], "num_heads": [256], "num_kv_heads": [5, 24],
                "d_k": [1024], "latent": [[512], (4096, 64), (512, 600)], "tokens": [2_000_000],
                "sequences": [500], "bytes_per_number": [8], "memory": [2048],
            },
        },
    }
)  # fmt: skip
