"""Predict's Python side: its state, its traits, its refusals."""

import pytest
from tools.refusing import refusals

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


def test_thinking_again_starts_over():
    widget = predict()
    widget.choice, widget.committed = 2, True
    widget.choice = None
    assert (widget.choice, widget.committed) == (None, False)


def asking(question="q", choices=CHOICES, answer=0, explanation="e"):
    return Predict(question, choices, answer, explanation)


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            asking: {
                "question": [1], "choices": ["yes or no", {"a", "b"}, ["a", 0.5]],
                "answer": ["healthy", True, [0, 1.0]],
            },
        },
        ValueError: {
            asking: {
                "question": [" "], "choices": [["", "b"], ["a"], ["a", "b", "a"]],
                "answer": [3, [0, -1], []], "explanation": [""],
            },
        },
    }
)  # fmt: skip
