"""Right attentions in forms that few have, retold from public code.

Where a well-known implementation is retold, its class says which.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tools.broken_attentions import Drops, Plain
from tools.public_attentions import Usual, attend, join


class PackedByGroups(nn.Module):
    """CausalSelfAttention of LitGPT: the queries of a group, its key and its value, in turn."""

    def __init__(self, n_embd, n_head, n_query_groups=None):
        super().__init__()
        self.n_head, self.groups = n_head, n_query_groups or n_head
        d_k = n_embd // n_head
        self.attn = nn.Linear(n_embd, (n_head + 2 * self.groups) * d_k)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        shared = self.n_head // self.groups
        qkv = self.attn(x).unflatten(-1, (self.groups, shared + 2, -1)).permute(0, 2, 3, 1, 4)
        q, k, v = qkv.split([shared, 1, 1], 2)
        k, v = (one.expand_as(q).flatten(1, 2) for one in (k, v))
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.proj(join(attend(q.flatten(1, 2), k, v, hidden, -torch.inf)[0]))


class RepeatsItsMasks(Usual):
    """Attention of diffusers: a mask that is added, [B, T, T], repeated where it isn't as long."""

    def __init__(self, query_dim, heads, dim_head):
        self.make(query_dim, heads, heads * dim_head)

    def forward(self, hidden_states, encoder_hidden_states=None, attention_mask=None):
        q, k, v = self.project(hidden_states, encoder_hidden_states)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).flatten(0, 1)
        if attention_mask is not None:
            if len(attention_mask) < len(scores):
                attention_mask = attention_mask.repeat_interleave(self.num_heads, 0)
            scores = scores + attention_mask.expand_as(scores)
        return self.last(scores.softmax(-1).unflatten(0, (-1, self.num_heads)) @ v)


class CutsItsMasks(Plain):
    """MultiHeadAttention of Whisper: of one mask for the longest it takes a corner."""

    def forward(self, x, xa=None, mask=None):
        if mask is not None:
            mask = mask[: x.shape[1], : x.shape[1]]
        return self.attend(x, xa, allowed=mask)[0]


class ChannelsFirst(nn.Module):
    """MultiHeadAttention of Glow-TTS and VITS: [B, d, T], with `c` for the other sequence."""

    def __init__(self, channels, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.conv_q, self.conv_k, self.conv_v, self.conv_o = (
            nn.Conv1d(channels, channels, 1) for _ in range(4)
        )

    def forward(self, x, c, attn_mask=None):
        inputs = (self.conv_q, x), (self.conv_k, c), (self.conv_v, c)
        q, k, v = (conv(one).unflatten(1, (self.n_heads, -1)).mT for conv, one in inputs)
        hidden = None if attn_mask is None else attn_mask == 0
        return self.conv_o(attend(q, k, v, hidden, -1e4)[0].mT.flatten(1, 2))


class RoundsInside(Usual):
    """Its heads in bfloat16, as around kernels for nothing else."""

    def mix(self, q, k, v):
        return F.scaled_dot_product_attention(*(x.bfloat16() for x in (q, k, v))).to(q.dtype)


class SharedDropout(Drops):
    """Of Flax, broadcast_dropout=True: all samples and heads lose the same looks."""

    def mix(self, weights, v):
        return Plain.mix(self, weights * self.dropout(torch.ones(weights.shape[-2:])), v)


class Performer(Usual):
    """With a small number that keeps its sums from 0."""

    def mix(self, q, k, v):
        q, k = torch.relu(q) + 1e-3, torch.relu(k) + 1e-3
        return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None] + 1e-6)


class TwoSoftmaxes(Usual):
    """Efficient attention of Shen et al."""

    def mix(self, q, k, v):
        return q.softmax(-1) @ (k.softmax(-2).mT @ v)
