"""A museum of broken attentions, each as it really happened, and a doctor who knows them all.

    >>> from attnlib import museum
    >>> MyAttention = museum.named("sqrt(d_model)")
    >>> museum.diagnose(MyAttention)
    Broken. It behaves like "sqrt(d_model)", first seen on one sequence. ...

An exhibit is the right attention (`SteppedAttention`, a plain one in steps) with one step replaced
by a broken one. It is built like `MultiHeadAttention`, and carries its story, its cause, how one
would notice, and the hint that exercises give to those who write it again.
"""

from attnlib.museum._catalog import EXHIBITS, named
from attnlib.museum._exhibit import Exhibit, Thread
from attnlib.museum._steps import SteppedAttention, attend
from attnlib.museum._symptoms import SYMPTOMS, Symptom, symptoms
from attnlib.museum.doctor.diagnosis import Diagnosis, check, diagnose
from attnlib.museum.doctor.options import CallError

__all__ = [
    "EXHIBITS",
    "SYMPTOMS",
    "CallError",
    "Diagnosis",
    "Exhibit",
    "SteppedAttention",
    "Symptom",
    "Thread",
    "attend",
    "check",
    "diagnose",
    "named",
    "symptoms",
]
