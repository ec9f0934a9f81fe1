"""OnlineSoftmax's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
import traitlets

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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_state_holds_the_readers_tensors_as_float32_bytes(dtype):
    scores, values = SCORES.to(dtype).requires_grad_(), VALUES.T.contiguous().T.to(dtype)
    widget = OnlineSoftmax(scores, values)
    sent = widget.get_state()
    assert np.frombuffer(sent["scores"], "<f4").tolist() == SCORES.tolist()
    assert np.frombuffer(sent["values"], "<f4").tolist() == VALUES.flatten().tolist()
    assert sent["start_scores"] == sent["scores"]


def test_the_readers_tensor_is_copied():
    scores = SCORES.clone()
    widget = OnlineSoftmax(scores, VALUES)
    scores[0] = 7
    assert widget.scores[0] == 0.5


def test_python_sees_what_the_browser_changes_and_the_start_stays():
    widget, seen = OnlineSoftmax(SCORES, VALUES), []
    widget.observe(lambda change: seen.append((change["name"], change["new"].tolist())), "scores")
    edited = torch.tensor([100.0, 1.0, -torch.inf])
    widget.set_state({"scores": memoryview(edited.numpy().tobytes())})
    assert seen == [("scores", edited.tolist())]
    assert widget.start_scores == OnlineSoftmax(SCORES, VALUES).start_scores


def test_what_a_reader_moves_is_observable():
    widget, seen = OnlineSoftmax(), []
    widget.observe(lambda change: seen.append((change["name"], change["new"])))
    widget.block, widget.step, widget.method = 8, 1, "no rescaling"
    assert seen == [("block", 8), ("step", 1), ("method", "no rescaling")]
    assert {"scores", "block", "step", "method"} <= set(widget.keys)  # synced with the browser


@pytest.mark.parametrize("name", ["T", "d", "values", "start_scores"])
def test_what_is_fixed_stays(name):
    widget = OnlineSoftmax(SCORES, VALUES)
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


@pytest.mark.parametrize(
    ("error", "message", "scores", "values", "options"),
    [
        (TypeError, "scores must be a torch.Tensor, got list", [1.0], VALUES, {}),
        (TypeError, "scores must hold floating point", torch.ones(3).long(), VALUES, {}),
        (ValueError, r"scores must be one row \[T\], got \[1, 3\]", SCORES[None], VALUES, {}),
        (ValueError, "scores must be from 1 to 12 numbers, got 13", torch.ones(13), VALUES, {}),
        (ValueError, "scores must be from 1 to 12 numbers, got 0", SCORES[:0], VALUES, {}),
        (ValueError, r"scores must be finite .* nan at \[1\]", SCORES * 0, VALUES, {}),
        (ValueError, r"scores must hold .* got -2000", torch.full((3,), -2e3), VALUES, {}),
        (ValueError, "scores and values must come together, got no values", SCORES, None, {}),
        (ValueError, "scores and values must come together, got no scores", None, VALUES, {}),
        (TypeError, "values must be a torch.Tensor, got list", SCORES, VALUES.tolist(), {}),
        (ValueError, r"one row for each of the 3 scores, got \[2, 2\]", SCORES, VALUES[:2], {}),
        (ValueError, r"one row for each of the 3 scores, got \[3\]", SCORES, VALUES[:, 0], {}),
        (ValueError, r"1 to 3 columns, got \[3, 4\]", SCORES, VALUES.repeat(1, 2), {}),
        (ValueError, "values must be finite", SCORES, VALUES / 0, {}),
        (TypeError, "block must be an int", SCORES, VALUES, {"block": 2.0}),
        (ValueError, "block must be at least 1, got 0", SCORES, VALUES, {"block": 0}),
        (ValueError, "block must be from 1 to 3, got 4", SCORES, VALUES, {"block": 4}),
        (TypeError, "step must be an int", SCORES, VALUES, {"step": True}),
        (ValueError, "step must be from 0 to 3, got 9", SCORES, VALUES, {"step": 9}),
        (ValueError, "method must be one of .* got 'plain'", SCORES, VALUES, {"method": "plain"}),
        (TypeError, "origin must be a string", SCORES, VALUES, {"origin": 3}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, scores, values, options):
    with pytest.raises(error, match=message):
        OnlineSoftmax(scores, values, **options)


def test_repr_says_what_is_shown():
    assert repr(OnlineSoftmax(SCORES, VALUES)) == "OnlineSoftmax(3 scores, block=2, step=0, online)"
