"""A diagnosis as a test."""

from typing import Unpack

from attndoctor.build import Candidate
from attndoctor.diagnosis import Diagnosis, diagnose
from attndoctor.told import CallError, Options


def check(candidate: Candidate, *, edges: bool = False, **options: Unpack[Options]) -> Diagnosis:
    """Diagnose an attention, and raise unless it is healthy.

    It makes a test of one line::

        def test_attention():
            attndoctor.check(MyAttention, causal="always")

    Args:
        candidate: as for `diagnose`.
        edges: whether a difference at the edges counts too.
        **options: those of `diagnose`.

    Returns:
        The diagnosis, if it is healthy.

    Raises:
        AssertionError: it is not, or it can't be asked; the message is the diagnosis.
        TypeError, ValueError: as for `diagnose`.
    """
    __tracebackhide__ = True  # pytest then shows the reader's line
    try:
        diagnosis = diagnose(candidate, edges=edges, **options)
    except CallError as error:  # what the reader's code raised stays, the doctor's lines go
        raise error.with_traceback(None) from error.__cause__
    if not diagnosis:
        raise AssertionError(repr(diagnosis))
    return diagnosis
