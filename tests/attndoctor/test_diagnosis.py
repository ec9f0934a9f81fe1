"""A diagnosis names what is wrong, also two at once, and passes what is right in other words."""

import math
from contextlib import contextmanager
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from tools.broken_attentions import MadeAnew, scaled_by
from torch import nn

from attndoctor import diagnose
from attndoctor.module_under_test import reference_answer
from attndoctor.museum import SteppedAttention, named
from attndoctor.reference import reference
from attnlib import MultiHeadAttention


@contextmanager
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


# --- names of bugs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("no scale", "forgotten W_o"),
        ("view instead of transpose", "merge without transpose"),
        ("causal mask hides the token itself", "NaN rows"),
    ],
)
def test_two_bugs_at_once_are_both_named(names):
    pair = tuple(named(name) for name in names)
    broken = partial(SteppedAttention, steps=pair[0].steps | pair[1].steps)
    assert set(diagnose(broken).exhibits) == set(pair)


def test_a_second_bug_elsewhere_is_mentioned():
    steps = named("no scale").steps | named("padding on the wrong axis").steps
    diagnosis = diagnose(partial(SteppedAttention, steps=steps))
    assert diagnosis.exhibits == (named("no scale"),)
    assert "There is more (padding, " in diagnosis.message


@pytest.mark.thorough
def test_a_bug_that_no_exhibit_has_is_described():
    for steps, words in (
        ({"softmax": lambda scores: scores.softmax(-1) * 1.5}, "rows of the weights sum to 1.5"),
        ({"report": lambda weights: weights[:, :1]}, "shape [2, 1, 7, 7] instead of [2, 3, 7, 7]"),
        ({"project_out": lambda module, joined: module.W_o(joined) + 1}, "differs by up to 1"),
        ({"softmax": lambda scores: scores / 0 * 0}, "hold NaN"),
        ({"merge": lambda heads: heads.view(1000003)}, "raises RuntimeError"),
        ({"fit_key_mask": lambda mask: torch.ones_like(mask)[:, None, None]}, "with padding"),
        ({"fit_key_mask": lambda mask: ~mask[:, None, None]}, "with padding"),
        ({"drop": lambda weights, dropout: (weights, weights)}, "with dropout"),
    ):
        diagnosis = diagnose(partial(SteppedAttention, steps=steps))
        assert not diagnosis and diagnosis.exhibits == ()
        assert words in diagnosis.message


# --- what is right passes, in other words --------------------------------------------------------


