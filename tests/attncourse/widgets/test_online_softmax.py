"""OnlineSoftmax's Python side: its state, its traits, its refusals."""

import torch
from tools.refusing import assert_refused, refusals

from attncourse.widgets import OnlineSoftmax

SCORES = torch.tensor([0.5, -torch.inf, 2.0])
VALUES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])


def test_it_starts_as_told():
    own = OnlineSoftmax(SCORES, VALUES, block=3, step=1, method="no maximum", origin="random")
    assert (own.block, own.step, own.method, own.origin) == (3, 1, "no maximum", "random")
    assert OnlineSoftmax(SCORES, VALUES).origin == "as given"
    start = OnlineSoftmax()
    assert (start.block, start.step, start.method) == (2, 0, "online")
    largest = start.scores.view(4, 2).amax(-1).cummax(0).values
    assert (largest.diff() > 0).tolist() == [False, True, False]  # as L10 tells


def test_state_holds_copies_and_python_sees_what_a_reader_changes():
    scores, values = SCORES.to(torch.bfloat16), VALUES.T.contiguous().T.double().requires_grad_()
    widget, seen = OnlineSoftmax(scores, values), []
    scores[0] = 7
    sent = widget.get_state()
    assert sent["scores"] == SCORES.numpy().tobytes()
    assert sent["values"] == VALUES.numpy().tobytes()
    widget.observe(lambda change: seen.append(change["new"].tolist()), "scores")
    edited = torch.tensor([100.0, 1.0, -torch.inf])
    widget.set_state({"scores": memoryview(edited.numpy().tobytes())})
    assert seen == [edited.tolist()]
    assert widget.start_scores == sent["start_scores"] == sent["scores"]


def softmax(scores=SCORES, values=VALUES, **options):
    return OnlineSoftmax(scores, values, **options)


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        softmax: {"scores": [[1.0]], "values": [VALUES.tolist()], "block": [2.0],
                  "step": [True], "origin": [3]},
    },
    ValueError: {
        softmax: {
            "scores": [SCORES[None], torch.ones(13), SCORES * 0, torch.full((3,), -2e3), None],
            "values": [VALUES[:2], VALUES.repeat(1, 2), VALUES / 0],
            "block": [0, 4], "step": [9], "method": ["plain"],
        },
    },
})  # fmt: skip


def test_scores_come_with_values():
    assert_refused(lambda: OnlineSoftmax(SCORES), ["no values"], ValueError)
