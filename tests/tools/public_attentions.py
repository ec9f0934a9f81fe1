"""Attentions as public code writes them, retold: their names, calls, masks and layouts.

Each is right in what its authors promise. Where a well-known implementation is retold, its class
says which.
"""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from attndoctor.museum.visitors import CausalSelfAttention


def attend(q, k, v, hidden=None, fill=-1e9):
    """Heads' outputs [B, h, T, d_k] and weights; `hidden` broadcasts to the scores."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, fill)
    weights = scores.softmax(-1)
    return weights @ v, weights


def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def in_heads(num_heads, *projected):
    return [split(x, num_heads) for x in projected]


def join(heads):
    return heads.transpose(1, 2).flatten(2)


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


class NanoGPTWithoutBias(CausalSelfAttention):
    def __init__(self, d_model, num_heads):
        names = {"n_embd": d_model, "n_head": num_heads, "block_size": 32}
        super().__init__(SimpleNamespace(**names, dropout=0.0, bias=False))


class WithResidualAndNorm(nn.Module):
    """MultiHeadAttention of jadore801120's transformer: a sub-layer, with its residual and norm."""

    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, q, k, v, mask=None):
        residual = q
        q, k, v = in_heads(self.n_head, self.w_qs(q), self.w_ks(k), self.w_vs(v))
        hidden = None if mask is None else mask.unsqueeze(1) == 0
        heads, weights = attend(q, k, v, hidden)
        return self.layer_norm(self.dropout(self.fc(join(heads))) + residual), weights


class WithMasksOfFourAxes(nn.Module):
    """MultiHeadAttention of hyunwoongko's transformer: masks [B, 1, T, T]."""

    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head = n_head
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.w_concat = nn.Linear(d_model, d_model)

    def forward(self, q, k, v, mask=None):
        q, k, v = in_heads(self.n_head, self.w_q(q), self.w_k(k), self.w_v(v))
        heads, _ = attend(q, k, v, None if mask is None else mask == 0, -10000)
        return self.w_concat(join(heads))


class WithContextLength(nn.Module):
    """MultiHeadAttention of rasbt's "LLMs from scratch": causal by a buffer, no qkv biases."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length)
        self.register_buffer("mask", torch.triu(ones, diagonal=1))

    def forward(self, x):
        T = x.shape[1]
        q, k, v = in_heads(self.num_heads, self.W_query(x), self.W_key(x), self.W_value(x))
        scores = q @ k.transpose(2, 3)
        scores.masked_fill_(self.mask.bool()[:T, :T], -torch.inf)
        weights = self.dropout(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1))
        return self.out_proj(join(weights @ v))


class OneHead(nn.Module):
    """Head of Karpathy's "Let's build GPT" lecture."""

    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        k, q = self.key(x), self.query(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
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


class ValuesFirst(nn.Module):
    """SelfAttention(values, keys, query, mask) of a popular video, with matrices of full width."""

    def __init__(self, embed_size, heads):
        super().__init__()
        self.heads = heads
        self.values, self.keys, self.queries = (nn.Linear(embed_size, embed_size) for _ in range(3))
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query, mask):
        q, k, v = (
            linear(x).unflatten(-1, (self.heads, -1))
            for linear, x in ((self.queries, query), (self.keys, keys), (self.values, values))
        )
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        attention = torch.softmax(energy / q.shape[-1] ** 0.5, dim=3)
        return self.fc_out(torch.einsum("nhql,nlhd->nqhd", attention, v).flatten(2))


class Timm(nn.Module):
    """Attention of timm's vision transformers: packed by blocks, plain SDPA."""

    def __init__(self, dim, num_heads=8, qkv_bias=False, attn_drop=0.0, proj_drop=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.q_norm, self.k_norm = nn.Identity(), nn.Identity()
        self.attn_drop, self.proj_drop = nn.Dropout(attn_drop), nn.Dropout(proj_drop)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, attn_mask=None):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        dropout = self.attn_drop.p if self.training else 0.0
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout)
        return self.proj_drop(self.proj(heads.transpose(1, 2).reshape(B, N, C)))


class VitPytorch(nn.Module):
    """Attention of lucidrains' vit-pytorch: a norm before, no biases, `to_qkv` and `to_out`."""

    def __init__(self, dim, heads=8, dim_head=64, dropout=0.0):
        super().__init__()
        inner = dim_head * heads
        self.heads, self.scale = heads, dim_head**-0.5
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = in_heads(self.heads, *self.to_qkv(self.norm(x)).chunk(3, dim=-1))
        weights = self.dropout((q @ k.transpose(-1, -2) * self.scale).softmax(-1))
        return self.to_out(join(weights @ v))


