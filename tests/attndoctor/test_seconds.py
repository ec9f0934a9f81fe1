"""A diagnosis ends when its time is over, and tells what it knows."""

import time
from types import SimpleNamespace

import pytest
from tools.broken_attentions import Plain

from attndoctor import diagnose, options
from attndoctor.diagnosis import NOT_FINISHED
from attndoctor.report import so_far


class Slow(Plain):
    def forward(self, x):
        time.sleep(0.02)
        return self.attend(x)[0]


class SlowAndWrong(Slow):
    def scores(self, q, k):
        return super().scores(q, k).cos()


@pytest.mark.parametrize("seconds", [1e-6, 1])
def test_what_is_known_is_told_when_the_time_is_over(seconds):
    start = time.monotonic()
    diagnosis = diagnose(SlowAndWrong, seconds=seconds)
    assert time.monotonic() - start < 10
    assert diagnosis.heading == NOT_FINISHED and not diagnosis
    assert diagnosis.failed[:1] == (("self-attention",) if seconds == 1 else ())
    assert ("forward(x)" in diagnosis.taken) == (seconds == 1)


def test_one_question_asked_in_several_modes_is_one_way():
    answers = SimpleNamespace(given={("padding", mode): None for mode in "ab"}, wrong=[])
    assert "asked in 1 way, nothing" in so_far(answers)


def test_what_takes_long_gives_a_sign_of_life(monkeypatch, capsys):
    monkeypatch.setattr(options, "_FIRST_SIGN", 0.01)
    assert diagnose(Slow, seconds=1).heading == NOT_FINISHED
    assert capsys.readouterr().err
