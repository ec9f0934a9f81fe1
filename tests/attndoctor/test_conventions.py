"""What is right under another convention, or by another formula, isn't simply called broken."""

import math

import pytest
import torch
import torch.nn.functional as F
from tools import public_attentions as public
from tools import uncommon_attentions as uncommon
from tools.broken_attentions import Limited, Plain, but, fit, scaled_by, unscaled
from tools.diagnoses import ask, diagnosed, diagnoses
from torch import nn

from attndoctor import check, museum
from attndoctor.__main__ import main
from attndoctor.conventions import CONVENTIONS
from attndoctor.diagnosis import UNLESS_MEANT
from attndoctor.museum import named
from attnlib import MultiHeadAttention
from attnlib.functional import merge_heads, split_heads

pytestmark = pytest.mark.thorough


class Hiding(Limited):
    """True hides."""

    def forward(self, query, mask=None):
        return super().forward(query, mask=None if mask is None else ~mask)


class Adding(Plain):
    """The mask is 0 or -inf, and added, as Llama's first code has it."""

    def forward(self, query, mask=None):
        return self.attend(query, allowed=mask)

    def weigh(self, scores, allowed):
        if allowed is not None:
            scores = scores + (allowed[:, None] if allowed.dim() == 3 else allowed)
        return scores.softmax(-1)


def hidden(mask):
    return fit(key_mask=None if mask is None else ~mask.bool())


PaddingThatHides = but(Plain, forward=lambda self, x, attention_mask=None:
    self.attend(x, allowed=hidden(attention_mask))[0])  # fmt: skip
PaddingByKeysThatHides = but(Plain, forward=lambda self, x, key_mask=None:
    self.attend(x, allowed=hidden(key_mask)))  # fmt: skip


class SequenceFirst(Plain):
    def forward(self, x):
        output, weights = self.attend(x.transpose(0, 1))
        return output.transpose(0, 1), weights


def first_and_hiding(self, x, mask=None):
    output, weights = Hiding.forward(self, x.transpose(0, 1), mask)
    return output.transpose(0, 1), weights


def averaged(self, x):
    output, weights = self.attend(x)
    return output, weights.mean(1)


