"""What is right under another convention, or by another formula, isn't simply called broken."""

import math

import pytest
import torch
import torch.nn.functional as F
from tools import public_attentions as public
from tools import uncommon_attentions as uncommon
from tools.broken_attentions import Limited, Plain, but, fit, scaled_by, unscaled
from tools.diagnoses import ask, diagnoses

from attndoctor import diagnose

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


class WithoutLastLayer(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        del self.W_o

    def mix(self, weights, v):
        return (weights @ v).transpose(1, 2).flatten(2)


DIVIDED = scaled_by(lambda d_k, **_: d_k)
# A candidate, what makes it healthy once it is said, and what is told of it before.
MEANT = {
    "True hides": (Hiding, {"mask": "hide"}, "conventions: hiding"),
    "padding, True hides": (PaddingThatHides, {"mask": "hide"}, "conventions: hiding"),
    "padding called key_mask": (PaddingByKeysThatHides, {"key_mask": "hide"},
        "conventions: padding hides"),
    "added": (Adding, {"mask": "add"}, "conventions: added"),
    "sequence first": (SequenceFirst, {"batch_first": False}, "conventions: tokens first"),
    "muP's scale": (DIVIDED, {"scale": lambda d_k: 1 / d_k}, "scale=lambda d_k: 1 / d_k,",
        "only: scale applied twice"),
    "one twelfth": (scaled_by(lambda **_: 12), {"scale": 0.083333333}, "scale=0.08333", "0.3162"),
    "a mean of heads": (but(Plain, forward=lambda self, x: (self.attend(x)[0],
        self.attend(x)[1].mean(1))), {"returns": lambda result: result[0]}, "returns=lambda"),
    "unscaled, True hides": (but(Hiding, scores=unscaled), {"scale": 1, "mask": "hide"},
        "conventions: hiding", "scale=1"),
    "no last layer": (WithoutLastLayer, {"out_projection": False}, "conventions: no projection"),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANT)
def test_another_convention_is_told_and_healthy_once_it_is_said(name):
    candidate, options, *facts = MEANT[name]
    ask(candidate, "meant", *facts)
    assert diagnose(candidate, **options)


def cap(c):
    return lambda self, scores, allowed: Limited.weigh(self, c * torch.tanh(scores / c), allowed)


test_what_no_single_convention_makes_right_is_broken = diagnoses({
    "told that it keeps": (Hiding, {"mask": "keep"}, "broken", "not conventions: hiding"),
    "muP's scale, told T5's": (DIVIDED, {"scale": 1}, "broken", "not say scale",
        "not conventions: scale applied twice"),
    # The roots of 10 and of 14, rounded down; another scale, the same for every d_k, may be meant.
    "a rounded root": (scaled_by(lambda **_: 3), {}, "broken"),
    "says batch_first": (but(SequenceFirst, batch_first=True), {}, "broken",
        "not conventions: tokens first"),
    "capped, and a mask thrown away": (but(Limited, weigh=cap(3.0),
        forward=lambda self, query, mask=None: Limited.forward(self, query)), {}, "broken",
        "report: another formula"),
})  # fmt: skip

# --- formulas ------------------------------------------------------------------------------------


def weighing(weigh):
    """Self-attention with weights made of its scores in another way."""
    return but(Plain, forward=lambda self, x: self.attend(x)[0],
               weigh=lambda self, scores, allowed: weigh(scores))  # fmt: skip


class Linear(public.Usual):
    """Keys and values are summed first: no weights are made."""

    def mix(self, q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return q @ (k.mT @ v) / (q @ k.sum(-2, keepdim=True).mT)


def above_a_threshold(power):
    """Sparsemax (1) and entmax (2): shares are what is above a threshold, found by bisection."""

    def weigh(scores):
        def shares(threshold):
            return (scores / power - threshold).relu() ** power

        high = scores.detach().amax(-1, keepdim=True) / power
        low = high - 1
        for _ in range(40):
            middle = (low + high) / 2
            more = shares(middle).sum(-1, keepdim=True) > 1
            low, high = torch.where(more, middle, low), torch.where(more, high, middle)
        # A step of Newton's method, through which gradients flow.
        fall = power * (shares(low) ** (1 - 1 / power) * (shares(low) > 0)).sum(-1, keepdim=True)
        return shares(low + (shares(low).sum(-1, keepdim=True) - 1) / fall.detach())

    return weigh


class OfTheThreeLargest(Limited):
    def weigh(self, scores, allowed):
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -math.inf)
        ranks = scores.argsort(-1, descending=True).argsort(-1)
        return scores.masked_fill(ranks > 2, -math.inf).softmax(-1)


class Differential(Limited):
    def scores(self, q, k):
        (q, other_q), (k, other_k) = (x.chunk(2, -1) for x in (q, k))
        return torch.stack([q @ k.mT, other_q @ other_k.mT]) / math.sqrt(self.d_k / 2)

    def weigh(self, scores, allowed):
        first, second = (super(Differential, self).weigh(one, allowed) for one in scores)
        return first - 0.8 * second


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
    "sparsemax": (weighing(above_a_threshold(1)), "arXiv:1602.02068"),
    "entmax": (weighing(above_a_threshold(2)), "arXiv:1905.05702", "1.5"),
    "the three largest": (OfTheThreeLargest, "arXiv:1912.11637", "3 largest"),
    "the larger half": (weighing(larger_half), "arXiv:1912.11637", "not 3 largest"),
    "differential": (Differential, "arXiv:2410.05258", "0.8", "not unscaled"),
    "softcapped and hiding": (but(Hiding, weigh=cap(3.0)), "arXiv:2408.00118", "c = 3,",
        "conventions: hiding"),
    "softcapped and scaled": (OfGemma2, "c = 50", "scale=0.0625"),
    "sigmoids by length": (weighing(lambda s: (s - math.log(s.shape[-1])).sigmoid()), "sigmoid",
        "logarithm"),
    "sigmoids with a bias": (weighing(lambda s: (s - 1.7).sigmoid()), "sigmoid", "-1.7"),
    "off by one": (weighing(lambda s: F.pad(s, (1, 0)).softmax(-1)[..., 1:]), "Miller"),
    "rectified": (weighing(lambda s: s.relu() / s.shape[-1]), "arXiv:2309.08586", "ReLU"),
    "linear": (Linear, "arXiv:2006.16236", "elu(x) + 1"),
    "Performer": (uncommon.Performer, "arXiv:2009.14794", "1e-06"),
    "two softmaxes": (uncommon.TwoSoftmaxes, "arXiv:1812.01243"),
    "without a softmax": (weighing(lambda s: s / s.shape[-1]), "dot products", "number of keys"),
}  # fmt: skip
test_another_formula_is_named = diagnoses({
    name: (candidate, {}, "meant", "conventions: formula", "no exhibit", *facts)
    for name, (candidate, *facts) in FORMULAS.items()
})  # fmt: skip

# --- something else beside the output ------------------------------------------------------------


def beside(second):
    def forward(self, x):
        output, weights = self.attend(x)
        return output, second(self, x, weights)

    return but(Plain, forward=forward)


ALONE = "conventions: output alone"
test_something_else_may_stand_beside_the_output = diagnoses({
    "a loss": (beside(lambda self, x, weights: weights.square().mean()), {}, "meant", ALONE),
    "dot products": (beside(lambda self, x, weights:
        self.split(self.W_q(x)) @ self.split(self.W_k(x)).mT), {}, "meant", ALONE),
    **{f"axes {axes}": (beside(lambda self, x, weights, axes=axes: weights.permute(axes)), {},
        "healthy", "taken: returning weights [") for axes in ((1, 0, 2, 3), (0, 2, 3, 1))},
    "weights that aren't used": (beside(lambda self, x, weights: (2 * weights.log()).softmax(-1)),
        {}, "broken", "report: weights alone"),
    "more than shares": (beside(lambda self, x, weights: weights * 1.5), {}, "meant", ALONE, "1.5"),
})  # fmt: skip