class PackedByHeads(nn.Module):
    """MultiheadAttention of the UvA's deep learning notebooks: [q, k, v] of each head in turn."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj, self.o_proj = (
            nn.Linear(embed_dim, 3 * embed_dim),
            nn.Linear(*[embed_dim] * 2),
        )

    def forward(self, x, mask=None, return_attention=False):
        qkv = self.qkv_proj(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        heads, weights = attend(*qkv.chunk(3, dim=-1), None if mask is None else mask == 0, -9e15)
        output = self.o_proj(join(heads))
        return (output, weights) if return_attention else output


class PackedByNumbers(nn.Module):
    """A vision transformer of a blog: "b n (h d qkv) -> (qkv) b h n d"."""

    def __init__(self, emb_size, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.att_drop = nn.Linear(emb_size, emb_size * 3), nn.Dropout(dropout)
        self.projection = nn.Linear(emb_size, emb_size)

    def forward(self, x, mask=None):
        qkv = self.qkv(x).unflatten(-1, (self.num_heads, -1, 3)).permute(4, 0, 2, 1, 3)
        q, k, v = qkv
        energy = q @ k.mT
        if mask is not None:
            energy = energy.masked_fill(~mask, torch.finfo(torch.float32).min)
        weights = self.att_drop((energy / q.shape[-1] ** 0.5).softmax(-1))
        return self.projection(join(weights @ v))


class WithNumbersForAMask(nn.Module):
    """BERT's oldest way: (1 - mask) * -10000, for a mask of ones and zeros that isn't boolean."""

    def __init__(self, hidden_size, num_attention_heads):
        super().__init__()
        self.h = num_attention_heads
        self.query, self.key, self.value = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states, attention_mask):
        q, k, v = (
            linear(hidden_states).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1]) + (1.0 - attention_mask) * -10000.0
        return self.dense(join(scores.softmax(-1) @ v))


class WithCrossAttention(nn.Module):
    """Attention(x, context=None) of many diffusion models: `to_q`, and `to_kv` of the context."""

    def __init__(self, dim, heads=8, dim_head=64):
        super().__init__()
        self.heads, inner = heads, heads * dim_head
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, inner * 2, bias=False)
        self.to_out = nn.Linear(inner, dim)

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        q, k, v = in_heads(self.heads, self.to_q(x), *self.to_kv(context).chunk(2, dim=-1))
        heads, _ = attend(q, k, v, None if mask is None else ~mask, -torch.finfo(q.dtype).max)
        return self.to_out(join(heads))


class GroupedQueries(nn.Module):
    """Grouped queries on plain SDPA, as torchtune and many others have it."""

    def __init__(self, embed_dim, num_heads, num_kv_heads, attn_dropout=0.0):
        super().__init__()
        self.num_heads, self.num_kv_heads, d_k = num_heads, num_kv_heads, embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = nn.Linear(embed_dim, num_kv_heads * d_k, bias=False)
        self.v_proj = nn.Linear(embed_dim, num_kv_heads * d_k, bias=False)
        self.output_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.attn_dropout = attn_dropout

    def forward(self, x, mask=None):
        q = self.q_proj(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        groups = self.num_heads // self.num_kv_heads
        k, v = (
            linear(x).unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
            .repeat_interleave(groups, 1)
            for linear in (self.k_proj, self.v_proj)
        )  # fmt: skip
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]
        dropout = self.attn_dropout if self.training else 0.0
        return self.output_proj(join(F.scaled_dot_product_attention(q, k, v, mask, dropout)))


class RotaryInside(nn.Module):
    """An attention that turns queries and keys by position, and can't be asked without."""

    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        steps = torch.arange(0, dim // n_heads, 2) / (dim // n_heads)
        self.register_buffer("inv_freq", 10000.0**-steps)

    def turn(self, x):
        angles = torch.arange(x.shape[-2])[:, None] * self.inv_freq
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def forward(self, x):
        q, k, v = in_heads(self.n_heads, self.wq(x), self.wk(x), self.wv(x))
        return self.wo(join(attend(self.turn(q), self.turn(k), v)[0]))


class Torchscale(nn.Module):
    """Masks of one kind only: [T, T], added; and padding that is True where it hides."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(embed_dim, embed_dim) for _ in range(4)
        )

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q, k, v = (
            linear(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1)
            for linear, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if attn_mask is not None:
            scores = scores + attn_mask.unsqueeze(0)
        scores = scores.unflatten(0, (-1, self.num_heads))
        if key_padding_mask is not None:
            hidden = key_padding_mask[:, None, None].to(torch.bool)
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = scores.softmax(-1)
        return self.out_proj(join(weights @ v.unflatten(0, (-1, self.num_heads)))), weights


class ThreeInAList(nn.Module):
    """MultiHeadedAttention of codertimo's BERT: W_q, W_k and W_v in a list, W_o beside it."""

    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.linear_layers = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(3))
        self.output_linear = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        inputs = zip(self.linear_layers, (query, key, value), strict=True)
        heads, _ = attend(*(split(linear(x), self.h) for linear, x in inputs),
                          None if mask is None else mask == 0)  # fmt: skip
        return self.output_linear(join(heads))