class WithoutLastLayer(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        del self.W_o

    def mix(self, weights, v):
        return (weights @ v).transpose(1, 2).flatten(2)


class AroundTorch(nn.Module):
    """Its weights are the mean of the heads, and its mask hides."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, x, mask=None):
        return self.inner(x, x, x, attn_mask=mask)


def causally_hiding(self, x, mask=None):
    return self.attend(x, allowed=fit(None if mask is None else ~mask, None, True, x.shape[1]))


def first(result):
    return result[0]


UNSCALED, DIVIDED = scaled_by(lambda **_: 1), scaled_by(lambda d_k, **_: d_k)
# A candidate, what makes it healthy once it is said, and what is told of it before.
MEANT = {
    "True hides": (Hiding, {"mask": "hide"}, "conventions: hiding"),
    "padding, True hides": (PaddingThatHides, {"mask": "hide"}, "conventions: hiding"),
    "padding called key_mask": (PaddingByKeysThatHides, {"key_mask": "hide"},
        "conventions: padding hides"),
    "added": (Adding, {"mask": "add"}, "conventions: added"),
    "scores shown, added": (public.ShowsItsScores, {"mask": "add"}, "conventions: added"),
    "heads before samples": (public.HeadsBeforeSamples, {"mask": "hide"}, "conventions: hiding"),
    "sequence first": (SequenceFirst, {"batch_first": False}, "conventions: tokens first"),
    "T5's scale": (UNSCALED, {"scale": 1}, "scale=1,"),
    "muP's scale": (DIVIDED, {"scale": lambda d_k: 1 / d_k}, "scale=lambda d_k: 1 / d_k,",
        "only: scale applied twice"),
    "one twelfth": (scaled_by(lambda **_: 12), {"scale": 0.083333333}, "scale=0.08333"),
    "1 / 64": (scaled_by(lambda **_: 64), {"scale": 0.015625}, "scale=0.015625."),
    "8 / d_k": (scaled_by(lambda d_k, **_: d_k / 8), {"scale": lambda d_k: 8 / d_k},
        "scale=lambda d_k: 8 / d_k"),
    "a mean of heads": (but(Plain, forward=averaged), {"returns": first}, "returns=lambda"),
    "unscaled, True hides": (but(Hiding, scores=unscaled), {"scale": 1, "mask": "hide"},
        "conventions: hiding", "scale=1"),
    "torch's own, around it": (AroundTorch, {"returns": first, "mask": "hide"}, "returns=lambda"),
    "sequence first, True hides": (but(Hiding, forward=first_and_hiding),
        {"batch_first": False, "mask": "hide"}, "conventions: tokens first"),
    "always causal, True hides": (but(Plain, forward=causally_hiding), {"mask": "hide"},
        "conventions: hiding"),
    "no last layer": (WithoutLastLayer, {"out_projection": False}, "conventions: no projection"),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANT)
def test_another_convention_is_told_and_healthy_once_it_is_said(name):
    candidate, options, *facts = MEANT[name]
    ask(candidate, "meant", *facts)
    assert diagnosed(candidate, **options)


def cap(c):
    return lambda self, scores, allowed: Limited.weigh(self, c * torch.tanh(scores / c), allowed)


def maskless(self, query, mask=None):
    return Limited.forward(self, query)


SaysBatchFirst = but(SequenceFirst, batch_first=True)
CappedMaskless = but(Limited, forward=maskless, weigh=cap(3.0))
# The roots of 10 and of 14, rounded down; a scale that is the same for every d_k would be meant.
RoundedRoot = scaled_by(lambda **_: 3)


class Capped(MultiHeadAttention):
    """Attnlib's modules promise its conventions and its formula."""

    def forward(self, query):
        q, k, v = (split_heads(W(query), self.num_heads) for W in (self.W_q, self.W_k, self.W_v))
        scores = 3 * torch.tanh(q @ k.mT / math.sqrt(q.shape[-1]) / 3)
        return self.W_o(merge_heads(scores.softmax(-1) @ v))


def two_thirds(self, weights, v):
    return Plain.mix(self, weights, v * 2 / 3)


UNKNOWN = "report: right on equal tokens"
test_what_no_single_convention_makes_right_is_broken = diagnoses({
    "told that it keeps": (Hiding, {"mask": "keep"}, "broken", "not conventions: hiding"),
    "muP's scale, told T5's": (DIVIDED, {"scale": 1}, "broken", "not say scale",
        "not conventions: scale applied twice"),
    "a rounded root": (RoundedRoot, {}, "broken"),
    "says batch_first": (SaysBatchFirst, {}, "broken", "not conventions: tokens first"),
    "capped, and a mask thrown away": (CappedMaskless, {}, "broken", "report: another formula"),
    "unscaled, and a mask thrown away": (but(Limited, forward=maskless, scores=unscaled), {},
        "broken"),
    "attnlib's, inverted mask": (named("inverted mask"), {}, "broken"),
    "attnlib's, capped": (Capped, {}, "broken"),
    "cubed": (but(Plain, weigh=lambda self, scores, allowed: (scores**3).softmax(-1)), {},
        "broken", UNKNOWN),
    "two thirds": (but(Plain, weigh=cap(3.0), mix=two_thirds), {}, "broken",
        "report: wrong on equal tokens"),
})  # fmt: skip


# --- formulas ------------------------------------------------------------------------------------


def output_alone(self, x):
    return self.attend(x)[0]


def causally(self, x):
    return self.attend(x, allowed=fit(causal=True, T=x.shape[1]))[0]


def weighing(weigh, **methods):
    """Self-attention with weights made of its scores in another way."""
    methods = {"forward": output_alone} | methods
    return but(Plain, weigh=lambda self, scores, allowed: weigh(scores), **methods)


class Linear(public.Usual):
    """Keys and values are summed first: no weights are made."""

    feature = staticmethod(lambda x: F.elu(x) + 1)

    def mix(self, q, k, v):
        q, k = self.feature(q), self.feature(k)
        return q @ (k.mT @ v) / (q @ k.sum(-2, keepdim=True).mT)


class Sparsemax(Limited):
    """By bisection: which scores are above what is taken off, for the shares to sum to 1."""

    power = 1

    def weigh(self, scores, allowed):
        scores = scores / self.power
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -1e9)
        high = scores.detach().amax(-1, keepdim=True)
        low = high - 1
        for _ in range(40):
            middle = (low + high) / 2
            more = (scores - middle).relu().pow(self.power).sum(-1, keepdim=True) > 1
            low, high = torch.where(more, middle, low), torch.where(more, high, middle)
        seen = scores > low
        n = seen.sum(-1, keepdim=True)
        mean = (scores * seen).sum(-1, keepdim=True) / n
        return ((scores - mean) * seen + self.over(scores - mean, seen, n)).relu().pow(
            self.power
        ) * seen

    def over(self, scores, seen, n):
        return 1 / n


