"""Attentions with bugs that a careless question misses; each is right wherever that looks.

Built with (d_model, num_heads) and loaded by name, so that any museum can ask them.
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


class Returning(Plain):
    """Returns what a test wants."""

    def __init__(self, d_model, num_heads, change):
        super().__init__(d_model, num_heads)
        self.change = change

    def forward(self, x, output_attentions=False):
        return self.change(*self.attend(x))


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


# --- two paths -----------------------------------------------------------------------------------


class FusedPathForgetsMasks(Limited):
    def forward(self, query, *, mask=None, causal=False, need_weights=False):
        if need_weights:
            return super().forward(query, mask=mask, causal=causal)
        return self.attend(query)[0], None


class FusedPathDropsInEvaluation(Limited):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads)
        self.dropout = dropout

    def forward(self, query, *, need_weights=False):
        allowed, v = fit(), self.split(self.W_v(query))
        weights = self.weigh(self.scores(*(self.split(W(query)) for W in (self.W_q, self.W_k))),
                             allowed)  # fmt: skip
        dropped = F.dropout(weights, self.dropout, self.training or not need_weights)
        return self.mix(dropped, v), weights if need_weights else None


class TrainsWithoutMasks(Limited):
    def forward(self, query, *, mask=None):
        return super().forward(query, mask=None if self.training else mask)


class TrainsUnscaled(Plain):
    def scores(self, q, k):
        return super().scores(q, k) * (math.sqrt(self.d_k) if self.training else 1.0)


class FusedPathTakesAnyMaskForCausal(Limited):
    def forward(self, query, *, mask=None, need_weights=False):
        if need_weights:
            return super().forward(query, mask=mask)
        output, _ = super().forward(query, causal=mask is not None)
        return output, None


# --- scores far apart ----------------------------------------------------------------------------


class ExponentiatesAsItIs(Plain):
    """Without taking the largest score off before."""

    def weigh(self, scores, allowed):
        exponentials = scores.exp()
        return exponentials / exponentials.sum(-1, keepdim=True)


class RenormalizesWithASmallNumber(Limited):
    def forward(self, query, *, mask=None, key_mask=None):
        return super().forward(query, mask=mask, key_mask=key_mask)

    def weigh(self, scores, allowed):
        weights = scores.softmax(-1) * allowed
        return weights / (weights.sum(-1, keepdim=True) + 1e-13)


class MultipliesScoresByTheMask(RenormalizesWithASmallNumber):
    """Forbidden scores are 0, and too large where all others lie below."""

    def weigh(self, scores, allowed):
        return super().weigh(scores * allowed, allowed)


class AlwaysCausalAndRenormalizes(Limited):
    def forward(self, query):
        return super().forward(query, causal=True)

    def weigh(self, scores, allowed):
        weights = scores.softmax(-1) * allowed
        return weights / weights.sum(-1, keepdim=True)


class FusedPathRenormalizes(Limited):
    def forward(self, query, *, mask=None, need_weights=False):
        self.renormalizes = not need_weights
        output, weights = super().forward(query, mask=mask)
        return output, weights if need_weights else None

    def weigh(self, scores, allowed):
        if self.renormalizes:
            return AlwaysCausalAndRenormalizes.weigh(self, scores, allowed).nan_to_num(0.0)
        return super().weigh(scores, allowed)


class FillsWithMinus100(Limited):
    def forward(self, query, *, mask=None):
        return super().forward(query, mask=mask)

    def weigh(self, scores, allowed):
        return scores.masked_fill(~allowed, -100.0).softmax(-1)


class AlwaysCausalFilled(Limited):
    """With a number for minus infinity that only scores far below 0 find out."""

    fill = -100.0

    def forward(self, query):
        return super().forward(query, causal=True)

    def weigh(self, scores, allowed):
        return scores.masked_fill(~allowed, self.fill).softmax(-1)


class AlwaysCausalFilledWithMinus20(AlwaysCausalFilled):
    fill = -20.0


# --- dropout before the softmax ------------------------------------------------------------------


class DropsScores(Plain):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads)
        self.dropout = nn.Dropout(dropout)

    def scores(self, q, k):
        return self.dropout(super().scores(q, k))


class DropsScoresUntold(DropsScores):
    """With a share that its constructor doesn't take."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads, 0.1)


