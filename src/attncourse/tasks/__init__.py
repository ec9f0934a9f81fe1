"""Made tasks whose relations are known: which word has to find which other one.

A trained head can be compared with the truth only where it is known. So these sentences are made by
rules, and each comes with its answers and with the true partner of every word that needs one::

    >>> from attncourse.tasks import concord, pack
    >>> sentence = concord.read("the king that I feared saw this big monk")
    >>> sentence.partners["verb>object"]
    {4: 1, 5: 8}
    >>> batch = pack(concord.sentences(32, seed=0))
    >>> len(batch.tokens)
    32

From one seed the browser makes the same sentences.
"""

from attncourse.tasks._because import Because, because
from attncourse.tasks._concord import Concord, VerbsLast, concord, verbs_last
from attncourse.tasks._induction import Induction, induction
from attncourse.tasks._lookup import Diagonals, Lookup, diagonals, lookup
from attncourse.tasks._names import Names, names
from attncourse.tasks._tasks import Batch, Relation, Sentence, Task, pack

__all__ = [
    "Batch",
    "Because",
    "Concord",
    "Diagonals",
    "Induction",
    "Lookup",
    "Names",
    "Relation",
    "Sentence",
    "Task",
    "VerbsLast",
    "because",
    "concord",
    "diagonals",
    "induction",
    "lookup",
    "names",
    "pack",
    "verbs_last",
]
