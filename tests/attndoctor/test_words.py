"""What a diagnosis says where no exhibit is behind a bug, and that every text is said."""

import re

import pytest
import torch
from tools.broken_attentions import Plain, but, filled_with, fit
from tools.diagnoses import FILES, diagnoses
from torch import nn

from attndoctor.not_comparable import hints_at_positions
from attndoctor.probes import PROBES
from attndoctor.support.texts import read_texts


def padded(self, x, attention_mask=None):
    """Padding [B, T] in an argument with the name that transformers has for it."""
    return self.attend(x, allowed=fit(key_mask=attention_mask))[0]


def replaced_by_padding(self, x, key_padding_mask=None):
    real = None if key_padding_mask is None else ~key_padding_mask
    return self.attend(x, allowed=fit(key_mask=real, causal=real is None, T=x.shape[1]))[0]


def weighing(weigh):
    return but(
        Plain,
        forward=lambda self, x: self.attend(x)[0],
        weigh=lambda self, scores, allowed: weigh(scores),
    )


SAID = {
    "report: leaking": but(Plain, forward=padded, weigh=filled_with(-10.0)),
    "report: wrong on equal tokens": weighing(lambda scores: 2 * scores.softmax(-1)),
    "report: right on equal tokens": weighing(lambda scores: (scores**3).softmax(-1)),
}


def alone(said):
    """Facts: this is said, and none of the others."""
    return said, *(f"not {other}" for other in SAID if other != said)


Rounded = weighing(lambda scores: ((32 * scores).round() / 32).softmax(-1))
test_what_no_exhibit_is_gets_words = diagnoses({
    **{said: (one, {}, "broken", "no exhibit", *alone(said)) for said, one in SAID.items()},
    "rounded": (Rounded, {}, "broken", "no exhibit", "report: rounded"),
    "as transformers": (but(Plain, forward=padded), {}, "healthy",
        "taken: its attention_mask [B, T]", "not report: defaults"),
    "switched off": (but(Plain, forward=replaced_by_padding), {}, "broken",
        "only: a mask switches causality off"),
})  # fmt: skip


def test_names_hint_at_positions_by_whole_words():
    module = nn.Module()
    module.protected, module.calibined = torch.ones(1), torch.ones(1)
    module.norm_position, module.use_rope = "pre", True
    assert hints_at_positions(module) is None
    for name in ("rotary_emb", "inv_freq", "relativePositionBias"):
        other = nn.Module()
        setattr(other, name, torch.ones(1))
        assert hints_at_positions(other) == name


@pytest.mark.parametrize("text", FILES, ids=lambda text: text.stem)
def test_every_text_is_said(text):
    headings = re.findall("^# (.+)$", text.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings and len(set(headings)) == len(headings)
    code = "".join(file.read_text(encoding="utf-8") for file in text.parent.glob("*.py"))
    names = {name for heading in headings for name in heading.split(" / ")}
    assert {name for name in names if not re.search(f"[\"']{re.escape(name)}[\"']", code)} == set()


def test_every_probe_has_its_text():
    (text,) = (text for text in FILES if text.stem == "probes")
    told = {name for names in read_texts(str(text)) for name in names.split(" / ")}
    assert told == {probe.name for probe in PROBES} and all(probe.says for probe in PROBES)