class InOtherWords(nn.Module):
    """AttentionLayer of many forecasters, with its names made of the usual words; values first."""

    def __init__(self, n_feat, heads_count):
        super().__init__()
        self.heads_count = heads_count
        self.value_projection, self.keysLayer = nn.Linear(n_feat, n_feat), nn.Linear(n_feat, n_feat)
        self.WQ, self.final_linear_layer = nn.Linear(n_feat, n_feat), nn.Linear(n_feat, n_feat)

    def forward(self, queries, keys, values):
        heads, _ = attend(*(split(linear(x), self.heads_count) for linear, x in (
            (self.WQ, queries), (self.keysLayer, keys), (self.value_projection, values))
        ))  # fmt: skip
        return self.final_linear_layer(join(heads))


class NamesThatSayNothing(nn.Module):
    """Attention of a tiny vision transformer: one matrix is wide, the other isn't."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads, self.W = num_heads, nn.Linear(dim, 3 * dim, bias=False)
        self.fc = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        return self.fc(join(self.mix(*in_heads(self.num_heads, *self.W(x).chunk(3, -1)))))

    def mix(self, q, k, v):
        return attend(q, k, v)[0]


class ShowsItsScores(nn.Module):
    """MultiHeadAttention of Whisper: scores beside the output, an added mask, no bias in W_k."""

    def __init__(self, n_state, n_head):
        super().__init__()
        self.n_head, self.key = n_head, nn.Linear(n_state, n_state, bias=False)
        self.query, self.value, self.out = (nn.Linear(n_state, n_state) for _ in range(3))

    def forward(self, x, xa=None, mask=None):
        xa = x if xa is None else xa
        q, k, v = in_heads(self.n_head, self.query(x), self.key(xa), self.value(xa))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores + mask
        return self.out(join(scores.softmax(-1) @ v)), scores.detach()


class HeadsBeforeSamples(nn.Module):
    """MultiHeadAttention of a speech transformer: weights [h B, T, T], and True hides."""

    def __init__(self, n_head, d_model):
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks, self.w_vs, self.fc = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            torch.cat(linear(x).chunk(self.n_head, -1))
            for linear, x in ((self.w_qs, q), (self.w_ks, k), (self.w_vs, v))
        )
        hidden = None if mask is None else mask.repeat(self.n_head, 1, 1)
        heads, weights = attend(q, k, v, hidden, float("-inf"))
        return self.fc(torch.cat(heads.chunk(self.n_head), -1)), weights


class PaddingCalledMask(nn.Module):
    """CrossAttention of latent diffusion: its mask is one of keys, [B, T]."""

    def __init__(self, query_dim, context_dim=None, heads=8, dim_head=64):
        super().__init__()
        self.heads, inner = heads, heads * dim_head
        context_dim = context_dim or query_dim
        self.to_q = nn.Linear(query_dim, inner, bias=False)
        self.to_k = nn.Linear(context_dim, inner, bias=False)
        self.to_v = nn.Linear(context_dim, inner, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, query_dim), nn.Dropout(0.0))

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        q, k, v = in_heads(self.heads, self.to_q(x), self.to_k(context), self.to_v(context))
        hidden = None if mask is None else ~mask.reshape(len(x), 1, 1, k.shape[-2])
        return self.to_out(join(attend(q, k, v, hidden)[0]))


class WithAConvolution(NamesThatSayNothing):
    """MUSEAttention, in short: a convolution of the tokens beside attention."""

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)

    def forward(self, x):
        return super().forward(x) + self.conv(x.mT).mT


class MasksOfOtherAxes(ThreeInAList):
    """MultiHeadAttention of labml, in short: masks [T, T, B]."""

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            assert mask.shape[2] == len(query)
            mask = mask.movedim(-1, 0)[:, None]
        return super().forward(query, key, value, mask)


class WithADropoutToTell(ThreeInAList):
    """MultiHeadedAttention of speech toolkits: its dropout has no default."""

    def __init__(self, n_head, n_feat, dropout_rate):
        super().__init__(n_head, n_feat)
        self.dropout_rate = dropout_rate


class OfTheClassToken(nn.Module):
    """Class_Attention of CaiT: the first token is the only query."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.proj = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        q, k, v = in_heads(self.num_heads, self.q(x[:, :1]), self.k(x), self.v(x))
        return self.proj(join(attend(q, k, v)[0]))


