"""attndoctor: attentions that are wrong in ways that really happened, and a doctor who knows them.

    >>> import attndoctor
    >>> from attndoctor import museum
    >>> attndoctor.diagnose(museum.named("sqrt(d_model)"))
    Broken. It behaves like "sqrt(d_model)", first seen on one sequence. ...

`diagnose` asks an attention, compares its answers with those of `attnlib.MultiHeadAttention` and of
each exhibit in `attndoctor.museum`, and names the bug; `check` does so in a test.

options            what `diagnose` accepts, and what an error means
names              the names that public code gives to arguments, sizes and layers
reference          the attention to compare with, and when two answers agree
build              construct modules from a candidate, or copy one
weights            find the projections' weights, and copy the reference's into them
call               call a forward the way it wants to be called: arguments, masks, outputs
questions          the inputs of the probes, and all combinations of masks
probes             the list of probes, in order; those of dropout
module_under_test  the candidate's modules at several sizes, loaded and ready to run
examine            find out its calling conventions by trying
match              run all probes, and find the exhibits that give the same answers
not_comparable     why an answer may differ though nothing is broken
conventions        other conventions and formulas under which an answer is right
report             the sentences of a diagnosis
diagnosis          `diagnose` and `check`
museum             the exhibits
support            what exercises use, too: texts, results, torch's settings, printing
"""

from attndoctor.diagnosis import Diagnosis, check, diagnose
from attndoctor.options import CallError

__all__ = ["CallError", "Diagnosis", "check", "diagnose"]
