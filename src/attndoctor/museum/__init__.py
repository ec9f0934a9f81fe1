"""A museum of broken attentions, each as it really happened.

    >>> from attndoctor import museum
    >>> museum.named("sqrt(d_model)")(d_model=8, num_heads=2).d_model
    8

An exhibit is the right attention (`SteppedAttention`, a plain one in steps) with one step replaced
by a broken one. It is built like `MultiHeadAttention`, and carries its story, its cause, how one
would notice, and the hint that exercises give to those who write it again.
"""

from attndoctor.museum._catalog import EXHIBITS, named
from attndoctor.museum._exhibit import Exhibit, Thread
from attndoctor.museum._symptoms import SYMPTOMS, Symptom, symptoms
from attndoctor.museum.steps import SteppedAttention, attend

__all__ = [
    "EXHIBITS",
    "SYMPTOMS",
    "Exhibit",
    "SteppedAttention",
    "Symptom",
    "Thread",
    "attend",
    "named",
    "symptoms",
]
