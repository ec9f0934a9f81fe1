"""Answer's Python side: its state, and how it begins."""

import pytest
import torch

from attncourse.widgets import Answer
from attndoctor.support.check_result import CheckResult

YES, NO = CheckResult(True, "Fine."), CheckResult(False, "Look again.")
NUMBERS = {"known": [torch.tensor([[1.0, 2.0, 3.0]])], "tolerance": 0.01, "near": 0.02}


@pytest.mark.parametrize(
    ("kind", "parts", "verdicts", "options", "untouched"),
    [
        ("numbers", [("Row", ["x", "y"]), ("", ["z"])], [YES, NO, NO], NUMBERS, ["", "", ""]),
        ("choice", [("A", ["p", "q"]), ("B", ["p", "q"])], [YES, NO, NO, NO], {}, [None, None]),
        ("lines", [("", ["x = 1", "", "x = 1"])], [NO, YES, NO], {}, []),
        ("order", [("", ["p", "q"])], [NO, YES], {}, [0, 1]),
    ],
)
def test_state_holds_each_verdict_once_and_an_untouched_answer(
    kind, parts, verdicts, options, untouched
):
    widget = Answer(kind, parts, verdicts, **options)
    assert (widget.given, widget.checked) == (untouched, False)
    state = widget.get_state()
    assert (state["titles"], state["labels"]) == tuple(map(list, zip(*parts, strict=True)))
    table = torch.frombuffer(bytearray(state["table"]), dtype=torch.int16)
    told = [(found["passed"], found["heading"], found["message"]) for found in state["verdicts"]]
    assert len(set(told)) == 2
    wanted = {YES: (True, "Correct.", "Fine."), NO: (False, "Not yet.", "Look again.")}
    assert [told[place] for place in table] == [wanted[verdict] for verdict in verdicts]
    assert set(widget.kept) == {"given", "checked"}
    if kind == "numbers":
        known = torch.frombuffer(bytearray(state["known"]), dtype=torch.float64)
        assert known.tolist() == [1, 2, 3]
        assert (state["groups"], state["tolerance"], state["near"]) == ([[1, 3]], 0.01, 0.02)