class BareMatrices(nn.Module):
    """Of a hundred tutorials: parameters without layers, used as x @ W."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (
            nn.Parameter(torch.randn(d_model, d_model)) for _ in range(4)
        )

    def forward(self, x, mask=None):
        q, k, v = (split(x @ W, self.num_heads) for W in (self.W_q, self.W_k, self.W_v))
        hidden = None if mask is None else ~(mask[:, None] if mask.dim() == 3 else mask)
        return join(attend(q, k, v, hidden)[0]) @ self.W_o


class BareLayers(nn.Module):
    """The same as PyTorch stores them, with biases."""

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
        self.n_heads = n_heads

    def forward(self, x):
        q, k, v = (
            torch.einsum("bpd,hde->bhpe", x, self.get_parameter(f"W_{name}"))
            + self.get_parameter(f"b_{name}")[:, None]
            for name in "QKV"
        )
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return torch.einsum("bhpe,hed->bpd", attend(q, k, v, hidden, -1e5)[0], self.W_O) + self.b_O


class KernelsOfFlax(nn.Module):
    """MultiHeadDotProductAttention of Flax, in PyTorch: kernels [d, h, d_k]."""

    def __init__(self, features, num_heads):
        super().__init__()
        shape = features, num_heads, features // num_heads
        self.query_kernel, self.key_kernel, self.value_kernel = (
            nn.Parameter(torch.randn(shape)) for _ in range(3)
        )
        self.out_kernel = nn.Parameter(torch.randn(*shape[1:], features))

    def forward(self, inputs_q, inputs_kv):
        q, k, v = (
            torch.einsum("btd,dhk->bhtk", x, kernel)
            for x, kernel in (
                (inputs_q, self.query_kernel),
                (inputs_kv, self.key_kernel),
                (inputs_kv, self.value_kernel),
            )
        )
        return torch.einsum("bhtk,hkd->btd", attend(q, k, v)[0], self.out_kernel)


class KeysFirst(nn.Module):
    """One projection for keys, queries and values, in this order."""

    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.kqv, self.proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)

    def forward(self, x):
        k, q, v = (split(one, self.n_head) for one in self.kqv(x).chunk(3, -1))
        return self.proj(join(attend(q, k, v)[0]))


class ValuesFirstOfThree(nn.Module):
    """One tensor of three matrices, [v, k, q]."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads, self.proj = num_heads, nn.Linear(dim, dim)
        self.qkv = nn.Parameter(torch.randn(3, dim, dim))

    def forward(self, x):
        v, k, q = (split(x @ W, self.num_heads) for W in self.qkv)
        return self.proj(join(attend(q, k, v)[0]))


class ListsOfMatrices(nn.Module):
    """A list of bare matrices for each head."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v = (
            nn.ParameterList(torch.randn(d_model, d_model // num_heads) for _ in range(num_heads))
            for _ in range(3)
        )
        self.W_o = nn.Parameter(torch.randn(d_model, d_model))

    def forward(self, x):
        heads = zip(self.W_q, self.W_k, self.W_v, strict=True)
        return torch.cat([attend(x @ q, x @ k, x @ v)[0] for q, k, v in heads], -1) @ self.W_o


class BiasesApart(nn.Module):
    """Attention of BEiT: a packed projection without a bias, and biases of q and v beside it."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.q_bias, self.v_bias = (nn.Parameter(torch.zeros(dim)) for _ in range(2))

    def forward(self, x):
        bias = torch.cat([self.q_bias, torch.zeros_like(self.q_bias), self.v_bias])
        qkv = F.linear(x, self.qkv.weight, bias).chunk(3, -1)
        return self.proj(join(attend(*(split(one, self.num_heads) for one in qkv))[0]))