class Entmax(Sparsemax):
    power = 2

    def over(self, scores, seen, n):
        return ((1 - (scores.square() * seen).sum(-1, keepdim=True)) / n).relu().sqrt()


class OfTheThreeLargest(Limited):
    def weigh(self, scores, allowed):
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -math.inf)
        ranks = scores.argsort(-1, descending=True).argsort(-1)
        return scores.masked_fill(ranks > 2, -math.inf).softmax(-1)


class Differential(Limited):
    share = 0.8

    def scores(self, q, k):
        (q, other_q), (k, other_k) = (x.chunk(2, -1) for x in (q, k))
        return torch.stack([q @ k.mT, other_q @ other_k.mT]) / math.sqrt(self.d_k / 2)

    def weigh(self, scores, allowed):
        first, second = (super(Differential, self).weigh(one, allowed) for one in scores)
        return first - self.share * second


def unscaled_halves(self, q, k):
    return Differential.scores(self, q, k) * math.sqrt(self.d_k / 2)


class OfGemma2(Plain):
    """Another scale, which an attribute tells, and softcapped scores, both at once."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.scaling = 256**-0.5

    def forward(self, x):
        return self.attend(x)

    def scores(self, q, k):
        return 50 * torch.tanh(q @ k.mT * self.scaling / 50)


def larger_half(scores):
    """A query looks at the half of the keys that suit it best."""
    least = scores.topk(max(scores.shape[-1] // 2, 1)).values[..., -1:]
    return scores.masked_fill(scores < least, -math.inf).softmax(-1)


# Each by the number of its paper, or by its own numbers.
FORMULAS = {
    "sparsemax": (Sparsemax, "arXiv:1602.02068"),
    "entmax": (Entmax, "arXiv:1905.05702", "1.5"),
    "the three largest": (OfTheThreeLargest, "arXiv:1912.11637", "3 largest"),
    "the larger half": (weighing(larger_half), "arXiv:1912.11637", "not 3 largest"),
    "differential": (Differential, "arXiv:2410.05258", "0.8", "not unscaled"),
    "differential, unscaled": (but(Differential, scores=unscaled_halves), "arXiv:2410.05258",
        "0.8", "unscaled"),
    "softcapped": (but(Plain, weigh=cap(3.0)), "arXiv:2408.00118", "c = 3,"),
    "causally softcapped": (but(Plain, weigh=cap(3.0), forward=causally), "c = 3,"),
    "softcapped and hiding": (but(Hiding, weigh=cap(3.0)), "c = 3,", "conventions: hiding"),
    "softcapped and scaled": (OfGemma2, "c = 50", "scale=0.0625"),
    "the same, built": (OfGemma2(48, 4), "c = 50", "scale=0.0625"),
    "sigmoids": (weighing(torch.sigmoid), "sigmoid", "not arXiv:1602.02068"),
    "sigmoids by length": (weighing(lambda s: (s - math.log(s.shape[-1])).sigmoid()), "sigmoid",
        "logarithm"),
    "sigmoids with a bias": (weighing(lambda s: (s - 1.7).sigmoid()), "sigmoid", "-1.7"),
    "off by one": (weighing(lambda s: F.pad(s, (1, 0)).softmax(-1)[..., 1:]), "Miller"),
    "rectified": (weighing(lambda s: s.relu() / s.shape[-1]), "arXiv:2309.08586", "ReLU"),
    "linear": (Linear, "arXiv:2006.16236", "elu(x) + 1"),
    "linear, of ReLU": (but(Linear, feature=staticmethod(torch.relu)), "relu(x)"),
    "Performer": (uncommon.Performer, "arXiv:2009.14794", "1e-06"),
    "two softmaxes": (uncommon.TwoSoftmaxes, "arXiv:1812.01243"),
    "without a softmax": (weighing(lambda s: s / s.shape[-1]), "dot products", "number of keys"),
}  # fmt: skip
test_another_formula_is_named = diagnoses({
    name: (candidate, {}, "meant", "conventions: formula", "no exhibit", *facts)
    for name, (candidate, *facts) in FORMULAS.items()
})  # fmt: skip


def test_what_may_be_meant_fails_a_test_and_the_command(tmp_path, capsys):
    with pytest.raises(AssertionError, match='mask="hide"'):
        check(Hiding)
    assert check(Hiding, mask="hide")
    file = tmp_path / "mine.py"
    file.write_text(
        "from tools.broken_attentions import Plain, unscaled\n\n\n"
        "class Mine(Plain):\n"
        "    scores = unscaled\n",
        encoding="utf-8",
    )
    assert main([f"{file}:Mine"]) == 1
    assert UNLESS_MEANT in capsys.readouterr().out
    assert main([f"{file}:Mine", "--scale", "1"]) == 0


def test_each_convention_belongs_to_an_exhibit():
    assert set(CONVENTIONS) <= {exhibit.name for exhibit in museum.EXHIBITS}


# --- something else beside the output ------------------------------------------------------------


def beside(second):
    def forward(self, x):
        output, weights = self.attend(x)
        return output, second(self, x, weights)

    return but(Plain, forward=forward)


def dot_products(self, x, weights):
    return self.split(self.W_q(x)) @ self.split(self.W_k(x)).mT


BESIDE = {
    "a loss": lambda self, x, weights: weights.square().mean(),
    "the tokens": lambda self, x, weights: x,
    "one head": lambda self, x, weights: weights[:, 0],
    "dot products": dot_products,
    "no axis that is 1": lambda self, x, weights: weights.squeeze(),
}
ORDERS = (1, 0, 2, 3), (0, 2, 1, 3), (0, 2, 3, 1)
test_something_else_may_stand_beside_the_output = diagnoses({
    **{name: (beside(second), {}, "meant", "conventions: output alone")
       for name, second in BESIDE.items()},
    **{f"{name}, told": (beside(second), {"returns": first}, "healthy")
       for name, second in BESIDE.items()},
    **{f"axes {axes}": (beside(lambda self, x, weights, axes=axes: weights.permute(axes)), {},
        "healthy", "taken: returning weights [") for axes in ORDERS},
    "weights that aren't used": (beside(lambda self, x, weights: (2 * weights.log()).softmax(-1)),
        {}, "broken", "report: weights alone"),
    "more than shares": (beside(lambda self, x, weights: weights * 1.5), {}, "meant",
        "conventions: output alone", "1.5"),
})  # fmt: skip
