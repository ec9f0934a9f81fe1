"""A diagnosis ends when its time is over, and tells what it knows."""

import time

import pytest
from tools.broken_attentions import Plain

from attndoctor import diagnose, options
from attndoctor.diagnosis import NOT_FINISHED


class Slow(Plain):
    def forward(self, x):
        time.sleep(0.02)
        return self.attend(x)[0]


class SlowAndWrong(Slow):
    def scores(self, q, k):
        return super().scores(q, k).cos()


@pytest.mark.parametrize(("candidate", "failed"), [(Slow, ()), (SlowAndWrong, ("self-attention",))])
def test_what_is_known_is_told_when_the_time_is_over(candidate, failed):
    start = time.monotonic()
    diagnosis = diagnose(candidate, seconds=1)
    assert time.monotonic() - start < 10
    assert diagnosis.heading == NOT_FINISHED and not diagnosis
    assert diagnosis.failed[:1] == failed and "forward(x)" in diagnosis.taken


def test_time_that_is_over_before_any_question_is_told_too():
    diagnosis = diagnose(Slow, seconds=1e-6)
    assert diagnosis.heading == NOT_FINISHED and diagnosis.failed == ()


def test_what_takes_long_gives_a_sign_of_life(monkeypatch, capsys):
    diagnose(Plain)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(options, "_FIRST_SIGN", 0.01)
    assert diagnose(Slow, seconds=1).heading == NOT_FINISHED
    assert capsys.readouterr().err
