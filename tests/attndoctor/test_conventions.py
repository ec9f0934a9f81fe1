"""What is right under another convention, or by another formula, isn't simply called broken."""

import math
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from tools import public_attentions as public
from tools.broken_attentions import Limited, Plain
from torch import nn

from attndoctor import check, diagnose, museum
from attndoctor.__main__ import main
from attndoctor.conventions import CONVENTIONS as KNOWN
from attndoctor.diagnosis import UNLESS_MEANT
from attndoctor.museum import named
from attnlib import MultiHeadAttention
from attnlib.functional import merge_heads, split_heads

pytestmark = pytest.mark.thorough

diagnosed = cache(diagnose)


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


class PaddingThatHides(Plain):
    def forward(self, x, attention_mask=None):
        allowed = None if attention_mask is None else (attention_mask == 0)[:, None, None]
        return self.attend(x, allowed=allowed)[0]


class SequenceFirst(Plain):
    def forward(self, x):
        output, weights = self.attend(x.transpose(0, 1))
        return output.transpose(0, 1), weights


class Scaled(Plain):
    scale = 1.0

    def scores(self, q, k):
        return q @ k.mT * self.scale


class DividedByD(Plain):
    def scores(self, q, k):
        return q @ k.mT / self.d_k


class OfGranite(Scaled):
    scale = 0.0156


class AveragesHeads(Plain):
    def forward(self, x):
        output, weights = self.attend(x)
        return output, weights.mean(1)


