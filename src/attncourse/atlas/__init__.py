"""Every head of a model of your own, scored on your own texts.

::

    from attncourse import atlas

    book = atlas.from_model("path/to/model", ["The cat sat on the mat. The cat slept."])
    book                        # the best heads of each pattern, beside their baselines
    book.figure()               # all heads as tiles
    book.best("induction", 3)   # layer, head, score

The scores are those of `attnlib.patterns`: how much a head looks at the previous token, at the
first, at its own token elsewhere, at what followed it before, at its best fixed offset, and how
widely it looks. Each stands beside its baseline, what a simple rule would get. A score says what a
head does on these texts, not what the model needs it for.

`python -m attncourse.atlas path/to/model --text text.txt -o atlas.html` prints the table and writes
all heads into a file for a browser. Reading a model of transformers needs that package, which is
imported then and only then.
"""

from attncourse.atlas._atlas import Atlas, Head, PatternScores
from attncourse.atlas._build import from_model

__all__ = ["Atlas", "Head", "PatternScores", "from_model"]