class Projections(nn.Module):
    """The four matrices that everybody has."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def heads(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)


class WithEinsum(Projections):
    """Self-attention alone, without masks."""

    def forward(self, x):
        q, k, v = (W(x).unflatten(-1, (self.h, -1)) for W in (self.W_q, self.W_k, self.W_v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        weights = scores.softmax(-1)
        return self.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2)), weights


class WithALoop(Projections):
    """One head after the other, with masks of two dimensions or three."""

    def forward(self, query, key, value, mask=None):
        outputs, maps = [], []
        allowed = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
        for q, k, v in zip(
            *(
                W(x).chunk(self.h, -1)
                for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
            ),
            strict=True,
        ):
            scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~allowed, -torch.inf)
            largest = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
            exponentials = (scores - largest).exp()
            weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-6)
            outputs.append(weights @ v)
            maps.append(weights)
        return self.W_o(torch.cat(outputs, -1)), torch.stack(maps, 1)


class WithSoftmaxInFloat32(Projections):
    """Half precision, but for the softmax, whose weights are shown as they are."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads)
        self.dropout = dropout

    def forward(self, x, mask=None):
        q, k, v = (self.heads(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            mask = mask[:, None] if mask.dim() == 3 else mask
            blind = ~mask.any(-1, keepdim=True)
            scores = scores.masked_fill(~mask & ~blind, -torch.inf)
        weights = scores.softmax(-1, dtype=torch.float32)
        weights = weights if mask is None else weights.masked_fill(blind, 0.0)
        heads = F.dropout(weights, self.dropout, self.training).to(v.dtype) @ v
        return self.W_o(heads.transpose(1, 2).flatten(2)), weights


class Fused(Projections):
    """The kernel, which returns no weights."""

    def forward(self, query, key=None, value=None, *, mask=None, key_mask=None, causal=False):
        q = self.heads(self.W_q(query))
        k, v = self.heads(self.W_k(key)), self.heads(self.W_v(value))
        allowed = mask[:, None] if mask is not None and mask.dim() == 3 else mask
        if key_mask is not None:
            allowed = key_mask[:, None, None] & (True if allowed is None else allowed)
        if causal and allowed is not None:
            allowed = allowed & torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        causal = causal and allowed is None
        heads = F.scaled_dot_product_attention(q, k, v, allowed, is_causal=causal)
        return self.W_o(heads.transpose(1, 2).flatten(2))


class Torch(nn.Module):
    """nn.MultiheadAttention, with everything turned that has to be."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, query, key, value, *, mask=None, key_mask=None):
        hide = None if mask is None else ~mask
        if hide is not None and hide.dim() == 3:
            hide = hide.repeat_interleave(self.inner.num_heads, 0)
        padding = None if key_mask is None else ~key_mask
        blind = None if hide is None else hide.all(-1)
        if blind is not None:  # NaN, otherwise
            hide = hide & ~blind[..., None]
        output, weights = self.inner(
            query, key, value, attn_mask=hide, key_padding_mask=padding, average_attn_weights=False
        )
        if blind is not None and blind.dim() == 1:
            output = torch.where(blind[None, :, None], self.inner.out_proj.bias, output)
            weights = weights.masked_fill(blind[None, None, :, None], 0.0)
        return output, weights


def copy_state(module, reference):
    module.load_state_dict(reference.state_dict())


def load_torch(module, reference):
    layers = reference.W_q, reference.W_k, reference.W_v
    with torch.no_grad():
        module.inner.in_proj_weight.copy_(torch.cat([W.weight for W in layers]))
        module.inner.in_proj_bias.copy_(torch.cat([W.bias for W in layers]))
    module.inner.out_proj.load_state_dict(reference.W_o.state_dict())


@pytest.mark.parametrize(
    ("candidate", "load", "untried"),
    [
        (MultiHeadAttention, None, 0),
        (partial(SteppedAttention, steps={}), copy_state, 0),
        (WithEinsum, None, 34),
        (WithALoop, None, 19),
        (WithSoftmaxInFloat32, None, 15),
        (Fused, None, 12),
        (Torch, load_torch, 14),
    ],
    ids=["attnlib", "in steps", "einsum", "loop", "float32 softmax", "fused", "torch"],
)  # fmt: skip
def test_what_is_right_passes_in_other_words(candidate, load, untried):
    diagnosis = diagnose(candidate, load=load)
    assert diagnosis and not diagnosis.failed, diagnosis
    assert len(diagnosis.untried) == untried
    assert repr(diagnosis).startswith("Healthy. ")
    assert ("Not tested, because it doesn't offer" in diagnosis.message) == bool(untried)


def test_an_answer_that_varies_is_told():
    assert "Asked the same once more, it gives another answer" in diagnose(MadeAnew).message
    assert "Asked the same once more" not in diagnose(scaled_by(lambda **_: 2)).message


def test_what_is_not_asked_is_told_by_its_reasons():
    assert (
        "Not tested, because it doesn't offer them under a known name: a second sequence "
        "(2 questions), masks (17 questions), padding (4 questions), causal, two limits at once, "
        "a cache, fewer key heads than query heads (2 questions), dropout (5 questions), keys or "
        "values left out." in diagnose(WithEinsum).message
    )


def test_several_findings_are_a_list():
    diagnosis = diagnose(nn.MultiheadAttention)
    heading, *lines, taken = repr(diagnosis).split("\n")
    assert heading == diagnosis.heading == "Healthy, but it differs at the edges."
    assert [line[:17] for line in lines] == ["* It behaves like"] * 2 + [
        "Tested with rando", "Not tested, becau",
    ]  # fmt: skip
    assert taken.startswith("Taken as: not causal; forward(query, key, ")
    shown = diagnosis._repr_html_()
    assert shown.startswith('<div class="verdict verdict-passed"><p><strong>Healthy, but')
    assert shown.count("<li>It behaves like &quot;") == 2 and shown.count("<p>") == 4


def test_torch_s_own_module_is_named_for_what_it_does():
    """Unadapted, it averages heads; with all heads it still has NaN rows."""

    class Averaging(Torch):
        def forward(self, query, key, value):
            return self.inner(query, key, value)

    class Naive(Torch):
        def forward(self, query, key, value, *, mask=None):
            hide = None if mask is None or mask.dim() == 3 else ~mask
            if mask is not None and mask.dim() == 3:
                hide = ~mask.repeat_interleave(self.inner.num_heads, 0)
            return self.inner(query, key, value, attn_mask=hide, average_attn_weights=False)

    assert diagnose(Averaging, load=load_torch).exhibits == (named("averaged heads"),)
    assert diagnose(Naive, load=load_torch).exhibits == (named("NaN rows"),)


def test_a_bug_in_a_reader_s_own_class_is_named():
    class Mine(WithALoop):
        def forward(self, query, key, value, mask=None):
            if mask is not None:
                mask = ~mask
            return super().forward(query, key, value, mask)

    assert diagnose(Mine).exhibits == (named("inverted mask"),)


def test_the_steps_are_attention():
    module = MultiHeadAttention(12, 6, num_kv_heads=2)
    stepped = SteppedAttention(12, 6, num_kv_heads=2, steps={})
    stepped.load_state_dict(module.state_dict())
    x, mask = torch.randn(2, 5, 12), torch.rand(2, 5, 5) < 0.5
    for options in ({}, {"causal": True}, {"mask": mask, "causal": True}):
        ours, theirs = stepped(x, **options), module(x, need_weights=True, **options)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


# --- leaving things as they were ------------------------------------------------------------------


def test_dropout_in_evaluation_is_found():
    class Forgets(WithSoftmaxInFloat32):
        def train(self, mode=True):
            return super().train(True)

    diagnosis = diagnose(Forgets)
    assert not diagnosis and diagnosis.failed == ("training with dropout",)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "settings",
    [
        torch.no_grad,
        torch.inference_mode,
        partial(torch.autocast, "cpu", torch.bfloat16),
        partial(torch.device, "meta"),
        float64_by_default,
    ],
    ids=["no_grad", "inference_mode", "autocast", "another device", "float64"],
)
def test_torch_s_settings_change_no_diagnosis(settings):
    """Neither one made within them nor one made later, for which answers are kept."""
    bug = named("NaN only in the gradient")
    for function in (reference_answer, reference):
        function.cache_clear()
    with settings():
        within = diagnose(MultiHeadAttention), diagnose(bug)
    for healthy, broken in (within, (diagnose(MultiHeadAttention), diagnose(bug))):
        assert healthy and broken.exhibits == (bug,)


def test_the_reader_s_random_numbers_stay_the_same():
    torch.manual_seed(3)
    diagnose(WithEinsum)
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), after)
