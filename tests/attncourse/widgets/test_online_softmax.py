"""OnlineSoftmax's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
from tools.refusing import assert_refused, refusals

from attncourse.widgets import OnlineSoftmax

SCORES = torch.tensor([0.5, -torch.inf, 2.0])
VALUES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])


def state(widget):
    return widget.scores.tolist(), widget.block, widget.step, widget.method


def test_it_starts_as_told():
    scores, block, step, method = state(OnlineSoftmax())
    assert (len(scores), block, step, method) == (8, 2, 0, "online")
    assert OnlineSoftmax().origin == "built by hand"
    own = OnlineSoftmax(SCORES, VALUES, block=3, step=1, method="no maximum", origin="random")
    assert state(own) == (SCORES.tolist(), 3, 1, "no maximum")
    assert (own.T, own.d, own.origin) == (3, 2, "random")
    assert OnlineSoftmax(SCORES, VALUES).origin == "as given"


def test_the_example_has_blocks_with_a_larger_score_and_blocks_without():
    largest = OnlineSoftmax().scores.view(-1, 2).amax(-1).cummax(0).values
    assert (largest.diff() > 0).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_state_holds_copies_of_the_readers_tensors_as_float32_bytes(dtype):
    scores, values = SCORES.to(dtype), VALUES.T.contiguous().T.to(dtype).requires_grad_()
    widget, seen = OnlineSoftmax(scores, values), []
    scores[0] = 7
    sent = widget.get_state()
    assert np.frombuffer(sent["scores"], "<f4").tolist() == SCORES.tolist()
    assert np.frombuffer(sent["values"], "<f4").tolist() == VALUES.flatten().tolist()
    widget.observe(lambda change: seen.append((change["name"], change["new"].tolist())), "scores")
    edited = torch.tensor([100.0, 1.0, -torch.inf])
    widget.set_state({"scores": memoryview(edited.numpy().tobytes())})
    assert seen == [("scores", edited.tolist())]
    assert widget.start_scores == sent["start_scores"] == sent["scores"]


def softmax(scores=SCORES, values=VALUES, **options):
    return OnlineSoftmax(scores, values, **options)


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            softmax: {"scores": [[1.0]], "values": [VALUES.tolist()], "block": [2.0],
                      "step": [True], "origin": [3]},
        },
        ValueError: {
            softmax: {
                "scores": [SCORES[None], torch.ones(13), SCORES[:0], SCORES * 0,
                           torch.full((3,), -2e3), None],
                "values": [VALUES[:2], VALUES[:, 0], VALUES.repeat(1, 2), VALUES / 0],
                "block": [0, 4], "step": [9], "method": ["plain"],
            },
        },
    }
)  # fmt: skip


def test_scores_come_with_values():
    assert_refused(lambda: OnlineSoftmax(SCORES), ["no values"], ValueError)
