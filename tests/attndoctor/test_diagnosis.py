"""A diagnosis names what is wrong, also two at once, and passes what is right in other words."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from tools.broken_attentions import Plain, fit
from tools.diagnoses import diagnosed, diagnoses
from torch import nn

from attndoctor import diagnose
from attndoctor.module_under_test import reference_answer
from attndoctor.museum import SteppedAttention, named
from attndoctor.reference import reference
from attnlib import MultiHeadAttention

# --- names of bugs -------------------------------------------------------------------------------


def stepped(*names, **steps):
    """Attention with some steps of its own, and those of exhibits."""
    for name in names:
        steps |= named(name).steps
    return partial(SteppedAttention, steps=steps)


@pytest.mark.parametrize(
    "names",
    [
        ("no scale", "forgotten W_o"),
        ("view instead of transpose", "merge without transpose"),
        ("causal mask hides the token itself", "NaN rows"),
    ],
)
def test_two_bugs_at_once_are_both_named(names):
    assert {one.name for one in diagnosed(stepped(*names)).exhibits} == set(names)


def ones(mask):
    return torch.ones_like(mask)[:, None, None]


test_what_no_exhibit_has_is_described = diagnoses({
    "a second bug elsewhere": (stepped("no scale", "padding on the wrong axis"), {}, "broken",
        "only: no scale", "report: more", "padding, "),
    "1.5 shares": (stepped(softmax=lambda scores: scores.softmax(-1) * 1.5), {}, "broken",
        "no exhibit", "1.5"),
    "one head's weights": (stepped(report=lambda weights: weights[:, :1]), {}, "",
        "no exhibit", "[2, 1, 7, 7]", "[2, 3, 7, 7]"),
    "one more": (stepped(project_out=lambda module, joined: module.W_o(joined) + 1), {}, "broken",
        "no exhibit", "by up to 1"),
    "NaN": (stepped(softmax=lambda scores: scores / 0 * 0), {}, "broken", "no exhibit", "NaN"),
    "an error": (stepped(merge=lambda heads: heads.view(1000003)), {}, "broken", "no exhibit",
        "RuntimeError"),
    "no padding": (stepped(fit_key_mask=ones), {}, "broken", "no exhibit", "first: padding"),
    "padding turned": (stepped(fit_key_mask=lambda mask: ~mask[:, None, None]), {}, "broken",
        "no exhibit", "first: padding"),
    "no dropout": (stepped(drop=lambda weights, dropout: (weights, weights)), {}, "broken",
        "no exhibit", "first: training with dropout"),
})  # fmt: skip


# --- what is right passes, in other words --------------------------------------------------------


class WithEinsum(Plain):
    """Self-attention alone, without masks."""

    def forward(self, x):
        q, k, v = (W(x).unflatten(-1, (self.num_heads, -1)) for W in (self.W_q, self.W_k, self.W_v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        heads = torch.einsum("bhqk,bkhd->bqhd", weights := scores.softmax(-1), v)
        return self.W_o(heads.flatten(2)), weights


class WithALoop(Plain):
    """One head after the other, with masks of two dimensions or three."""

    def forward(self, query, key, value, mask=None):
        outputs, maps = [], []
        allowed = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
        projected = self.W_q(query), self.W_k(key), self.W_v(value)
        for q, k, v in zip(*(x.chunk(self.num_heads, -1) for x in projected), strict=True):
            scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~allowed, -torch.inf)
            largest = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
            exponentials = (scores - largest).exp()
            weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-6)
            outputs.append(weights @ v)
            maps.append(weights)
        return self.W_o(torch.cat(outputs, -1)), torch.stack(maps, 1)


class WithSoftmaxInFloat32(Plain):
    """Half precision, but for the softmax, whose weights are shown as they are."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads)
        self.dropout = dropout

    def forward(self, x, mask=None):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = self.weigh(scores.float(), fit(mask))
        return self.mix(F.dropout(weights, self.dropout, self.training).to(v.dtype), v), weights


