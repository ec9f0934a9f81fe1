"""ClockHands's Python side: its traits and its refusals."""

import numpy as np
from tools.refusing import refusals

from attncourse.widgets import ClockHands


def state(widget):
    return widget.position, widget.other, widget.d, widget.rotary


def test_it_starts_as_told():
    assert state(ClockHands()) == (3, 1, 8, False)
    assert state(ClockHands(63, 0, d=16, rotary=True)) == (63, 0, 16, True)


def test_numbers_of_numpy_are_numbers():
    widget = ClockHands()
    widget.position, widget.d = np.int64(5), np.int32(4)
    assert (widget.position, type(widget.d)) == (5, int)  # which JSON can write


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {ClockHands: {"position": [2.5], "other": ["1"], "d": [8.0], "rotary": [1]}},
        ValueError: {ClockHands: {"position": [64], "other": [-1], "d": [6]}},
    }
)