class MultiQuery(nn.Module):
    """One key head for all, whatever the number of heads."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, d_k = num_heads, d_model // num_heads
        self.W_q, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_k, self.W_v = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k)

    def forward(self, x):
        k, v = self.W_k(x)[:, None], self.W_v(x)[:, None]
        return self.W_o(join(attend(split(self.W_q(x), self.num_heads), k, v)[0]))


class WithALinearBias(NamesThatSayNothing):
    """ALiBi, whose slopes are made in forward."""

    def mix(self, q, k, v):
        place = torch.arange(q.shape[2])
        slopes = 2.0 ** -torch.arange(1, self.num_heads + 1)
        bias = -(place[:, None] - place).abs() * slopes[:, None, None]
        return (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v


class WithAWindow(NamesThatSayNothing):
    """Each token looks at itself and two before it."""

    def mix(self, q, k, v):
        window = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril().triu(-2)
        return attend(q, k, v, ~window)[0]


class OfATuple(ThreeInAList):
    """Queries, keys and values in one argument."""

    def forward(self, inputs):
        query, key, value = inputs
        return super().forward(query, key, value)


class OfImages(nn.Module):
    """Attention of diffusion models, in short: [B, C, H, W]."""

    def __init__(self, channels, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        B, C, H, W = x.shape
        q, k, v = self.qkv(x).reshape(B, 3, self.num_heads, -1, H * W).mT.unbind(1)
        return self.proj(attend(q, k, v)[0].mT.reshape(B, C, H, W))


class Usual(nn.Module):
    """The names that most have, for others to change one thing."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        q, k, v = (self.split(one) for one in (self.queries(x), self.to_k(x), self.to_v(x)))
        return self.to_out(self.join(self.mix(q, k, v)))

    def queries(self, x):
        return self.to_q(x)

    def split(self, x):
        return split(x, self.heads)

    def mix(self, q, k, v):
        return attend(q, k, v)[0]

    def join(self, heads):
        return join(heads)


class HeadsSpreadInside(Usual):
    """ "b n (d h) -> b h n d": a head's numbers stand h apart, until they are joined as usual."""

    def split(self, x):
        return x.unflatten(-1, (-1, self.heads)).permute(0, 3, 1, 2)


class HeadsSpread(HeadsSpreadInside):
    """Both ways."""

    def join(self, heads):
        return heads.permute(0, 2, 3, 1).flatten(2)


class NumbersOfAllHeads(nn.Module):
    """The self-attention of a tutorial: "b t (d k h) -> k b h t d", and "b h t d -> b t (h d)"."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qvk, self.W_0 = (
            nn.Linear(dim, 3 * dim, bias=False),
            nn.Linear(dim, dim, bias=False),
        )

    def forward(self, x):
        qkv = self.to_qvk(x).unflatten(-1, (-1, 3, self.heads)).permute(3, 0, 4, 1, 2)
        return self.W_0(join(attend(*qkv)[0]))


class WithLora(Usual):
    """With a low-rank update of the queries, whose second matrix begins with 0."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.lora_A = nn.Parameter(torch.randn(dim, 4))
        self.lora_B = nn.Parameter(torch.zeros(4, dim))

    def queries(self, x):
        return self.to_q(x) + x @ self.lora_A @ self.lora_B


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


class NormalizedQueries(Usual):
    """QK-norm by a function: nothing tells of it but what it does."""

    def mix(self, q, k, v):
        return attend(10 * F.normalize(q, dim=-1), F.normalize(k, dim=-1), v)[0]


class NormalizedByLayers(Usual):
    """QK-norm by modules, as in many large models."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.q_norm, self.k_norm = nn.RMSNorm(dim // heads), nn.RMSNorm(dim // heads)

    def mix(self, q, k, v):
        return attend(self.q_norm(q), self.k_norm(k), v)[0]


class ScaledBy(Usual):
    """With another scale by intent: 1 in T5, 1 / d_k in muP."""

    def __init__(self, dim, heads, scale):
        super().__init__(dim, heads)
        self.scale = scale

    def mix(self, q, k, v):
        d_k = q.shape[-1]
        return attend(q * self.scale(d_k) * math.sqrt(d_k), k, v)[0]
