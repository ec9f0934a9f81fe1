"""Attentions that `diagnose` was once wrong about, or of no help with, retold in short."""

import torch
from torch import nn

from tools.broken_attentions import Plain
from tools.public_attentions import Usual


class OfPatches(Plain):
    """Attention of MobileViT: tokens [B, p, n, d], and what einops says of others."""

    def forward(self, x):
        if x.dim() != 4:
            raise RuntimeError("Wrong shape: expected 4 dims. Received 3-dim tensor.")
        return self.attend(x.flatten(0, 1))[0].view_as(x)


class WithoutABatch(Plain):
    """A student's: tokens [T, d]."""

    def forward(self, x):
        _, _ = x.shape  # else a ValueError
        output, weights = self.attend(x[None])
        return output[0], weights[0]


class JoinsBoth(Plain):
    """Attention of XCiT in vit-pytorch: keys of x and of the context."""

    def forward(self, x, context=None):
        return self.attend(x, x if context is None else torch.cat([x, context], 1))[0]


class ChannelAttention(Plain):
    """ChannelAttention of DaViT: channels look at channels."""

    def forward(self, x):
        q, k, v = (self.split(linear(x)) for linear in (self.W_q, self.W_k, self.W_v))
        weights = (q.mT @ k / self.d_k**0.5).softmax(-1)
        return self.W_o((v @ weights.mT).transpose(1, 2).flatten(2))


class HeadsOfItsOwn(Usual):
    """DetrSelfAttention: its own number of heads isn't that of its config, and isn't kept."""

    layers = "q_proj k_proj v_proj o_proj"

    def __init__(self, config, hidden_size, num_attention_heads):
        self.make(hidden_size, num_attention_heads)
        self.config, self.head_dim = config, hidden_size // num_attention_heads
        del self.num_heads

    def split(self, x):
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class OfFactoryArguments(Plain):
    """Hands all further arguments on to its layers, which take no dropout."""

    def __init__(self, d_model, num_heads, **factory):
        super().__init__(d_model, num_heads)
        self.W_q = nn.Linear(d_model, d_model, **factory)

    def forward(self, query, key=None):
        """Values are made of the keys' tokens."""
        return self.attend(query, key)
