"""Attentions as public code writes them, retold: their names, calls, masks and layouts.

Each is right in what its authors promise. Where a well-known implementation is retold, its class
says which.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attndoctor.museum.known_modules import CausalSelfAttention
from attnlib.functional import merge_heads as join
from attnlib.functional import split_heads as split
from tools.broken_attentions import but


def attend(q, k, v, hidden=None, fill=-1e9):
    """Heads' outputs [B, h, T, d_k] and weights; `hidden` broadcasts to the scores."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, fill)
    weights = scores.softmax(-1)
    return weights @ v, weights


def zeros_of(mask):
    return None if mask is None else mask == 0


class Usual(nn.Module):
    """Self-attention in steps, for others to change their names, or one step."""

    layers = "to_q to_k to_v to_out"  # or three, whose second makes keys and values; or two
    bias = True, True  # of all but the last, of the last

    def __init__(self, dim, heads):
        self.make(dim, heads)

    def make(self, d, num_heads, inner=None):
        super().__init__()
        self.num_heads, inner = num_heads, inner or d
        for name, width in self.wide():
            self.add_module(name, nn.Linear(d, width * inner, bias=self.bias[0]))
        self.add_module(self.layers.split()[-1], nn.Linear(inner, d, bias=self.bias[1]))

    def wide(self):
        *names, _ = self.layers.split()
        return [*zip(names, ((), (3,), (1, 2), (1, 1, 1))[len(names)], strict=True)]

    def forward(self, x):
        return self.last(self.mix(*self.project(x)))

    def ask(self, query, key=None, value=None, hidden=None, fill=-1e9):
        heads, weights = attend(*self.project(query, key, value), hidden, fill)
        return self.last(heads), weights

    def project(self, query, key=None, value=None):
        key = query if key is None else key
        tokens = query, key, key if value is None else value
        wide = zip(self.wide(), tokens, strict=False)
        parts = ((self.get_submodule(name)(x), width) for (name, width), x in wide)
        return [self.split(part) for x, width in parts for part in x.chunk(width, -1)]

    def split(self, x):
        return split(x, self.num_heads)

    def mix(self, q, k, v):
        return attend(q, k, v)[0]

    def last(self, heads):
        return self.get_submodule(self.layers.split()[-1])(self.join(heads))

    def join(self, heads):
        return join(heads)


