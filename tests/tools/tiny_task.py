"""A task that a model learns within a second, for tests of what trains models."""

from attncourse.tasks import Relation, Sentence, Task


class Echo(Task):
    """Three to five letters; each answers the one before it, and whether it stands first."""

    name = "echo"
    vocabulary = tuple("abcdef")
    readouts = {"before": vocabulary, "first": ("yes", "no")}  # noqa: RUF012
    relations = (Relation("previous", "before"),)
    causal = True
    length = 5

    def draw(self, rng):
        ids = tuple(rng.below(6) for _ in range(3 + rng.below(3)))
        later = range(1, len(ids))
        return Sentence(
            words=tuple(self.vocabulary[i] for i in ids),
            ids=ids,
            answers={"before": (None, *ids[:-1]), "first": (0, *(1 for _ in later))},
            partners={"previous": {i: i - 1 for i in later}},
        )


echo = Echo()