class KeepsTooLittle(DropsScores):
    """What stays isn't divided by the share that stays."""

    def scores(self, q, k):
        return Plain.scores(self, q, k)

    def weigh(self, scores, allowed):
        weights = super().weigh(scores, allowed)
        kept = torch.rand_like(weights) >= self.dropout.p
        return weights * kept if self.training else weights


# --- arguments in place --------------------------------------------------------------------------


class ChangesPadding(Limited):
    def forward(self, query, *, key_mask=None):
        answer = super().forward(query, key_mask=None if key_mask is None else key_mask.clone())
        if key_mask is not None:
            key_mask.fill_(True)
        return answer


class ChangesTheTokens(Plain):
    def forward(self, query):
        output, weights = self.attend(query.clone())
        with torch.no_grad():
            query += output
        return output, weights


# --- long sequences ------------------------------------------------------------------------------


class BufferOf64(Limited):
    """Always causal as far as its triangle goes."""

    def forward(self, query):
        T = query.shape[1]
        allowed = torch.ones(T, T, dtype=torch.bool)
        allowed[:64, :64] = allowed[:64, :64].tril()
        return self.attend(query, allowed=allowed)


# --- limits together -----------------------------------------------------------------------------


class MaskOrCausal(Limited):
    def forward(self, query, *, mask=None, causal=False):
        return super().forward(query, mask=mask, causal=causal and mask is None)


class PaddingOrCausal(Limited):
    def forward(self, query, *, key_mask=None, causal=False):
        return super().forward(query, key_mask=key_mask, causal=causal and key_mask is None)


class MaskOrPadding(Limited):
    def forward(self, query, *, mask=None, key_mask=None):
        return super().forward(query, mask=mask, key_mask=key_mask if mask is None else None)


class EitherMaskAllows(Limited):
    def forward(self, query, *, mask=None, key_mask=None):
        both = mask is not None and key_mask is not None
        allowed = fit(mask) | fit(None, key_mask) if both else fit(mask, key_mask)
        return self.attend(query, allowed=allowed)


# --- sizes of one, memory, gradients -------------------------------------------------------------


class SqueezesABatchOfOne(Plain):
    def mix(self, weights, v):
        return super().mix(weights, v).squeeze()


class ReadsMemoryInItsOrder(Plain):
    def forward(self, query):
        x = torch.as_strided(query, query.shape, (query[0].numel(), query.shape[-1], 1))
        return self.attend(x)


class WithoutGradients(Plain):
    @torch.no_grad()
    def forward(self, query):
        return self.attend(query)


class WithoutGradientsOfTheInput(Plain):
    def forward(self, query):
        return self.attend(query.detach())


class DetachedWeights(Plain):
    def weigh(self, scores, allowed):
        return super().weigh(scores, allowed).detach()


class AsManySamplesAsHeads(Limited):
    """Takes a mask for each sample, as long as B is h."""

    def forward(self, query, *, mask=None):
        if mask is not None and mask.dim() > 2:
            mask = mask.view(self.num_heads, *query.shape[1:2] * 2)
        return super().forward(query, mask=mask)


class DetachesMaskedScores(Limited):
    def weigh(self, scores, allowed):
        return super().weigh(scores if allowed.shape[-1] == 1 else scores.detach(), allowed)


class ValuesOfKeys(Plain):
    def forward(self, query, key, value):
        return self.attend(query, key, key)


class CausalThatIsIgnored(Plain):
    def forward(self, query, *, causal=False):
        return self.attend(query)


class CausalThatIsAlwaysOn(Limited):
    def forward(self, query, *, causal=False):
        return super().forward(query, causal=True)