class NanoGPTExplicit(CausalSelfAttention):
    """nanoGPT without the fused kernel, with its buffer for a triangle."""

    def __init__(self, config):
        super().__init__(config)
        self.attn_dropout = nn.Dropout(config.dropout)
        ones = torch.ones(config.block_size, config.block_size)
        self.register_buffer("bias", torch.tril(ones)[None, None])

    def attend(self, q, k, v):
        T = q.size(-2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return self.attn_dropout(F.softmax(att, dim=-1)) @ v


# MultiHeadAttention of hyunwoongko's transformer: masks [B, 1, T, T].
WithMasksOfFourAxes = but(Usual, layers="w_q w_k w_v w_concat",
    __init__=lambda self, d_model, n_head: self.make(d_model, n_head),
    forward=lambda self, q, k, v, mask=None:
    self.ask(q, k, v, zeros_of(mask), -10000)[0])  # fmt: skip


class OneHead(nn.Module):
    """Head of Karpathy's "Let's build GPT" lecture."""

    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key, self.query, self.value = (
            nn.Linear(n_embd, head_size, bias=False) for _ in range(3)
        )
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        scores = self.query(x) @ self.key(x).transpose(-2, -1) * self.key.out_features**-0.5
        scores = scores.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return self.dropout(F.softmax(scores, dim=-1)) @ self.value(x)


class ListOfHeads(nn.Module):
    """MultiHeadAttention of the same lecture."""

    def __init__(self, n_embd, num_heads, head_size, block_size, dropout=0.2):
        super().__init__()
        heads = (OneHead(n_embd, head_size, block_size, dropout) for _ in range(num_heads))
        self.heads = nn.ModuleList(heads)
        self.proj = nn.Linear(head_size * num_heads, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.proj(torch.cat([head(x) for head in self.heads], dim=-1)))


# SelfAttention(values, keys, query, mask) of a popular video, with matrices of full width.
ValuesFirst = but(Usual, layers="queries keys values fc_out",
    __init__=lambda self, embed_size, heads: self.make(embed_size, heads),
    forward=lambda self, values, keys, query, mask:
    self.ask(query, keys, values, zeros_of(mask), -1e20)[0])  # fmt: skip


class Timm(Usual):
    """Attention of timm's vision transformers: packed by blocks, plain SDPA."""

    layers, bias = "qkv proj", (False, True)

    def __init__(self, dim, num_heads=8, qkv_bias=False, attn_drop=0.0):
        self.make(dim, num_heads)
        self.attn_drop = nn.Dropout(attn_drop)

    def forward(self, x, attn_mask=None):
        dropout = self.attn_drop.p if self.training else 0.0
        heads = F.scaled_dot_product_attention(*self.project(x), attn_mask, dropout)
        return self.last(heads)


class PackedByHeads(Usual):
    """MultiheadAttention of the UvA's deep learning notebooks: [q, k, v] of each head in turn."""

    layers = "qkv_proj o_proj"

    def __init__(self, embed_dim, num_heads):
        self.make(embed_dim, num_heads)

    def forward(self, x, mask=None, return_attention=False):
        output, weights = self.ask(x, hidden=zeros_of(mask), fill=-9e15)
        return (output, weights) if return_attention else output

    def project(self, x, *_):
        return self.split(self.qkv_proj(x)).chunk(3, -1)


class WithNumbersForAMask(Usual):
    """BERT's oldest way: (1 - mask) * -10000, for a mask of ones and zeros that isn't boolean."""

    layers = "query key value dense"

    def forward(self, hidden_states, attention_mask):
        q, k, v = self.project(hidden_states)
        scores = q @ k.mT / math.sqrt(q.shape[-1]) + (1.0 - attention_mask) * -10000.0
        return self.last(scores.softmax(-1) @ v)


class WithCrossAttention(Usual):
    """Attention(x, context=None) of many diffusion models: `to_q`, and `to_kv` of the context."""

    layers, bias = "to_q to_kv to_out", (False, True)

    def __init__(self, dim, heads=8, dim_head=64):
        self.make(dim, heads, heads * dim_head)
        self.to_out = nn.Sequential(self.to_out, nn.Dropout(0.0))

    def forward(self, x, context=None, mask=None):
        hidden = None if mask is None else ~mask
        return self.ask(x, context, None, hidden, -torch.finfo(x.dtype).max)[0]


class RotaryInside(Usual):
    """An attention that turns queries and keys by position, and can't be asked without."""

    layers, bias = "wq wk wv wo", (False, False)

    def __init__(self, dim, n_heads):
        self.make(dim, n_heads)
        steps = torch.arange(0, dim // n_heads, 2) / (dim // n_heads)
        self.register_buffer("inv_freq", 10000.0**-steps)

    def turn(self, x):
        angles = torch.arange(x.shape[-2])[:, None] * self.inv_freq
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def mix(self, q, k, v):
        return attend(self.turn(q), self.turn(k), v)[0]


class Torchscale(Usual):
    """Masks of one kind only: [T, T], added; and padding that is True where it hides."""

    layers = "q_proj k_proj v_proj out_proj"

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q, k, v = self.project(query, key, value)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).flatten(0, 1)
        if attn_mask is not None:
            scores = scores + attn_mask.unsqueeze(0)
        scores = scores.unflatten(0, (-1, self.num_heads))
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None], float("-inf"))
        weights = scores.softmax(-1)
        return self.last(weights @ v), weights


# AttentionLayer of many forecasters, with its names made of the usual words; values first.
InOtherWords = but(Usual, layers="WQ keysLayer value_projection final_linear_layer",
    __init__=lambda self, n_feat, heads_count: self.make(n_feat, heads_count),
    forward=lambda self, queries, keys, values: self.ask(queries, keys, values)[0])  # fmt: skip

# A vision transformer of a blog: "b n (h d qkv) -> (qkv) b h n d".
PackedByNumbers = but(Usual, layers="qkv projection",
    __init__=lambda self, emb_size, num_heads: self.make(emb_size, num_heads),
    project=lambda self, x:
    self.qkv(x).unflatten(-1, (self.num_heads, -1, 3)).permute(4, 0, 2, 1, 3))  # fmt: skip

# Attention of a tiny vision transformer: one matrix is wide, the other isn't.
NamesThatSayNothing = but(Usual, layers="W fc", bias=(False, False),
    __init__=lambda self, dim, num_heads: self.make(dim, num_heads))  # fmt: skip


class ShowsItsScores(Usual):
    """MultiHeadAttention of Whisper: scores beside the output, an added mask, no bias in W_k."""

    layers = "query key value out"

    def __init__(self, n_state, n_head):
        self.make(n_state, n_head)
        self.key = nn.Linear(n_state, n_state, bias=False)

    def forward(self, x, xa=None, mask=None):
        q, k, v = self.project(x, xa)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores + mask
        return self.last(scores.softmax(-1) @ v), scores.detach()


class HeadsBeforeSamples(Usual):
    """MultiHeadAttention of a speech transformer: weights [h B, T, T], and True hides."""

    layers = "w_qs w_ks w_vs fc"

    def __init__(self, n_head, d_model):
        self.make(d_model, n_head)

    def forward(self, q, k, v, mask=None):
        hidden = None if mask is None else mask.repeat(self.num_heads, 1, 1)
        return self.ask(q, k, v, hidden, float("-inf"))

    def split(self, x):
        return torch.cat(x.chunk(self.num_heads, -1))

    def join(self, heads):
        return torch.cat(heads.chunk(self.num_heads), -1)


