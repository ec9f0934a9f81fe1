"""attndoctor: attentions that are wrong in ways that really happened, and a doctor who knows them.

    >>> import attndoctor
    >>> from attndoctor import museum
    >>> attndoctor.diagnose(museum.named("sqrt(d_model)"))
    Broken. It behaves like "sqrt(d_model)", first seen on one sequence. ...

`diagnose` asks an attention, compares its answers with those of `attnlib.MultiHeadAttention` and of
each exhibit in `attndoctor.museum`, and names the bug; `check` does so in a test.

told, names            what the reader says of it, and names that public code gives to things
constructing, build    making modules of a candidate, or copying one
places, bare, loading  where its weights are; the reference's are copied there
forward, mask_style    calling it as attnlib's attention is called
reference              what it is compared with: attnlib's attention, right or with an exhibit
machine, refusing      errors that are about the machine alone, or raised on purpose
asking, draw           asking a module on each path that it has; random inputs
questions, dropping    what is asked: without limits, of masks, of dropout
crossings              limits in each situation in which one may be forgotten
probes                 all questions in turn, and what a difference means
comparing, cells       when two answers are the same; what a crossing goes wrong on
patient                a candidate that can be asked, beside the reference
examine, find_masks    what kind of module it is
naming                 which exhibits it behaves like
report, diagnosis      what is said of it
check                  the same for tests
"""

from attndoctor.check import check
from attndoctor.diagnosis import Diagnosis, diagnose
from attndoctor.told import CallError

__all__ = ["CallError", "Diagnosis", "check", "diagnose"]
