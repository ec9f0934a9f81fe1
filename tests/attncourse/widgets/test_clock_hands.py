"""ClockHands's Python side: its traits and its refusals."""

import numpy as np
from tools.refusing import refusals

from attncourse.widgets import ClockHands


def test_numbers_of_numpy_are_numbers():
    widget = ClockHands(np.int64(3))
    widget.position, widget.d = np.int64(5), np.int32(4)
    assert (widget.position, type(widget.d)) == (5, int)  # which JSON can write


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {ClockHands: {"position": [2.5], "other": ["1"], "d": [8.0], "rotary": [1]}},
        ValueError: {ClockHands: {"position": [64], "other": [-1], "d": [6]}},
    }
)
