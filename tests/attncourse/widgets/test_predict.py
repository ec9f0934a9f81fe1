"""Predict's Python side: its state, its traits, its refusals."""

import pytest
import traitlets

from attncourse.widgets import Predict

CHOICES = ["tiny", "healthy", "huge"]


def predict(answer=1):
    return Predict("What reaches the first block?", CHOICES, answer, "The norm keeps its size.")


def test_state_holds_the_texts_as_they_are():
    question, choice = "`x` & <b>\n\nwhy?", "√d_k < *8*"
    widget = Predict(question, (choice, "b"), 1, "because")
    state = widget.get_state()
    assert (state["question"], state["explanation"]) == (question, "because")
    assert (state["choices"], state["answers"]) == ([choice, "b"], [1])
    assert (state["choice"], state["committed"]) == (None, False)


@pytest.mark.parametrize(
    ("answer", "answers"), [(0, [0]), (2, [2]), ([2, 0], [0, 2]), ((1, 1), [1])]
)
def test_one_or_several_choices_are_right(answer, answers):
    assert predict(answer).answers == answers


def test_what_a_reader_does_is_observable():
    widget = predict()
    seen = []
    traits = ["choice", "committed"]
    widget.observe(lambda change: seen.append((change["name"], change["new"])), traits)
    widget.set_state({"choice": 2})
    widget.set_state({"committed": True})
    assert seen == [("choice", 2), ("committed", True)]
    assert set(traits) <= set(widget.keys)  # synced with the browser


def test_thinking_again_starts_over():
    widget = predict()
    widget.choice, widget.committed = 0, True
    widget.choice = None
    assert (widget.choice, widget.committed) == (None, False)


@pytest.mark.parametrize("name", ["question", "choices", "answers", "explanation"])
def test_what_is_asked_is_fixed(name):
    widget = predict()
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


def test_repr_asks_and_does_not_tell():
    assert repr(predict()) == "Predict('What reaches the first block?', 3 choices)"


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "question must be a string, got int", (1, CHOICES, 0, "e")),
        (ValueError, "question must not be empty", (" ", CHOICES, 0, "e")),
        (ValueError, "explanation must not be empty", ("q", CHOICES, 0, "")),
        (TypeError, "choices must be a list of strings, got str", ("q", "yes or no", 0, "e")),
        (TypeError, "choices must be a list of strings, got set", ("q", {"a", "b"}, 0, "e")),
        (TypeError, r"choices\[1\] must be a string, got float", ("q", ["a", 0.5], 0, "e")),
        (ValueError, r"choices\[0\] must not be empty", ("q", ["", "b"], 0, "e")),
        (ValueError, "at least two, got 1", ("q", ["a"], 0, "e")),
        (ValueError, "choices must differ", ("q", ["a", "b", "a"], 0, "e")),
        (TypeError, "answer must be the index .* count", ("q", CHOICES, "healthy", "e")),
        (TypeError, "answer must be the index .* got True", ("q", CHOICES, True, "e")),
        (TypeError, "answer must be the index", ("q", CHOICES, [0, 1.0], "e")),
        (ValueError, r"answer must be one of 0 to 2 \(0-based\), got 3", ("q", CHOICES, 3, "e")),
        (ValueError, "answer must be one of 0 to 2", ("q", CHOICES, [0, -1], "e")),
        (ValueError, "at least one right choice", ("q", CHOICES, [], "e")),
    ],
)
def test_bad_input_is_refused_in_words(error, message, arguments):
    with pytest.raises(error, match=message):
        Predict(*arguments)