class WithoutLastLayer(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        del self.W_o

    def mix(self, weights, v):
        return (weights @ v).transpose(1, 2).flatten(2)


class HidingAndUnscaled(Hiding):
    def scores(self, q, k):
        return q @ k.mT


class AddingUnscaled(Adding):
    """T5's."""

    def scores(self, q, k):
        return q @ k.mT


class AroundTorch(nn.Module):
    """Its weights are the mean of the heads, and its mask hides."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, x, mask=None):
        return self.inner(x, x, x, attn_mask=mask)


class SequenceFirstHiding(Hiding):
    def forward(self, x, mask=None):
        output, weights = super().forward(x.transpose(0, 1), mask)
        return output.transpose(0, 1), weights


class SequenceFirstUnscaled(SequenceFirst):
    def scores(self, q, k):
        return q @ k.mT


class CausalHiding(Plain):
    def forward(self, x, mask=None):
        allowed = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        if mask is not None:
            allowed = allowed & ~(mask[:, None] if mask.dim() == 3 else mask)
        return self.attend(x, allowed=allowed)


class PaddingByKeysThatHides(Plain):
    def forward(self, x, key_mask=None):
        allowed = None if key_mask is None else ~key_mask[:, None, None]
        return self.attend(x, allowed=allowed)


class OneTwelfth(Scaled):
    scale = 1 / 12


class OneSixtyFourth(Scaled):
    scale = 1 / 64


class EightByD(Plain):
    def scores(self, q, k):
        return q @ k.mT * 8 / self.d_k


CONVENTIONS = {
    "True hides": (Hiding, {"mask": "hide"}, 'say mask="hide"'),
    "padding, True hides": (PaddingThatHides, {"mask": "hide"}, 'say mask="hide"'),
    "added": (Adding, {"mask": "add"}, 'say mask="add"'),
    "scores shown, added": (public.ShowsItsScores, {"mask": "add"}, 'say mask="add"'),
    "heads before samples": (public.HeadsBeforeSamples, {"mask": "hide"}, 'say mask="hide"'),
    "sequence first": (SequenceFirst, {"batch_first": False}, "say batch_first=False"),
    "T5's scale": (Scaled, {"scale": 1}, "say scale=1"),
    "muP's scale": (DividedByD, {"scale": lambda d_k: 1 / d_k}, "say scale=lambda d_k: 1 / d_k"),
    "Granite's scale": (OfGranite, {"scale": 0.0156}, "say scale=0.0156"),
    "a mean of heads": (AveragesHeads, {"returns": lambda result: result[0]}, "returns=lambda"),
    "unscaled, True hides": (HidingAndUnscaled, {"scale": 1, "mask": "hide"}, 'say mask="hide"'),
    "unscaled, added": (AddingUnscaled, {"scale": 1, "mask": "add"}, "say scale=1"),
    "torch's own, around it": (AroundTorch, {"returns": lambda result: result[0], "mask": "hide"},
        "returns=lambda"),
    "sequence first, True hides": (SequenceFirstHiding, {"batch_first": False, "mask": "hide"},
        "say batch_first=False"),
    "sequence first, unscaled": (SequenceFirstUnscaled, {"batch_first": False, "scale": 1},
        "say scale=1"),
    "always causal, True hides": (CausalHiding, {"mask": "hide"}, 'say mask="hide"'),
    "padding called key_mask": (PaddingByKeysThatHides, {"key_mask": "hide"},
        'say key_mask="hide"'),
    "one twelfth": (OneTwelfth, {"scale": 0.083333333}, "say scale=0.08333"),
    "1 / 64": (OneSixtyFourth, {"scale": 0.015625}, "say scale=0.015625."),
    "8 / d_k": (EightByD, {"scale": lambda d_k: 8 / d_k}, "say scale=lambda d_k: 8 / d_k"),
    "no last layer": (WithoutLastLayer, {"out_projection": False}, "say out_projection=False"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVENTIONS)
def test_another_convention_is_told_and_healthy_once_it_is_said(name):
    candidate, options, words = CONVENTIONS[name]
    diagnosis = diagnosed(candidate)
    assert not diagnosis and diagnosis.heading == UNLESS_MEANT, diagnosis
    assert words in diagnosis.message
    assert diagnose(candidate, **options).heading.startswith("Healthy")


class UnscaledWithAMask(Limited):
    """Right but for the scale, and a mask that a second bug throws away."""

    def forward(self, query, mask=None):
        return super().forward(query)

    def scores(self, q, k):
        return q @ k.mT


class RoundedRoot(Plain):
    """At both of the sizes that are asked the root of d_k is 3, rounded down."""

    def scores(self, q, k):
        return q @ k.mT / int(math.sqrt(self.d_k))


class SaysBatchFirst(SequenceFirst):
    batch_first = True


class SoftcappedWithoutItsMask(Limited):
    def forward(self, query, mask=None):
        return super().forward(query)

    def weigh(self, scores, allowed):
        return super().weigh(3 * torch.tanh(scores / 3), allowed)


@pytest.mark.parametrize(
    ("candidate", "options"),
    [
        (Hiding, {"mask": "keep"}),
        (Adding, {"mask": "keep"}),
        (RoundedRoot, {}),
        (SaysBatchFirst, {}),
        (SoftcappedWithoutItsMask, {}),
        (UnscaledWithAMask, {}),
    ],
)
def test_what_no_single_convention_makes_right_is_broken(candidate, options):
    """As what contradicts the reader's own word is."""
    assert diagnose(candidate, **options).heading == "Broken."


def test_what_was_told_is_not_advised_again():
    assert 'say mask="hide"' not in diagnose(Hiding, mask="keep").message
    assert "say batch_first" not in diagnosed(SaysBatchFirst).message
    told = diagnose(DividedByD, scale=1)
    assert told.heading == "Broken." and "say scale" not in told.message
    assert "divided by d_k, which is" not in told.message


def test_a_formula_and_what_is_wrong_beside_it_are_both_told():
    diagnosis = diagnosed(SoftcappedWithoutItsMask)
    assert "those of another formula: softcapped scores" in diagnosis.message
    assert "by that formula too it is wrong with a mask" in diagnosis.message


def test_modules_of_attnlib_promise_its_conventions():
    assert diagnosed(named("inverted mask")).heading == "Broken."
    assert diagnosed(named("no scale")).heading == "Broken."

    class Capped(MultiHeadAttention):
        def forward(self, query):
            q, k, v = (
                split_heads(W(query), self.num_heads) for W in (self.W_q, self.W_k, self.W_v)
            )
            scores = 3 * torch.tanh(q @ k.mT / math.sqrt(q.shape[-1]) / 3)
            return self.W_o(merge_heads(scores.softmax(-1) @ v))

    assert diagnose(Capped).heading == "Broken."


class Softcapped(Plain):
    cap = 3.0

    def weigh(self, scores, allowed):
        return super().weigh(self.cap * torch.tanh(scores / self.cap), allowed)


class SoftcappedAsGemma(Softcapped):
    cap = 20.0


class CausallySoftcapped(Softcapped):
    def forward(self, x):
        triangle = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return self.attend(x, allowed=triangle)[0]


class Sigmoids(Plain):
    def forward(self, x):
        return self.attend(x)[0]

    def weigh(self, scores, allowed):
        return scores.sigmoid()


class SigmoidsByLength(Sigmoids):
    def weigh(self, scores, allowed):
        return (scores - math.log(scores.shape[-1])).sigmoid()


class SigmoidsWithABias(Sigmoids):
    def weigh(self, scores, allowed):
        return (scores - 1.7).sigmoid()


class OffByOne(Plain):
    def weigh(self, scores, allowed):
        padded = F.pad(scores, (1, 0)).softmax(-1)
        return padded[..., 1:]


class Rectified(Plain):
    def weigh(self, scores, allowed):
        return scores.relu() / scores.shape[-1]


class Linear(Plain):
    """Keys and values are summed first: no weights are made."""

    feature = staticmethod(lambda x: F.elu(x) + 1)

    def forward(self, x):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        q, k = self.feature(q), self.feature(k)
        sums = q @ k.sum(-2, keepdim=True).mT
        return self.W_o((q @ (k.mT @ v) / sums).transpose(1, 2).flatten(2))


class LinearOfRelu(Linear):
    feature = staticmethod(torch.relu)


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


class DifferentialUnscaled(Differential):
    def scores(self, q, k):
        return super().scores(q, k) * math.sqrt(self.d_k / 2)


FORMULAS = {
    Sparsemax: "sparsemax in place of the softmax",
    Entmax: "entmax with alpha = 1.5",
    OfTheThreeLargest: "a softmax of the 3 largest scores",
    Differential: "the second one taken 0.8 times, each of half a head (",
    DifferentialUnscaled: "the second one taken 0.8 times, each of half a head, unscaled (",
    Softcapped: "softcapped scores (c tanh(s / c) with c = 3,",
    SoftcappedAsGemma: "softcapped scores (c tanh(s / c) with c = 20,",
    CausallySoftcapped: "softcapped scores (c tanh(s / c) with c = 3,",
    Sigmoids: "a sigmoid of the scores",
    SigmoidsByLength: "the logarithm of the number of keys taken off",
    SigmoidsWithABias: "with -1.7 added",
    OffByOne: "a softmax with 1 added to its sum",
    Rectified: "ReLU of the scores, divided by the number of keys",
    Linear: "linear attention with the features elu(x) + 1",
    LinearOfRelu: "linear attention with the features relu(x)",
}


@pytest.mark.parametrize("candidate", FORMULAS, ids=lambda candidate: candidate.__name__)
def test_another_formula_is_named(candidate):
    diagnosis = diagnosed(candidate)
    assert not diagnosis and diagnosis.heading == UNLESS_MEANT, diagnosis
    assert FORMULAS[candidate] in diagnosis.message and not diagnosis.exhibits
    others = {words for other, words in FORMULAS.items() if words not in FORMULAS[candidate]}
    assert not any(words in diagnosis.message for words in others - {"a sigmoid of the scores"})


class SoftcappedAndHiding(Hiding):
    def weigh(self, scores, allowed):
        return super().weigh(3 * torch.tanh(scores / 3), allowed)


class SoftcappedSequenceFirst(SequenceFirst):
    def weigh(self, scores, allowed):
        return super().weigh(3 * torch.tanh(scores / 3), allowed)


@pytest.mark.parametrize(
    ("candidate", "says"),
    [(SoftcappedAndHiding, 'say mask="hide"'), (SoftcappedSequenceFirst, "say batch_first=False")],
)
def test_a_formula_may_come_with_a_convention(candidate, says):
    diagnosis = diagnosed(candidate)
    assert diagnosis.heading == UNLESS_MEANT, diagnosis
    assert "softcapped scores (c tanh(s / c) with c = 3," in diagnosis.message
    assert says in diagnosis.message


class Cubed(Plain):
    def weigh(self, scores, allowed):
        return super().weigh(scores**3, allowed)


class TwoThirds(Softcapped):
    """Softcapped, and something else is wrong."""

    def mix(self, weights, v):
        return super().mix(weights, v * 2 / 3)


class CappedByWidth(Plain):
    """Each size of it fits another cap."""

    def weigh(self, scores, allowed):
        cap = self.d_k / 4
        return super().weigh(cap * torch.tanh(scores / cap), allowed)


@pytest.mark.parametrize("candidate", [Cubed, TwoThirds, CappedByWidth])
def test_a_formula_that_nobody_knows_is_broken(candidate):
    diagnosis = diagnosed(candidate)
    assert diagnosis.heading == "Broken." and "another formula is meant" in diagnosis.message


def test_what_may_be_meant_fails_a_test_and_the_command(tmp_path, capsys):
    with pytest.raises(AssertionError, match=r'(?s)unless it is meant so.*mask="hide"'):
        check(Hiding)
    assert check(Hiding, mask="hide")
    file = tmp_path / "mine.py"
    file.write_text(
        "from torch import nn\n\n"
        "from tools.broken_attentions import Plain\n\n\n"
        "class Mine(Plain):\n"
        "    def scores(self, q, k):\n"
        "        return q @ k.mT\n",
        encoding="utf-8",
    )
    assert main([f"{file}:Mine"]) == 1
    assert UNLESS_MEANT in capsys.readouterr().out
    assert main([f"{file}:Mine", "--scale", "1"]) == 0


def test_each_convention_belongs_to_an_exhibit():
    assert set(KNOWN) <= {exhibit.name for exhibit in museum.EXHIBITS}


# --- something else beside the output ------------------------------------------------------------


def with_second(second):
    """An attention that returns its output and another value."""

    class Returning(Plain):
        def forward(self, x):
            output, weights = self.attend(x)
            return output, second(self, x, weights)

    return Returning


BESIDE = {
    "a loss": lambda module, x, weights: weights.square().mean(),
    "the tokens": lambda module, x, weights: x,
    "one head": lambda module, x, weights: weights[:, 0],
    "scores before the scale": lambda module, x, weights: (
        module.split(module.W_q(x)) @ module.split(module.W_k(x)).mT
    ),
    "no axis that is 1": lambda module, x, weights: weights.squeeze(),
}


@pytest.mark.parametrize("second", BESIDE.values(), ids=BESIDE)
def test_a_right_output_beside_something_else_may_be_meant(second):
    diagnosis = diagnose(with_second(second))
    assert diagnosis.heading == UNLESS_MEANT, diagnosis
    assert "returns=lambda result: result[0]" in diagnosis.message
    assert diagnose(with_second(second), returns=lambda result: result[0])


@pytest.mark.parametrize("axes", [(1, 0, 2, 3), (0, 2, 1, 3), (0, 2, 3, 1)])
def test_weights_may_have_their_axes_in_another_order(axes):
    diagnosis = diagnose(with_second(lambda module, x, weights: weights.permute(axes)))
    assert diagnosis and "returning weights [" in diagnosis.taken, diagnosis


def test_weights_that_are_not_used_stay_a_bug():
    steeper = with_second(lambda module, x, weights: (2 * weights.log()).softmax(-1))
    diagnosis = diagnose(steeper)
    assert diagnosis.heading == "Broken."
    assert "the weights that it returns aren't those that it uses" in diagnosis.message


def test_a_mask_may_hide_while_dropout_is_at_work():
    class Dropping(nn.Module):
        def __init__(self, d_model, num_heads, dropout=0.1):
            super().__init__()
            self.attn = nn.MultiheadAttention(d_model, num_heads, dropout=dropout)

        def forward(self, x, mask=None, key_padding_mask=None):
            return self.attn(x, x, x, attn_mask=mask, key_padding_mask=key_padding_mask)[0]

    diagnosis = diagnose(Dropping)
    assert diagnosis.heading == UNLESS_MEANT, diagnosis
    assert "batch_first=False" in diagnosis.message and 'mask="hide"' in diagnosis.message
