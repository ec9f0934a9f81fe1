"""attnlib: attention and its pictures. The whole course computes with it.

`import attnlib` needs PyTorch alone. `attnlib.plotting` needs matplotlib; `attnlib.interop` reads
the weights of other libraries.
"""

from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward, TransformerBlock
from attnlib.cache import KVCache
from attnlib.functional import merge_heads, scaled_dot_product_attention, split_heads
from attnlib.masks import causal_mask, padding_mask
from attnlib.norms import LayerNorm, RMSNorm

__all__ = [
    "FeedForward",
    "KVCache",
    "LayerNorm",
    "MultiHeadAttention",
    "RMSNorm",
    "TransformerBlock",
    "causal_mask",
    "merge_heads",
    "padding_mask",
    "scaled_dot_product_attention",
    "split_heads",
]
