"""What `diagnose` was once wrong about, or of no help with, is right now."""

from types import SimpleNamespace

import pytest
import torch
from tools import reported_attentions as reported
from torch import nn

from attndoctor import CallError, diagnose
from attndoctor.diagnosis import BROKEN, CANNOT_BE_ASKED, UNLESS_MEANT

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("candidate", [reported.Transformed, reported.TwoInOne])
def test_names_of_layers_are_known(candidate):
    assert diagnose(candidate).heading == "Healthy."


def test_arguments_handed_on_and_keys_without_values_are_taken():
    diagnosis = diagnose(reported.OfFactoryArguments)
    assert diagnosis.heading == "Healthy." and "two sequences" in diagnosis.message


def test_two_projections_in_one_are_told():
    taken = diagnose(reported.TwoInOne(48, 4)).taken
    assert "queries and keys made by one projection (blocks)" in taken


@pytest.mark.parametrize(
    "candidate", [reported.SoftcappedAndScaled, reported.SoftcappedAndScaled(48, 4)]
)
def test_a_scale_and_a_formula_are_found_together(candidate):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == UNLESS_MEANT
    assert "scale=0.0625" in diagnosis.message and "with c = 50" in diagnosis.message


def test_weights_are_found_behind_what_has_their_axes():
    with pytest.raises(CallError, match=r"\(result\[0\], result\[2\]\)"):
        diagnose(reported.ShowsItsPositions)
    diagnosis = diagnose(reported.ShowsItsPositions, returns=lambda result: (result[0], result[2]))
    assert diagnosis.heading == "Healthy."


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (reported.OfPatches, "in another form"),
        (reported.WithoutABatch, "one sequence [T, d]"),
        (reported.JoinsBoth, "both sequences, joined"),
        (reported.ChannelAttention, "'channel'"),
        (nn.TransformerEncoderLayer(48, 4, batch_first=True), "its .self_attn"),
    ],
)
def test_what_is_right_by_its_design_is_not_called_broken(candidate, words):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == CANNOT_BE_ASKED and words in diagnosis.message
    assert "Identity" not in diagnosis.message


def test_advice_for_tokens_without_a_batch_helps():
    class Around(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            self.inner = reported.WithoutABatch(d_model, num_heads)

        def forward(self, x):
            return torch.vmap(self.inner)(x)

    assert diagnose(Around).heading == "Healthy."


def test_what_is_wrong_without_a_batch_is_not_called_right():
    class Wrong(reported.WithoutABatch):
        def scores(self, q, k):
            return super().scores(q, k).cos()

    diagnosis = diagnose(Wrong)
    assert not diagnosis and "is right on it" not in diagnosis.message


def test_its_own_width_of_heads_goes_before_a_config():
    config = SimpleNamespace(num_attention_heads=8)
    diagnosis = diagnose(reported.HeadsOfItsOwn(config, 24, 3))
    assert diagnosis.heading == "Healthy." and "num_heads=3" in diagnosis.message


@pytest.mark.parametrize(
    ("candidate", "name"), [(reported.IgnoresItsValues, "value"), (reported.AlwaysCausal, "causal")]
)
def test_an_argument_without_effect_is_told(candidate, name):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == BROKEN and f"`{name}` has no effect" in diagnosis.message


def test_what_is_always_causal_is_advised_to_say_so():
    assert 'causal="always"' in diagnose(reported.AlwaysCausal).message
    assert diagnose(reported.AlwaysCausal, causal="always").heading == "Healthy."


def test_cosines_and_sines_that_turn_nothing_are_advised():
    with pytest.raises(CallError, match=r"torch\.ones\(1, 1\)"):
        diagnose(reported.NeedsTurns)
    arguments = {"cos": torch.ones(1, 1), "sin": torch.zeros(1, 1)}
    assert diagnose(reported.NeedsTurns, arguments=arguments).heading == "Healthy."