class WithAConvolution(NamesThatSayNothing):
    """MUSEAttention, in short: a convolution of the tokens beside attention."""

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)

    def forward(self, x):
        return super().forward(x) + self.conv(x.mT).mT


# Class_Attention of CaiT: the first token is the only query.
OfTheClassToken = but(Usual, layers="q k v proj",
    forward=lambda self, x: self.ask(x[:, :1], x)[0])  # fmt: skip


class BareLayers(nn.Module):
    """Of a hundred tutorials: parameters without layers, as PyTorch's layers store them."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        for name in "qkvo":
            self.register_parameter(f"w{name}", nn.Parameter(torch.randn(dim, dim)))
            self.register_parameter(f"b{name}", nn.Parameter(torch.zeros(dim)))

    def forward(self, x):
        q, k, v = (split(self.project(x, name), self.heads) for name in "qkv")
        return self.project(join(self.mix(q, k, v)), "o")

    def project(self, x, name):
        return F.linear(x, self.get_parameter(f"w{name}"), self.get_parameter(f"b{name}"))

    def mix(self, q, k, v):
        return attend(q, k, v)[0]


# The same, used as x @ W + b.
BareMatrices = but(BareLayers, project=lambda self, x, name:
    x @ self.get_parameter(f"w{name}") + self.get_parameter(f"b{name}"))  # fmt: skip


class PerHead(nn.Module):
    """Attention of TransformerLens, in short: matrices [h, d, d_k], always causal."""

    def __init__(self, d_model, n_heads, d_head):
        super().__init__()
        for name in "QKV":
            matrix = torch.randn(n_heads, d_model, d_head)
            self.register_parameter(f"W_{name}", nn.Parameter(matrix))
            self.register_parameter(f"b_{name}", nn.Parameter(torch.zeros(n_heads, d_head)))
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        q, k, v = (
            torch.einsum("bpd,hde->bhpe", x, self.get_parameter(f"W_{name}"))
            + self.get_parameter(f"b_{name}")[:, None]
            for name in "QKV"
        )
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return torch.einsum("bhpe,hed->bpd", attend(q, k, v, hidden, -1e5)[0], self.W_O) + self.b_O


# One projection for keys, queries and values, in this order.
KeysFirst = but(Usual, layers="kqv proj",
    __init__=lambda self, n_embd, n_head: self.make(n_embd, n_head),
    mix=lambda self, k, q, v: attend(q, k, v)[0])  # fmt: skip


class BiasesApart(NamesThatSayNothing):
    """Attention of BEiT: a packed projection without a bias, and biases of q and v beside it."""

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.q_bias, self.v_bias = (nn.Parameter(torch.zeros(dim)) for _ in range(2))

    def project(self, x):
        bias = torch.cat([self.q_bias, torch.zeros_like(self.q_bias), self.v_bias])
        return [self.split(one) for one in F.linear(x, self.W.weight, bias).chunk(3, -1)]


class WithALinearBias(NamesThatSayNothing):
    """ALiBi, whose slopes are made in forward."""

    def mix(self, q, k, v):
        place = torch.arange(q.shape[2])
        slopes = 2.0 ** -torch.arange(1, self.num_heads + 1)
        bias = -(place[:, None] - place).abs() * slopes[:, None, None]
        return (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v


# "b n (d h) -> b h n d": a head's numbers stand h apart, until they are joined as usual.
HeadsSpreadInside = but(Usual,
    split=lambda self, x: x.unflatten(-1, (-1, self.num_heads)).permute(0, 3, 1, 2))  # fmt: skip

# Both ways.
HeadsSpread = but(HeadsSpreadInside,
    join=lambda self, heads: heads.permute(0, 2, 3, 1).flatten(2))  # fmt: skip

# The self-attention of a tutorial: "b t (d k h) -> k b h t d", and "b h t d -> b t (h d)".
NumbersOfAllHeads = but(Usual, layers="to_qvk W_0", bias=(False, False),
    project=lambda self, x:
    self.to_qvk(x).unflatten(-1, (-1, 3, self.num_heads)).permute(3, 0, 4, 1, 2))  # fmt: skip


class WithAGate(NamesThatSayNothing):
    """With a branch beside it that begins with 0."""

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return super().forward(x) + self.gate * x.cumsum(1)


class InBfloat16(HeadsSpreadInside):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.to(torch.bfloat16)


class ThroughBfloat16(Timm):
    def forward(self, x, attn_mask=None):
        return super().forward(x.to(torch.bfloat16), attn_mask)


# QK-norm by a function: nothing tells of it but what it does.
NormalizedQueries = but(Usual,
    mix=lambda self, q, k, v:
    attend(10 * F.normalize(q, dim=-1), F.normalize(k, dim=-1), v)[0])  # fmt: skip


class NormalizedByLayers(Usual):
    """QK-norm by modules, as in many large models."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.q_norm, self.k_norm = nn.RMSNorm(dim // heads), nn.RMSNorm(dim // heads)

    def mix(self, q, k, v):
        return attend(self.q_norm(q), self.k_norm(k), v)[0]
