"""Predict's Python side: its state, its traits, its refusals."""

import pytest
from tools.refusing import refusals

from attncourse.widgets import Predict

CHOICES = ["tiny", "healthy", "huge"]


def asking(question="q", choices=CHOICES, answer=0, explanation="e"):
    return Predict(question, choices, answer, explanation)


@pytest.mark.parametrize(("answer", "answers"), [(2, [2]), ([2, 0], [0, 2]), ((1, 1), [1])])
def test_state_holds_the_texts_as_they_are_and_which_choices_are_right(answer, answers):
    question, choices = "`x` & <b>\n\nwhy?", ("√d_k < *8*", "b", "c")
    widget = asking(question, choices, answer)
    state = widget.get_state()
    assert (state["question"], state["explanation"]) == (question, "e")
    assert (state["choices"], state["answers"]) == ([*choices], answers)
    assert (widget.choice, widget.committed) == (None, False)
    widget.choice, widget.committed = 2, True
    widget.choice = None  # thinking again starts over
    assert (widget.choice, widget.committed) == (None, False)


test_bad_input_is_refused_by_name = refusals({
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
})  # fmt: skip
