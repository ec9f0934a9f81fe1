"""A task that a model learns within a second, for tests of what trains models."""

from functools import cache

import torch

from attncourse.tasks import Relation, Sentence, Task
from attncourse.training import Recipe, Trained, train


class Echo(Task):
    """Three to five letters; each answers the one before it, and whether it stands first."""

    name = "echo"
    vocabulary = tuple("abcdef")
    readouts = {"before": vocabulary, "first": ("yes", "no")}  # noqa: RUF012
    relations = (Relation("previous", "before"),)
    causal = True
    length = 5

    def draw(self, rng):
        ids = tuple(rng.randbelow(6) for _ in range(3 + rng.randbelow(3)))
        later = range(1, len(ids))
        return Sentence(
            words=tuple(self.vocabulary[i] for i in ids),
            ids=ids,
            answers={"before": (None, *ids[:-1]), "first": (0, *(1 for _ in later))},
            partners={"previous": {i: i - 1 for i in later}},
        )


echo = Echo()

TINY = Recipe(
    "tiny", echo, {"d_model": 16, "num_heads": 2},
    steps=60, batch=16, lr=0.02, warmup=5, held_out=40,
)  # fmt: skip


@cache
def tiny_training() -> Trained:
    """Return one training that is looked at while it goes on, for all tests of a process."""

    def watch(model):
        torch.rand(3)
        return model.training, torch.is_grad_enabled(), model.token_embedding.weight.sum().item()

    return train(TINY, progress=False, evaluate_every=25, watch=watch)
