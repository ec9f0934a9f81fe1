"""Attentions that are right in most situations, and forget something in one of them.

Each is by the question that tells it first, with what else is told of it (tools/diagnoses.py).
Beside them are some that are right, and treat padding in a way of their own.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attnlib import KVCache
from attnlib.functional import split_heads
from tools.broken_attentions import Drops, Limited, Plain, but, fit


class Hiding(Plain):
    """Its padding hides where it is True; all else is as in `Limited`."""

    def forward(self, query, key=None, value=None, *, mask=None, key_padding_mask=None,
                is_causal=False):  # fmt: skip
        T_q, T_k = query.shape[1], (query if key is None else key).shape[1]
        allowed = torch.ones(len(query), 1, T_q, T_k, dtype=torch.bool)
        if mask is not None:
            allowed = allowed & self.fit(mask[:, None] if mask.dim() == 3 else mask, allowed)
        if key_padding_mask is not None:
            allowed = allowed & self.pad(~key_padding_mask, allowed)
        if is_causal:
            allowed = allowed & self.fit(torch.ones(T_q, T_k, dtype=torch.bool).tril(), allowed)
        return self.attend(query, key, value, allowed)

    def fit(self, mask, allowed):
        return mask

    def pad(self, real, allowed):
        return real[:, None, None]


class Grouped(Plain):
    """Several query heads look at one key head; all right."""

    def __init__(self, d_model, num_heads, num_kv_heads=None):
        super().__init__(d_model, num_heads)
        self.num_kv_heads = num_kv_heads or num_heads
        self.shared = num_heads // self.num_kv_heads
        width = d_model // self.shared
        self.W_k, self.W_v = nn.Linear(d_model, width), nn.Linear(d_model, width)

    def forward(self, query, context=None, *, mask=None, causal=False):
        context = query if context is None else context
        allowed = torch.ones(query.shape[1], context.shape[1], dtype=torch.bool)
        if causal:
            allowed = self.triangle(allowed)
        if mask is not None:
            allowed = allowed & self.fit(mask)
        q, k, v = self.split(self.W_q(query)), self.keys(self.W_k(context)), self.W_v(context)
        return self.mix(self.weigh(self.scores(q, k), allowed), Grouped.keys(self, v))

    def keys(self, x):
        heads = x.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
        return heads.repeat_interleave(self.shared, 1)

    def triangle(self, allowed):
        return allowed.tril()

    def fit(self, mask):
        return mask[:, None] if mask.dim() == 3 else mask


class Caching(Plain):
    """Grouped heads and a cache; all right."""

    def __init__(self, d_model, num_heads, num_kv_heads=None):
        super().__init__(d_model, num_heads)
        self.num_kv_heads = num_kv_heads or num_heads
        width = self.num_kv_heads * self.d_k
        self.W_k, self.W_v = nn.Linear(d_model, width), nn.Linear(d_model, width)

    def forward(
        self, query, *, mask=None, key_mask=None, causal=False, cache: KVCache | None = None
    ):
        q, k, v = (split_heads(W(query), h) for W, h in (
            (self.W_q, self.num_heads), (self.W_k, self.num_kv_heads),
            (self.W_v, self.num_kv_heads)))  # fmt: skip
        if cache is not None:
            k, v = cache.joined(self, k, v)
            cache.keep(self, k, v)
            mask, key_mask = self.behind(mask, key_mask)
        T_q, T_k = q.shape[2], k.shape[2]
        allowed = fit(mask, key_mask)
        if causal:
            allowed = allowed & torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)
        k, v = (self.shared_by_all(one, cache) for one in (k, v))
        weights = self.weigh(self.scores(q, k), allowed)
        return self.mix(weights, v), weights

    def behind(self, mask, key_mask):
        return mask, key_mask

    def shared_by_all(self, heads, cache):
        return heads.repeat_interleave(self.num_heads // self.num_kv_heads, 1)


class KeepsItsPadding(Hiding):
    """And uses it for the next tokens of the same shape, if they have none."""

    kept = None

    def forward(self, query, *, mask=None, key_padding_mask=None):
        if key_padding_mask is not None:
            self.kept = key_padding_mask
        elif self.kept is not None and self.kept.shape == query.shape[:2]:
            key_padding_mask = self.kept
        return super().forward(query, mask=mask, key_padding_mask=key_padding_mask)


class KeepsItsMask(Limited):
    kept = None

    def forward(self, query, *, mask=None):
        if mask is not None:
            self.kept = mask
        elif self.kept is not None and self.kept.shape == query.shape[1:2] * 2:
            mask = self.kept
        return super().forward(query, mask=mask)


class TiresOfCalls(Plain):
    calls = 0

    def scores(self, q, k):
        self.calls += 1
        return super().scores(q, k) * (1.0 if self.calls < 25 else 0.5)


class ChangesTheMaskIfCausal(Limited):
    def forward(self, query, *, mask=None, causal=False):
        if mask is not None and causal:
            mask &= torch.ones_like(mask).tril()
        return super().forward(query, mask=mask, causal=causal)


class ChangesTheContext(Plain):
    def forward(self, x, context=None):
        answer = self.attend(x, context)
        if context is not None:
            context.data.mul_(0.5)
        return answer


class DetachedBehindPadding(Hiding):
    def forward(self, query, *, key_padding_mask=None):
        self.padded = key_padding_mask is not None
        return super().forward(query, key_padding_mask=key_padding_mask)

    def weigh(self, scores, allowed):
        return super().weigh(scores.detach() if self.padded else scores, allowed)


class DetachedBehindMasks(Limited):
    def scores(self, q, k):
        scores = super().scores(q, k)
        return scores.detach() if self.of_each else scores

    def forward(self, query, *, mask=None):
        self.of_each = mask is not None and mask.dim() == 3
        return super().forward(query, mask=mask)


class GroupedDetachesBehindMasks(Grouped):
    def forward(self, query, context=None, *, mask=None, causal=False):
        self.masked = mask is not None and self.shared > 1
        return super().forward(query, context, mask=mask, causal=causal)

    def scores(self, q, k):
        return super().scores(q, k.detach() if self.masked else k)


class GroupedTakesItsOwnTokens(Grouped):
    def forward(self, query, context=None, **limits):
        same = self.shared > 1 and context is not None and context.shape == query.shape
        return super().forward(query, None if same else context, **limits)


class OneQuerySeesAll(Hiding):
    """A shortcut for decoding."""

    def fit(self, mask, allowed):
        return mask if allowed.shape[-2] > 1 else torch.ones_like(allowed)

    def pad(self, real, allowed):
        return self.fit(super().pad(real, allowed), allowed)


class LeftPaddingOfTheFirst(Hiding):
    """What is padded on the left of the first sample is hidden in all."""

    def pad(self, real, allowed):
        start = (~real[0]).cumprod(0).sum()
        return super().pad(real & (torch.arange(real.shape[1]) >= start), allowed)


class FullBatchesAreNotCausal(Hiding):
    """Where nothing is padded, the mask is left out, and the triangle in it."""

    def forward(self, query, *, key_padding_mask=None):
        full = key_padding_mask is not None and not key_padding_mask.any()
        return super().forward(query, key_padding_mask=key_padding_mask, is_causal=not full)


class DropsAndHides(Drops, Hiding):
    """With limits."""

    forgets = None  # where something is dropped

    def forward(self, query, *, mask=None, key_padding_mask=None, is_causal=False):
        limits = {"mask": mask, "key_padding_mask": key_padding_mask, "is_causal": is_causal}
        if self.training and self.dropout.p and self.loses(mask):
            limits[self.forgets] = None
        return super().forward(query, **limits)

    def loses(self, mask):
        return True


class DroppingIsNotCausal(Drops):
    """Always causal, but where something is dropped."""

    def forward(self, x):
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        drops = self.training and self.dropout.p
        return self.attend(x, allowed=seen if drops else seen.tril())[0]


class DropsWhatItShouldKeep(Drops):
    """As in a port from a library that asks for what is kept."""

    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__(d_model, num_heads, 1 - dropout if dropout else 0.0)


class DropsInTheKernel(DropsWhatItShouldKeep):
    def forward(self, x):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        share = self.dropout.p if self.training else 0.0
        heads = F.scaled_dot_product_attention(q, k, v, dropout_p=share)
        return self.W_o(heads.transpose(1, 2).flatten(2))


class SetsTheSeed(Drops):
    def mix(self, weights, v):
        torch.manual_seed(0)
        return super().mix(weights, v)


def of_its_own_tokens(self, x, context=None, mask=None):
    """A mask is forgotten as soon as there is a context."""
    allowed = mask[:, None, None] if mask is not None and context is None else None
    return self.attend(x, context, allowed=allowed)


def without_the_odd_one(self, q, k):
    even = self.d_k // 2 * 2
    return q[..., :even] @ k[..., :even].mT / math.sqrt(self.d_k)


def first_context(self, x, context=None):
    if context is not None and len(context) > 8:
        context = context[:1].expand(len(x), -1, -1)
    return self.attend(x, context)


def tiled(heads, times):
    return heads.repeat(1, times, 1, 1)


def taken_for_padding(self, mask, allowed):
    """[T, T] is taken for [B, T] where both are as long."""
    as_padding = mask.dim() == 2 and len(mask) == len(allowed)
    return mask[:, None, None] if as_padding else mask


def in_their_order(self, query, *, mask=None):
    """As a kernel does that gets no strides."""
    if mask is not None:
        mask = mask.as_strided(mask.shape, torch.empty(mask.shape).stride())
    return Limited.forward(self, query, mask=mask)


def masks_or_causal(self, query, key=None, value=None, *, mask=None, is_causal=False, **limits):
    alone = mask is None or mask.dim() == 2
    causal = is_causal and alone
    return Hiding.forward(self, query, key, value, mask=mask, is_causal=causal, **limits)


def tiled_masks(self, mask):
    """A mask for each sample is repeated for the key heads in the wrong order."""
    if mask.dim() == 2 or self.shared == 1:
        return Grouped.fit(self, mask)
    return mask.repeat(self.num_heads, 1, 1).unflatten(0, (len(mask), -1))


PARTLY = {
    "padding anywhere": {
        "all on the right": (but(Hiding, pad=lambda self, real, allowed:
            (torch.arange(real.shape[1]) < real.sum(1, keepdim=True))[:, None, None]),),
        "none where the first sample has none": (but(Hiding, pad=lambda self, real, allowed:
            Hiding.pad(self, real | real[0].all(), allowed)),),
    },
    "padding that hides nothing": {"not causal": (FullBatchesAreNotCausal,)},
    "padding between two sequences": {
        "of squares alone": (but(Hiding, pad=lambda self, real, allowed:
            Hiding.pad(self, real | (allowed.shape[-1] != allowed.shape[-2]), allowed)),
            "(padding, with more keys than queries)"),
        "of its own tokens": (but(Plain, forward=of_its_own_tokens),),
    },
    "limits on few and many": {
        "not on one sample": (but(Hiding, fit=lambda self, mask, allowed:
            mask if len(allowed) > 1 else mask | True), "(a mask, on one sample)", "dropped"),
        "one query sees all": (OneQuerySeesAll, "(a mask, on one query of another sequence)"),
        "up to eight": (but(Hiding, pad=lambda self, real, allowed:
            Hiding.pad(self, real | (len(real) > 8), allowed)),),
        "left padding of the first": (LeftPaddingOfTheFirst,),
    },
    "limits with a cache": {
        "masks": (but(Caching, behind=lambda self, mask, key_mask: (None, key_mask)),),
        "padding": (but(Caching, behind=lambda self, mask, key_mask: (mask, None)),),
    },
    "a cache with grouped heads": {"tiled": (but(Caching, shared_by_all=lambda self, heads, cache:
        Caching.shared_by_all(self, heads, cache) if cache is None
        else tiled(heads, self.num_heads // self.num_kv_heads)),)},
    "grouped heads": {
        "its own tokens": (GroupedTakesItsOwnTokens,),
        "tiled for one": (but(Grouped, keys=lambda self, x: Grouped.keys(self, x) if len(x) > 1
            else tiled(x.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2), self.shared)),),
    },
    "limits with grouped heads": {
        "masks": (but(Grouped, fit=lambda self, mask:
            Grouped.fit(self, mask if self.shared == 1 else mask | True)), "(a mask)"),
        "the triangle": (but(Grouped, triangle=lambda self, allowed:
            allowed if self.shared > 1 else allowed.tril()),),
    },
    "masks with grouped heads": {"tiled": (but(Grouped, fit=tiled_masks),)},
    "gradients with grouped heads": {"of keys": (but(Grouped, keys=lambda self, x:
        Grouped.keys(self, x.detach() if self.shared > 1 else x)),)},
    "gradients with grouped heads and a limit": {"of keys": (GroupedDetachesBehindMasks,)},
    "masks for samples and others": {
        "or causal": (but(Hiding, forward=masks_or_causal), "without causal=True"),
        "of squares alone": (but(Hiding, fit=lambda self, mask, allowed:
            mask | (mask.dim() > 2 and mask.shape[-1] != mask.shape[-2])),
            "(a mask for each sample, with more keys than queries)"),
        "not of one sample": (but(Hiding, fit=lambda self, mask, allowed:
            mask | (mask.dim() == 4 and len(mask) == 1)),),
    },
    "gradients with masks for samples": {"of scores": (DetachedBehindMasks,)},
    "limits in training with dropout": {
        "the mask": (but(DropsAndHides, forgets="mask"),),
        "masks": (but(DropsAndHides, forgets="mask", loses=lambda self, mask:
            mask is not None and mask.dim() == 3), "[B, T, T]"),
        "padding": (but(DropsAndHides, forgets="key_padding_mask"),),
        "the triangle": (but(DropsAndHides, forgets="is_causal"),),
        "its own triangle": (DroppingIsNotCausal,),
    },
    "as many samples as tokens": {
        "taken for padding": (but(Hiding, fit=taken_for_padding),),
        "in their order": (but(Limited, forward=in_their_order),),
    },
    "one sample, one token": {"shares among many": (but(Plain, weigh=lambda self, scores, allowed:
        scores.softmax(-1 if len(scores) <= 8 else 0)),)},
    "two sequences": {"the first context": (but(Plain, forward=first_context),)},
    "other sizes": {
        "one head unscaled": (but(Plain, scores=lambda self, q, k:
            q @ k.mT if self.num_heads == 1 else Plain.scores(self, q, k)),),
        "an odd width loses one": (but(Plain, scores=without_the_odd_one),),
    },
    "gradients with a limit": {
        "padding": (DetachedBehindPadding,),
        "one query": (but(Hiding, scores=lambda self, q, k:
            Plain.scores(self, q, k.detach() if q.shape[-2] == 1 else k)),
            "(a mask, on one query of another sequence)", "not dropped"),
    },
    "gradients": {"of the context": (but(Plain, forward=lambda self, x, context=None:
        self.attend(x, None if context is None else context.detach())),)},
    "arguments left unchanged": {
        "the mask, if causal": (ChangesTheMaskIfCausal,), "the context": (ChangesTheContext,),
    },
    "a second call": {"the mask": (KeepsItsMask,)},
    "training with dropout": {"the seed": (SetsTheSeed,)},
    "the dropout rate": {
        "what it should keep": (DropsWhatItShouldKeep,), "in the kernel": (DropsInTheKernel,),
    },
    "a very large score": {"clamped": (but(Plain, scores=lambda self, q, k:
        Plain.scores(self, q, k).clamp(-30, 30)),)},
}  # fmt: skip
KEEPING = KeepsItsPadding, KeepsItsMask, TiresOfCalls

# --- at the edges --------------------------------------------------------------------------------


class EmptiesPadding(Hiding):
    """What stands where the padding is becomes 0."""

    def forward(self, query, *, key_padding_mask=None):
        output, _ = super().forward(query, key_padding_mask=key_padding_mask)
        if key_padding_mask is not None:
            output = output.masked_fill(key_padding_mask[..., None], 0.0)
        return output


class PaddingOnBothAxes(Plain):
    """Padding sees all alike, as in early code of many."""

    def forward(self, x, key_padding_mask=None):
        real = torch.ones(x.shape[:2], dtype=torch.bool)
        if key_padding_mask is not None:
            real = ~key_padding_mask
        return self.attend(x, allowed=(real[:, :, None] & real[:, None])[:, None])[0]

    def weigh(self, scores, allowed):
        return scores.masked_fill(~allowed, -1e9).softmax(-1)


class TakesPaddingOut(Plain):
    """Sample by sample without its padding, whose outputs are 0."""

    def forward(self, x, attention_mask=None):
        if attention_mask is None:
            return self.attend(x)[0]
        outputs = []
        for sample, real in zip(x, attention_mask.bool(), strict=True):
            output, _ = self.attend(sample[real][None])
            outputs.append(torch.zeros_like(sample).masked_scatter(real[:, None], output))
        return torch.stack(outputs)


def of_numbers(self, query, *, mask=None):
    if mask is not None:
        mask = ~(~mask).bool()
    return Limited.forward(self, query, mask=mask)


def causal_in_squares(self, query, key=None, value=None, *, is_causal=False):
    square = key is None or key.shape == query.shape
    return Hiding.forward(self, query, key, value, is_causal=is_causal and square)


def in_float32(self, query, *, mask=None):
    output, weights = Limited.forward(self, query, mask=mask)
    return output.float(), weights


AT_AN_EDGE = {
    "outputs of padding": (EmptiesPadding, PaddingOnBothAxes, TakesPaddingOut),
    "a mask of ones and zeros": (but(Limited, forward=of_numbers),),
    "causal between two sequences": (but(Hiding, forward=causal_in_squares),),
    "half precision": (but(Limited, forward=in_float32),),
}
