"""Whatever is made on the way is made where the inputs are, so that a GPU works as well.

No GPU is needed to see it: inside `torch.device("meta")` every tensor made without saying where
lands on another device than the inputs. There it has no numbers: results come out wrong, if at all.
"""

import pytest
import torch

from attnlib import KVCache, MultiHeadAttention, TransformerBlock, padding_mask
from attnlib.heatmap import attention_heatmap, attention_window

MASK = torch.rand(5, 5, generator=torch.Generator().manual_seed(0)) > 0.4
REAL = padding_mask(torch.tensor([3, 5, 1]), 5)
BIAS = torch.linspace(-1, 1, 100).view(1, 4, 5, 5)
LIMITS = {
    "nothing": {},
    "causal": {"causal": True},
    "mask": {"mask": MASK},
    "key_mask": {"key_mask": REAL},
    "score_bias": {"score_bias": BIAS},
    "all": {"causal": True, "mask": MASK, "key_mask": REAL, "score_bias": BIAS},
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("wanted", [{}, {"need_weights": True}], ids=str)
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("num_kv_heads", [4, 2])
def test_attention_and_its_gradients(num_kv_heads, limits, wanted, training):
    module = MultiHeadAttention(16, 4, num_kv_heads=num_kv_heads).train(training)
    x, head_mask = torch.randn(3, 5, 16, requires_grad=True), torch.ones(3, 4)
    options = LIMITS[limits]

    def everything():
        output, weights = module(x, **options, **wanted, head_mask=head_mask)
        results = [output, module.contributions(x, **options)]
        results += [] if weights is None else [weights]
        results += torch.autograd.grad(sum(r.square().sum() for r in results), [x])
        with torch.no_grad():
            return [*results, module(x, **options, **wanted)[0]]

    with torch.device("meta"):
        found = everything()
    torch.testing.assert_close(found, everything())


def test_a_cache():
    module, x = MultiHeadAttention(16, 4, num_kv_heads=2).eval(), torch.randn(3, 5, 16)
    cache = KVCache()
    with torch.device("meta"):
        parts = [module(chunk, causal=True, cache=cache)[0] for chunk in x.split(2, dim=1)]
    torch.testing.assert_close(torch.cat(parts, 1), module(x, causal=True)[0])


def test_a_block():
    block, x = TransformerBlock(16, 4).eval(), torch.randn(3, 5, 16)
    with torch.device("meta"):
        found, _ = block(x, mask=MASK)
    torch.testing.assert_close(found, block(x, mask=MASK)[0])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("key_mask", [None, padding_mask(torch.tensor([190]), 300)])
def test_heatmaps(causal, key_mask):
    q, k = torch.randn(1, 4, 300, 16), torch.randn(1, 2, 300, 16)
    options = {"causal": causal, "key_mask": key_mask}
    rows, keys = range(3, 90), range(5, 200)
    with torch.device("meta"):
        found = attention_heatmap(q, k, grid=40, **options)
        window = attention_window(q, k, rows, keys, **options)
    expected = attention_heatmap(q, k, grid=40, **options)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(window, attention_window(q, k, rows, keys, **options))