class Fused(Plain):
    """The kernel, which returns no weights."""

    def forward(self, query, key=None, value=None, *, mask=None, key_mask=None, causal=False):
        q, k, v = map(self.split, (self.W_q(query), self.W_k(key), self.W_v(value)))
        alone = causal and mask is None and key_mask is None
        allowed = None if alone else fit(mask, key_mask)
        if causal and not alone:
            allowed = allowed & torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        heads = F.scaled_dot_product_attention(q, k, v, allowed, is_causal=alone)
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


class DropsInEvaluation(WithSoftmaxInFloat32):
    def train(self, mode=True):
        return super().train(True)


LOADED, LACKS = {"load": load_torch}, "report: not offered"
test_what_a_reader_writes = diagnoses({
    "attnlib": (MultiHeadAttention, {}, "healthy", f"not {LACKS}"),
    "in steps": (stepped(), {"load": copy_state}, "healthy", f"not {LACKS}"),
    "einsum": (WithEinsum, {}, "healthy", LACKS, "(17 questions)", "(4 questions)", "causal,"),
    "a loop": (WithALoop, {}, "healthy", LACKS, "not skipped: a mask"),
    "float32 softmax": (WithSoftmaxInFloat32, {}, "healthy", "not skipped: dropout on average"),
    "fused": (Fused, {}, "healthy", "not skipped: causal", "not skipped: padding"),
    "torch": (Torch, LOADED, "healthy", "not skipped: limits together"),
    "drops in evaluation": (DropsInEvaluation, {}, "broken", "first: training with dropout"),
})  # fmt: skip


def test_as_much_is_asked_as_a_module_offers():
    """Each takes more than the one before it."""
    candidates = ((WithEinsum, {}), (WithALoop, {}), (WithSoftmaxInFloat32, {}), (Torch, LOADED),
                  (Fused, {}), (MultiHeadAttention, {}))  # fmt: skip
    counts = [len(diagnosed(candidate, **options).not_run) for candidate, options in candidates]
    assert counts == [34, 19, 15, 14, 12, 0]


def test_several_findings_are_a_list():
    diagnosis = diagnosed(nn.MultiheadAttention)
    heading, *lines = repr(diagnosis).split("\n")
    assert heading == diagnosis.heading and len(lines) == 5
    assert [line[:2] == "* " for line in lines] == [True, True, False, False, False]
    assert diagnosis.taken in lines[-1]
    shown = diagnosis._repr_html_()
    assert shown.startswith('<div class="verdict verdict-passed"><p><strong>')
    assert shown.count("<li>") == 2 and shown.count("<p>") == 4 and "&quot;" in shown


def test_the_steps_are_attention():
    module = MultiHeadAttention(12, 6, num_kv_heads=2)
    stepped = SteppedAttention(12, 6, num_kv_heads=2, steps={})
    stepped.load_state_dict(module.state_dict())
    x, mask = torch.randn(2, 5, 12), torch.rand(2, 5, 5) < 0.5
    for options in ({}, {"causal": True}, {"mask": mask, "causal": True}):
        ours, theirs = stepped(x, **options), module(x, need_weights=True, **options)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


# --- leaving things as they were ------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_s_settings_change_no_diagnosis(dtype):
    """Neither one made within them nor one made later, for which answers are kept."""
    bug = named("NaN only in the gradient")
    for function in (reference_answer, reference):
        function.cache_clear()
    torch.set_default_dtype(dtype)
    with torch.inference_mode(), torch.device("meta"), torch.autocast("cpu", torch.bfloat16):
        within = diagnose(MultiHeadAttention), diagnose(bug)
    torch.set_default_dtype(torch.float32)
    for healthy, broken in (within, (diagnose(MultiHeadAttention), diagnose(bug))):
        assert healthy and broken.exhibits == (bug,)


def test_the_reader_s_random_numbers_stay_the_same():
    torch.manual_seed(3)
    diagnose(WithEinsum)
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), after)
