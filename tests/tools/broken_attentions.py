"""Attentions with bugs that a careless question misses; each is right wherever that looks.

Built with (d_model, num_heads) and loaded by name.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Plain(nn.Module):
    """A right attention in steps, for the others to break."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key=None, value=None):
        return self.attend(query, key, value)

    def attend(self, query, key=None, value=None, allowed=None):
        key = query if key is None else key
        value = key if value is None else value
        weights = self.weigh(self.scores(self.split(self.W_q(query)), self.split(self.W_k(key))),
                             allowed)  # fmt: skip
        return self.mix(weights, self.split(self.W_v(value))), weights

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def scores(self, q, k):
        return q @ k.mT / math.sqrt(self.d_k)

    def weigh(self, scores, allowed):
        if allowed is None:
            return scores.softmax(-1)
        blind = ~allowed.any(-1, keepdim=True)
        scores = scores.masked_fill(~allowed & ~blind, -math.inf)
        return scores.softmax(-1).masked_fill(blind, 0.0)

    def mix(self, weights, v):
        return self.W_o((weights @ v).transpose(1, 2).flatten(2))


def fit(mask=None, key_mask=None, causal=False, T=None):
    """All limits in one mask that broadcasts to the scores."""
    allowed = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    if mask is not None:
        allowed = allowed & (mask[:, None] if mask.dim() == 3 else mask)
    if key_mask is not None:
        allowed = allowed & key_mask[:, None, None]
    return allowed & torch.ones(T, T, dtype=torch.bool).tril() if causal else allowed


class SlicesOfTokens(nn.Module):
    """SelfAttention of a popular video, as it is there: each head sees its part of the tokens."""

    def __init__(self, embed_size, heads):
        super().__init__()
        self.embed_size, self.heads, self.head_dim = embed_size, heads, embed_size // heads
        self.values, self.keys, self.queries = (
            nn.Linear(self.head_dim, self.head_dim, bias=False) for _ in range(3)
        )
        self.fc_out = nn.Linear(heads * self.head_dim, embed_size)

    def forward(self, values, keys, query, mask):
        v, k, q = (
            linear(x.reshape(len(x), -1, self.heads, self.head_dim))
            for linear, x in ((self.values, values), (self.keys, keys), (self.queries, query))
        )
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        weights = torch.softmax(energy / self.embed_size**0.5, dim=3)
        return self.fc_out(torch.einsum("nhql,nlhd->nqhd", weights, v).flatten(2))


class Limited(Plain):
    """With a mask, padding and causal, all right."""

    def forward(self, query, key=None, value=None, *, mask=None, key_mask=None, causal=False):
        allowed = fit(mask, key_mask, causal, query.shape[1])
        return self.attend(query, key, value, allowed)


class Drops(Plain):
    """With dropout, all right."""

    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__(d_model, num_heads)
        self.dropout = nn.Dropout(dropout)

    def mix(self, weights, v):
        return super().mix(self.dropout(weights), v)


class AlwaysCausal(Limited):
    def forward(self, query):
        return super().forward(query, causal=True)


def but(base, **changes):
    """Return a class that does something otherwise."""
    return type(base.__name__ + "But", (base,), changes)


def returning(change):
    """Return a right attention that returns what `change` makes of its output and weights."""
    return but(Plain, forward=lambda self, x, output_attentions=False: change(*self.attend(x)))


def filled_with(fill):
    """Weights behind a number for minus infinity."""
    return lambda self, scores, allowed: scores.masked_fill(~allowed, fill).softmax(-1)


def unscaled(self, q, k):
    """Scores of an attention that forgets the root of d_k."""
    return q @ k.mT


def shifted(self, weights, v):
    """An output that no exhibit gives."""
    return Plain.mix(self, weights, v) + 1


def scaled_by(formula):
    """Build an attention that divides by something else than the root of d_k."""

    class Scaled(Plain):
        def scores(self, q, k):
            sizes = {"d": self.d_model, "h": self.num_heads, "d_k": self.d_k, "B": len(q)}
            return q @ k.mT / formula(**sizes, T=k.shape[-2])

    return Scaled


# --- each bug by its name ------------------------------------------------------------------------


def multiplied(self, scores, allowed):
    """Scores and weights, with a small number lest nothing is left to divide by."""
    weights = (scores * allowed).softmax(-1) * allowed
    return weights / (weights.sum(-1, keepdim=True) + 1e-13)


def renormalized(self, scores, allowed):
    weights = scores.softmax(-1) * allowed
    return weights / weights.sum(-1, keepdim=True)


class DropsScores(Drops):
    """And no weights."""

    mix = Plain.mix

    def scores(self, q, k):
        return self.dropout(super().scores(q, k))


class KeepsTheLastKeys(Plain):
    """Where they have the shape of the new ones."""

    last = None

    def scores(self, q, k):
        self.last, last = k.detach(), self.last
        return super().scores(q, k if last is None or last.shape != k.shape else (k + last) / 2)


class ForgottenBiases(Plain):
    def forward(self, query):
        q, k, v = (self.split(F.linear(query, W.weight)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.weigh(self.scores(q, k), None)
        return self.mix(weights, v), weights


# With what is told of each (tools/diagnoses.py).
BROKEN = {
    "FusedPathTakesAnyMaskForCausal": (but(Limited,
        forward=lambda self, query, *, mask=None, need_weights=False:
        Limited.forward(self, query, mask=mask) if need_weights
        else (Limited.forward(self, query, causal=mask is not None)[0], None)),
        "only: any mask taken for causal", "report: other path"),
    "TrainsUnscaled": (but(Plain, scores=lambda self, q, k:
        Plain.scores(self, q, k) * (math.sqrt(self.d_k) if self.training else 1.0)),
        "only: no scale", "report: other path", "train()"),
    "MaskOrCausal": (but(Limited, forward=lambda self, query, *, mask=None, causal=False:
        Limited.forward(self, query, mask=mask, causal=causal and mask is None)),
        "not report: keeps something"),
    "MaskOrPadding": (but(Limited, forward=lambda self, query, *, mask=None, key_mask=None:
        Limited.forward(self, query, mask=mask, key_mask=key_mask if mask is None else None)),
        "without padding", "beside a mask", "not exhibit: a mask switches causality off"),
    "ExponentiatesAsItIs": (but(Plain, weigh=lambda self, scores, allowed:
        scores.exp() / scores.exp().sum(-1, keepdim=True)),
        "first: a very large score", "a very large score: often"),
    "MultipliesScoresByTheMask": (but(Limited, weigh=multiplied),
        "a forbidden key that shouts: often"),
    "AlwaysCausalAndRenormalizes": (but(AlwaysCausal, weigh=renormalized),
        "only: mask after the softmax, renormalized"),
    "AlwaysCausalFilledWithMinus20": (but(AlwaysCausal, weigh=filled_with(-20.0)),
        "report: leaking", "taken: always causal"),
    "DropsScores": (DropsScores,),
    "KeepsTheLastKeys": (KeepsTheLastKeys, "report: varies"),
    "ReturnsFloat64": (but(Plain, mix=lambda self, weights, v:
        Plain.mix(self, weights, v).double()),
        "first: dtype", "not report: keeps something", "float32"),
    "ForgottenBiases": (ForgottenBiases,),
    "RandomInEvaluation": (but(Plain, weigh=lambda self, scores, allowed:
        F.dropout(Plain.weigh(self, scores, allowed), 0.1)),
        "report: varies", "not report: keeps something"),
}  # fmt: skip
