"""A diagnosis names what is wrong, also two at once, and passes what is right in other words."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from tools.broken_attentions import Plain, fit
from tools.diagnoses import diagnoses
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


@pytest.mark.parametrize("names", [
    ("no scale", "forgotten W_o"), ("causal mask hides the token itself", "NaN rows"),
])  # fmt: skip
def test_two_bugs_at_once_are_both_named(names):
    assert {one.name for one in diagnose(stepped(*names)).exhibits} == set(names)


test_what_no_exhibit_has_is_described = diagnoses({
    "a second bug elsewhere": (stepped("no scale", "padding on the wrong axis"), {}, "broken",
        "only: no scale", "report: more", "padding, "),
    "one head's weights": (stepped(report=lambda weights: weights[:, :1]), {}, "",
        "no exhibit", "[2, 1, 7, 7] instead of [2, 3, 7, 7]"),
    "one more": (stepped(project_out=lambda module, joined: module.W_o(joined) + 1), {}, "broken",
        "no exhibit", "by up to 1"),
    "NaN": (stepped(softmax=lambda scores: scores / 0 * 0), {}, "broken", "no exhibit", "NaN",
        "not report: varies"),
    "an error": (stepped(merge=lambda heads: heads.view(1000003)), {}, "broken", "no exhibit",
        "RuntimeError"),
})  # fmt: skip

# --- what is right passes, in other words --------------------------------------------------------


class WithEinsum(Plain):
    """Self-attention alone, without masks."""

    def forward(self, x):
        q, k, v = (W(x).unflatten(-1, (self.num_heads, -1)) for W in (self.W_q, self.W_k, self.W_v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        heads = torch.einsum("bhqk,bkhd->bqhd", weights := scores.softmax(-1), v)
        return self.W_o(heads.flatten(2)), weights


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


class DropsInEvaluation(WithSoftmaxInFloat32):
    def train(self, mode=True):
        return super().train(True)


LACKS = "report: not offered"
test_what_a_reader_writes = diagnoses({
    "attnlib": (MultiHeadAttention, {}, "healthy", f"not {LACKS}"),
    "in steps": (stepped(), {"load": lambda module, reference:
        module.load_state_dict(reference.state_dict())}, "healthy", f"not {LACKS}"),
    "einsum": (WithEinsum, {}, "healthy", LACKS, "(17 questions)", "(4 questions)", "causal,"),
    "float32 softmax": (WithSoftmaxInFloat32, {}, "healthy", "not skipped: dropout on average",
        "not taken: given its dropout", "fewer key heads than query heads"),
    "fused": (Fused, {}, "healthy", "not skipped: causal", "not skipped: padding"),
    "drops in evaluation": (DropsInEvaluation, {}, "broken", "first: training with dropout"),
})  # fmt: skip


def test_several_findings_are_a_list():
    diagnosis = diagnose(nn.MultiheadAttention)
    heading, *lines = repr(diagnosis).split("\n")
    assert heading == diagnosis.heading and len(lines) == 5
    assert [line[:2] == "* " for line in lines] == [True, True, False, False, False]
    assert diagnosis.taken in lines[-1]
    shown = diagnosis._repr_html_()
    assert shown.startswith('<div class="verdict verdict-passed"><p><strong>')
    assert shown.count("<li>") == 2 and shown.count("<p>") == 4 and "&quot;" in shown


# --- leaving things as they were ------------------------------------------------------------------


@pytest.mark.thorough
def test_torch_s_settings_change_no_diagnosis():
    """Neither one made within them nor one made later, for which answers are kept."""
    bug = named("NaN only in the gradient")
    for function in (reference_answer, reference):
        function.cache_clear()
    torch.set_default_dtype(torch.float64)
    with torch.inference_mode(), torch.device("meta"), torch.autocast("cpu", torch.bfloat16):
        within = diagnose(bug)
    torch.set_default_dtype(torch.float32)
    for diagnosis in (within, diagnose(bug)):
        assert diagnosis and diagnosis.exhibits == (bug,)


def test_the_reader_s_random_numbers_stay_the_same():
    torch.manual_seed(3)
    diagnose(WithEinsum)
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), after)
