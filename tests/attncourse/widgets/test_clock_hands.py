"""ClockHands's Python side: its traits and its refusals."""

import numpy as np
import pytest

from attncourse.widgets import ClockHands

START = (3, 1, 8, False)


def state(widget):
    return widget.position, widget.other, widget.d, widget.rotary


def test_it_starts_as_told():
    assert state(ClockHands()) == START
    assert state(ClockHands(63, 0, d=16, rotary=True)) == (63, 0, 16, True)


def test_what_a_reader_moves_is_observable():
    widget, seen = ClockHands(), []
    widget.observe(lambda change: seen.append((change["name"], change["new"])))
    widget.position, widget.other, widget.d, widget.rotary = 5, 4, 4, True
    assert seen == [("position", 5), ("other", 4), ("d", 4), ("rotary", True)]
    assert {"position", "other", "d", "rotary"} <= set(widget.keys)  # synced with the browser


def test_numbers_of_numpy_are_numbers():
    widget = ClockHands()
    widget.position, widget.d = np.int64(5), np.int32(4)
    assert (widget.position, type(widget.d)) == (5, int)  # which JSON can write


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ValueError, "position must be from 0 to 63, got 64", {"position": 64}),
        (ValueError, "other must be at least 0, got -1", {"other": -1}),
        (TypeError, "position must", {"position": 2.5}),
        (TypeError, "other must", {"other": "1"}),
        (ValueError, r"d must be one of \[4, 8, 16\], got 6", {"d": 6}),
        (TypeError, "d must", {"d": 8.0}),
        (TypeError, "rotary must be True or False", {"rotary": 1}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, options):
    with pytest.raises(error, match=message):
        ClockHands(**options)


def test_repr_says_what_is_shown():
    assert repr(ClockHands(5, 2, d=4)) == "ClockHands(5, 2, d=4, sinusoidal)"
    assert repr(ClockHands(rotary=True)) == "ClockHands(3, 1, d=8, rotary)"