class ForgottenBiases(Plain):
    def forward(self, query):
        q, k, v = (self.split(F.linear(query, W.weight)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.weigh(self.scores(q, k), None)
        return self.mix(weights, v), weights


# --- what people really write --------------------------------------------------------------------


class MadeAnew(Plain):
    """One of its layers is made in forward, with other numbers at each call."""

    def mix(self, weights, v):
        joined = (weights @ v).transpose(1, 2).flatten(2)
        return nn.Linear(self.d_model, self.d_model)(joined)


class RandomInEvaluation(Plain):
    def weigh(self, scores, allowed):
        return F.dropout(super().weigh(scores, allowed), 0.1)


# --- at the edges --------------------------------------------------------------------------------


class MaskOfTheFirstHead(Limited):
    def forward(self, query, *, mask=None):
        if mask is not None and mask.dim() == 4:
            mask = mask[:, :1]
        return super().forward(query, mask=mask)


class CausalWithoutKeys(Limited):
    def forward(self, query, key=None, value=None):
        return super().forward(query, key, value, causal=key is None)


class ReadsMasksByColumns(Limited):
    def forward(self, query, key=None, value=None, *, mask=None):
        if mask is not None and len(mask) != mask.shape[-1]:
            mask = mask.mT.reshape(mask.shape)
        return super().forward(query, key, value, mask=mask)


class WeightsOfDetachedQueries(Plain):
    def forward(self, query):
        _, weights = self.attend(query.detach())
        return self.attend(query)[0], weights


class KeepsTheFirstMask(Limited):
    """Of each shape."""

    def forward(self, query, *, mask=None):
        kept = vars(self).setdefault("kept", {})
        if mask is not None:
            mask = kept.setdefault(tuple(mask.shape), mask)
        return super().forward(query, mask=mask)


class KeepsTheLastKeys(Plain):
    """Where they have the shape of the new ones."""

    last = None

    def scores(self, q, k):
        self.last, last = k.detach(), self.last
        return super().scores(q, k if last is None or last.shape != k.shape else (k + last) / 2)


class ValuesOfQueriesWhereLengthsAgree(Plain):
    def attend(self, query, key=None, value=None, allowed=None):
        if key is not None and key.shape == query.shape:
            value = query
        return super().attend(query, key, value, allowed)


class ReturnsFloat64(Plain):
    def mix(self, weights, v):
        return super().mix(weights, v).double()


MISSED = {
    "d_k ** 1/2": scaled_by(lambda d_k, **_: d_k**1 / 2),
    "log2 of d_k": scaled_by(lambda d_k, **_: math.log2(d_k)),
    "2": scaled_by(lambda **_: 2),
    "root of T - 1": scaled_by(lambda T, **_: math.sqrt(T - 1)),
} | {
    broken.__name__: broken
    for broken in (
        FusedPathForgetsMasks, FusedPathDropsInEvaluation,
        TrainsWithoutMasks, TrainsUnscaled, MaskOrCausal, PaddingOrCausal, MaskOrPadding,
        EitherMaskAllows, SqueezesABatchOfOne, ReadsMemoryInItsOrder,
        WithoutGradients, WithoutGradientsOfTheInput, DetachedWeights,
        ValuesOfKeys, ReadsMasksByColumns, FusedPathTakesAnyMaskForCausal, ExponentiatesAsItIs,
        RenormalizesWithASmallNumber, MultipliesScoresByTheMask,
        AlwaysCausalAndRenormalizes, FusedPathRenormalizes, FillsWithMinus100,
        AlwaysCausalFilled, AlwaysCausalFilledWithMinus20, DropsScores,
        DropsScoresUntold, KeepsTooLittle,
        ChangesPadding, ChangesTheTokens, BufferOf64, KeepsTheFirstMask,
        KeepsTheLastKeys, ValuesOfQueriesWhereLengthsAgree,
        ReturnsFloat64,
    )
}  # fmt: skip
AT_AN_EDGE = {
    "a mask for each head": MaskOfTheFirstHead,
    "what may be left out": CausalWithoutKeys,
    "gradients of the weights": WeightsOfDetachedQueries,
}
FOUND_BEFORE = {
    broken.__name__: broken
    for broken in (
        AsManySamplesAsHeads, DetachesMaskedScores, CausalThatIsIgnored,
        CausalThatIsAlwaysOn, ForgottenBiases,
        RandomInEvaluation, MadeAnew,
    )
}  # fmt: skip
