"""Diagnose an attention: compare it with attnlib's, and name the bug.

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
"""
