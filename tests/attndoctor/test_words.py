"""What a diagnosis says where no exhibit is behind a bug, and of what it left out."""

import re
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from tools import ROOT
from tools.broken_attentions import Limited, Plain
from torch import nn

from attndoctor import CallError, diagnose
from attndoctor.museum import named
from attndoctor.not_comparable import hints_at_positions
from attndoctor.probes import PROBES

diagnosed = cache(diagnose)


class PaddedAs(Plain):
    """Padding [B, T] in an argument with the name that transformers has for it."""

    def forward(self, x, attention_mask=None):
        allowed = None if attention_mask is None else self.read(attention_mask)[:, None, None]
        return self.attend(x, allowed=allowed)[0]


class Padded(PaddedAs):
    def read(self, mask):
        return mask == 1


class PaddedTheOtherWay(PaddedAs):
    def read(self, mask):
        return mask == 0

    def weigh(self, scores, allowed):
        return (scores if allowed is None else scores.masked_fill(~allowed, -1e9)).softmax(-1)


class PaddedWithTooLittle(Padded):
    def weigh(self, scores, allowed):
        return (scores if allowed is None else scores.masked_fill(~allowed, -10.0)).softmax(-1)


class PaddingSwitchesCausalityOff(Plain):
    def forward(self, x, key_padding_mask=None):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        mask = None if key_padding_mask is None else ~key_padding_mask[:, None, None]
        heads = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
        return self.W_o(heads.transpose(1, 2).flatten(2))


class MaskReplacesTheTriangle(Plain):
    def forward(self, x, mask=None):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        heads = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
        return self.W_o(heads.transpose(1, 2).flatten(2))


class ShowsUnmasked(Limited):
    def forward(self, x, mask=None):
        return super().forward(x, mask=mask)[0], super().forward(x)[1]


class TwiceTheShares(Plain):
    def forward(self, x):
        return self.attend(x)[0]

    def weigh(self, scores, allowed):
        return 2 * scores.softmax(-1)


class Cubed(TwiceTheShares):
    def weigh(self, scores, allowed):
        return (scores**3).softmax(-1)


class Rounded(TwiceTheShares):
    def weigh(self, scores, allowed):
        return ((32 * scores).round() / 32).softmax(-1)


class NormalizedFirst(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, rotation=None):
        return self.attend(self.norm(x))


class NeverDrops(Plain):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads)


SAID = {
    "too little": (PaddedWithTooLittle, "If the number that stands for minus infinity isn't low"),
    "weights alone": (ShowsUnmasked, "Its output is right: the weights that it returns aren't"),
    "shares of 2": (TwiceTheShares, "rows of its weights don't sum to 1"),
    "cubed": (Cubed, "look at how scores become weights"),
    "rounded": (Rounded, "a lower precision inside"),
    "dropout": (NeverDrops, "training isn't random."),
}


@pytest.mark.parametrize("name", SAID)
def test_what_no_exhibit_is_gets_words(name):
    candidate, words = SAID[name]
    diagnosis = diagnosed(candidate)
    assert diagnosis.heading == "Broken." and diagnosis.exhibits == ()
    assert words in diagnosis.message
    others = {said for one, said in SAID.values() if one is not candidate}
    assert not any(said in diagnosis.message for said in others)


def test_padding_as_transformers_has_it_is_healthy():
    diagnosis = diagnosed(Padded)
    assert diagnosis.heading == "Healthy." or set(diagnosis.failed) == set(diagnosis.edges)
    assert "its attention_mask [B, T] where True = may look" in diagnosis.taken
    assert diagnose(PaddedTheOtherWay, mask="hide")


def test_a_mask_that_switches_causality_off_is_told():
    off = named("a mask switches causality off")
    assert diagnosed(PaddingSwitchesCausalityOff).exhibits == (off,)
    replaced = diagnosed(MaskReplacesTheTriangle)
    assert replaced and off.name in replaced.message


def test_what_was_left_out_is_told():
    message = diagnosed(NormalizedFirst).message
    assert "Not tested: where its normalization acts" in message
    assert "Left at their defaults: rotation of its forward" in message
    assert "Left at their defaults" not in diagnosed(Padded).message


def test_names_hint_at_positions_by_whole_words():
    module = nn.Module()
    module.protected, module.calibined = torch.ones(1), torch.ones(1)
    module.norm_position, module.use_rope = "pre", True
    assert hints_at_positions(module) is None
    for name in ("rotary_emb", "inv_freq", "relativePositionBias"):
        other = nn.Module()
        setattr(other, name, torch.ones(1))
        assert hints_at_positions(other) == name


def test_options_that_contradict_the_module_are_told():
    assert "W_o.weight filled with the identity" in diagnose(Plain, out_projection=False).taken
    told = diagnose(Plain, bias=False).taken
    assert "its biases (W_q.bias, W_k.bias, W_v.bias, W_o.bias) filled with 0" in told
    assert "filled" not in diagnose(Plain).taken


class Lazy(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.LazyLinear(d_model) for _ in range(4))

    def forward(self, x):
        return self.W_o(x)


@pytest.mark.parametrize("candidate", [Lazy, Lazy(12, 3)])
def test_lazy_layers_have_no_numbers_yet(candidate):
    with pytest.raises(CallError, match=r"W_q\.weight.* at the first call: use nn\.Linear"):
        diagnose(candidate)


def test_a_kernel_is_no_module():
    with pytest.raises(CallError, match=r"built into C.*hand in the module that calls it"):
        diagnose(F.scaled_dot_product_attention)


def test_a_name_that_is_nearly_right_is_told():
    with pytest.raises(ValueError, match="got 'no scle'; is 'no scale' meant\\?"):
        named("no scle")


def headings_of(text):
    return re.findall("^# (.+)$", text.read_text(encoding="utf-8"), re.MULTILINE)


TEXTS = sorted((ROOT / "src" / "attndoctor").glob("*.md"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)
def test_every_text_is_said(text):
    headings = headings_of(text)
    assert headings and len(set(headings)) == len(headings)
    code = "".join(file.read_text(encoding="utf-8") for file in text.parent.glob("*.py"))
    names = {name for heading in headings for name in heading.split(" / ")}
    assert {name for name in names if not re.search(f"[\"']{re.escape(name)}[\"']", code)} == set()


def test_every_probe_has_its_text():
    (text,) = (text for text in TEXTS if text.stem == "probes")
    told = {name for names in headings_of(text) for name in names.split(" / ")}
    assert told == {probe.name for probe in PROBES} and all(probe.says for probe in PROBES)
