"""CacheCalculator's Python side: the papers' numbers, its traits, its refusals."""

import pytest
import torch
from tools.refusing import refusals

from attncourse.widgets import CacheCalculator
from attnlib import KVCache, MultiHeadAttention

KIB, MIB, GIB = 2**10, 2**20, 2**30


# What a token leaves, and a whole context, in numbers of 16 bits; how wide the heads are together.
@pytest.mark.parametrize(
    ("name", "per_token", "in_all", "width"),
    [
        ("GPT-2 small", 36 * KIB, 36 * MIB, 768),
        ("GPT-3 175B", 4.5 * MIB, 9 * GIB, 12_288),
        ("Llama 2 7B", 512 * KIB, 2 * GIB, 4096),
        ("Llama 2 70B", 320 * KIB, 1.25 * GIB, 8192),
        ("Llama 3.1 8B", 128 * KIB, 16 * GIB, 4096),
        ("Falcon 7B", 8 * KIB, 16 * MIB, 4544),
        ("DeepSeek-V2", 2 * 34_560, 2 * 34_560 * 128 * KIB, 128 * 128),
    ],
)
def test_a_models_numbers_are_the_published_ones(name, per_token, in_all, width):
    calculator = CacheCalculator(name)
    assert (calculator.bytes_per_token, calculator.bytes_in_all) == (per_token, in_all)
    assert calculator.heads[0] * calculator.d_k == width


def test_what_sharing_saves_is_what_the_papers_say():
    assert CacheCalculator("Llama 2 70B", num_kv_heads=64).bytes_in_all == 10 * GIB
    assert CacheCalculator("Llama 2 70B", num_kv_heads=1).bytes_per_token == 40 * KIB
    alone = CacheCalculator("DeepSeek-V2", latent=(), bytes_per_number=1)
    assert alone.bytes_per_token == 1_966_080


def test_the_formula_counts_what_a_cache_holds():
    module, cache = MultiHeadAttention(16, num_heads=4, num_kv_heads=2), KVCache()
    module(torch.randn(3, 5, 16), causal=True, cache=cache)
    held = sum(tensor.numel() * tensor.element_size() for tensor in (cache.keys, cache.values))
    sizes = {"num_heads": 4, "num_kv_heads": 2, "d_k": 4, "tokens": 5, "sequences": 3}
    calculator = CacheCalculator(layers=2, **sizes, bytes_per_number=4)
    assert calculator.bytes_in_all == 2 * held


def test_what_is_given_goes_before_a_models_numbers():
    own = CacheCalculator("Llama 2 7B", num_heads=8, latent=[64, 0], memory=80)
    assert (own.layers, own.heads, own.d_k, own.latent) == (32, [8, 8], 128, [64, 0])
    assert (own.tokens, own.sequences, own.memory) == (4096, 1, 80)


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        CacheCalculator: {
            "layers": [2.0], "num_heads": ["8"], "latent": [512], "memory": ["24 GiB"],
        },
    },
    ValueError: {
        CacheCalculator: {
            "model": ["GPT-5"], "layers": [0, 200], "num_heads": [256], "num_kv_heads": [5],
            "d_k": [1024], "latent": [[512], (4096, 64), (512, 600)], "tokens": [2_000_000],
            "sequences": [500], "bytes_per_number": [8], "memory": [2048],
        },
    },
})  # fmt: skip
