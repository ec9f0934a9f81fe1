"""Right attentions in uncommon forms are never called broken."""

import pytest
from tools import uncommon_attentions as uncommon

from attndoctor import diagnose
from attndoctor.diagnosis import CANNOT_BE_ASKED, UNLESS_MEANT
from attndoctor.options import CallError

pytestmark = pytest.mark.thorough

# What is asked, and what it is taken for.
RIGHT = {
    "own layers": (uncommon.OfOwnLayers, "forward(x)"),
    "packed by groups": (uncommon.PackedByGroups, "projection (heads); always causal"),
    "packed by groups, built": (uncommon.PackedByGroups(48, 4, 2), "projection (heads)"),
    "its masks repeated": (uncommon.RepeatsItsMasks,
        "attention_mask [B, T, T] that is added; a mask [T, T] taken at some sizes only"),
    "its masks cut": (uncommon.CutsItsMasks, "forward(x, xa, mask)"),
    "channels first": (uncommon.ChannelsFirst, "forward(x, c, attn_mask)"),
    "random numbers of its own": (uncommon.OwnRandomNumbers, "key_mask, causal)"),
    "random numbers of nobody": (uncommon.RandomNumbersOfNobody, "key_mask, causal)"),
    "dropout for all samples": (uncommon.SharedDropout, "key_mask, causal)"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_in_an_uncommon_form_is_healthy(name):
    candidate, words = RIGHT[name]
    diagnosis = diagnose(candidate)
    assert diagnosis.heading.startswith("Healthy"), diagnosis
    assert words in diagnosis.taken


def test_layers_that_are_no_linear_layers_are_left_to_the_reader():
    with pytest.raises(CallError, match=r"pass load=\.\.\."):
        diagnose(uncommon.OfEqualizedLayers)


def test_a_bug_in_layers_of_its_own_is_found():
    class WithoutBias(uncommon.Affine):
        def forward(self, x):
            return x @ self.weight

    class Mine(uncommon.OfOwnLayers):
        layer = WithoutBias

    diagnosis = diagnose(Mine)
    assert diagnosis.heading == "Broken." and diagnosis.failed[0] == "self-attention"


def test_masks_for_tokens_of_its_own_are_not_asked_between_two_sequences():
    diagnosis = diagnose(uncommon.CutsItsMasks)
    assert "masks of a second sequence" in diagnosis.message
    assert "a mask between two sequences" in diagnosis.untried
    assert "two sequences" not in diagnosis.untried


def test_masks_that_are_repeated_wrongly_are_found():
    class Tiled(uncommon.RepeatsItsMasks):
        def forward(self, hidden_states, encoder_hidden_states=None, attention_mask=None):
            if attention_mask is not None and attention_mask.dim() == 3:
                attention_mask = attention_mask.repeat(self.heads, 1, 1)
            return super().forward(hidden_states, encoder_hidden_states, attention_mask)

    assert diagnose(Tiled).heading == "Broken."


def test_dropout_that_all_samples_share_is_told():
    diagnosis = diagnose(uncommon.SharedDropout)
    assert diagnosis.edges == ("dropout of each sample",)
    assert "all samples of a batch lose the same." in diagnosis.message
    assert diagnose(uncommon.OwnRandomNumbers).failed == ()


def test_random_numbers_of_its_own_excuse_no_forgotten_mask():
    diagnosis = diagnose(uncommon.OwnRandomNumbersForgetMasks)
    assert diagnosis.failed[0] == "limits in training with dropout"
    assert "a mask is forgotten" in diagnosis.message


def test_what_is_rounded_inside_cannot_be_asked():
    diagnosis = diagnose(uncommon.RoundsInside)
    assert not diagnosis and diagnosis.heading == CANNOT_BE_ASKED
    assert "it computes in bfloat16 inside" in diagnosis.message

    class Unscaled(uncommon.RoundsInside):
        def forward(self, x):
            q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
            return self.W_o((q @ k.mT).softmax(-1).matmul(v).float().transpose(1, 2).flatten(2))

    assert diagnose(Unscaled).heading == "Broken."


@pytest.mark.parametrize(
    ("candidate", "formula"),
    [
        (uncommon.Performer, "relu(x) + 0.001 (arXiv:2009.14794), with 1e-06 added to each sum"),
        (uncommon.TwoSoftmaxes, "one softmax of each query over its features"),
        (uncommon.WithoutSoftmax, "dot products, divided by the number of keys"),
        (uncommon.TheLargerHalf, "the larger half of a query's scores"),
    ],
)
def test_other_formulas_are_fine_if_they_are_meant(candidate, formula):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == UNLESS_MEANT, diagnosis
    assert formula in diagnosis.message
