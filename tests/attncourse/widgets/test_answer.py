"""Answer's Python side: its state, its traits, its refusals."""

import pytest
import torch
import traitlets

from attncourse.widgets import Answer
from attndoctor.support.check_result import CheckResult

YES, NO = CheckResult(True, "Fine."), CheckResult(False, "Look again.")


def answer(kind):
    return {
        "numbers": lambda: Answer(
            "numbers",
            [("Row", ["x", "y"]), ("", ["z"])],
            [YES, NO, NO],
            known=[torch.tensor([[1.0, 2.0, 3.0]])],
            tolerance=0.01,
            near=0.02,
        ),
        "choice": lambda: Answer(
            "choice", [("A", ["p", "q"]), ("B", ["p", "q"])], [YES] + 3 * [NO]
        ),
        "lines": lambda: Answer("lines", [("", ["x = 1", "", "x = 1"])], [NO, YES, NO]),
        "order": lambda: Answer("order", [("", ["p", "q"])], [NO, YES]),
    }[kind]()


def test_state_holds_each_verdict_once():
    state = answer("choice").get_state()
    assert state["verdicts"] == [
        {"passed": True, "heading": "Correct.", "message": "Fine."},
        {"passed": False, "heading": "Not yet.", "message": "Look again."},
    ]
    assert torch.frombuffer(bytearray(state["table"]), dtype=torch.int16).tolist() == [0, 1, 1, 1]
    assert (state["titles"], state["labels"]) == (["A", "B"], [["p", "q"], ["p", "q"]])


def test_known_numbers_are_float64():
    state = answer("numbers").get_state()
    known = torch.frombuffer(bytearray(state["known"]), dtype=torch.float64)
    assert known.tolist() == [1, 2, 3]
    assert (state["groups"], state["tolerance"], state["near"]) == ([[1, 3]], 0.01, 0.02)


@pytest.mark.parametrize(
    ("kind", "untouched", "given"),
    [
        ("numbers", ["", "", ""], ["1", "x", "3/7"]),
        ("choice", [None, None], [1, None]),
        ("lines", [], [2]),
        ("order", [0, 1], [1, 0]),
    ],
)
def test_what_a_reader_does_is_observable(kind, untouched, given):
    widget = answer(kind)
    assert (widget.given, widget.checked) == (untouched, False)
    seen = []
    widget.observe(lambda change: seen.append((change["name"], change["new"])), widget.kept)
    widget.set_state({"given": given})
    widget.set_state({"checked": True})
    assert seen == [("given", given), ("checked", True)]
    assert set(widget.kept) <= set(widget.keys)  # synced with the browser


@pytest.mark.parametrize(
    "name", ["kind", "labels", "verdicts", "table", "known", "summary", "kept"]
)
def test_what_is_asked_is_fixed(name):
    widget = answer("order")
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


def test_repr_asks_and_does_not_tell():
    assert repr(answer("numbers")) == "Answer('numbers', 3 labels)"
