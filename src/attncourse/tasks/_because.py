"""Sentences in which the last adjective decides whom "it" means."""

from itertools import chain

from attncourse.tasks._tasks import Relation, Sentence, Task
from attnlib.rng import Sfc32


class Because(Task):
    """*the animal didn't cross the street because it was too tired* (or *wide*): who is "it"?

    Of the two nouns one can be tired and the other wide; either may come first. The row of "it"
    must answer with the noun that is meant.
    """

    name, causal, length = "because", False, 12
    nouns = (
        "animal dog child king horse queen".split(),
        "street river bridge field road lake".split(),
    )
    adjectives = (
        "tired ill afraid hungry sad awake".split(),
        "wide long muddy flooded closed icy".split(),
    )
    vocabulary = (
        *"the didn't cross stop because it was too .".split(),
        *chain(*nouns, *adjectives),
    )
    relations = (Relation("it>noun", "who"),)

    def __init__(self) -> None:
        self.readouts = {"who": tuple(chain(*self.nouns))}

    def draw(self, rng: Sfc32) -> Sentence:
        """Draw one sentence; all that is random in it comes from `rng`."""
        kinds, meant = rng.shuffled([0, 1]), rng.randbelow(2)
        first, second = (rng.choice(self.nouns[kind]) for kind in kinds)
        verb = ("cross", "stop")[kinds[0]]
        adjective = rng.choice(self.adjectives[kinds[meant]])
        words = f"the {first} didn't {verb} the {second} because it was too {adjective} .".split()
        it, noun = words.index("it"), (1, 5)[meant]
        answers: list[int | None] = [None] * len(words)
        answers[it] = self.readouts["who"].index(words[noun])
        ids = tuple(self.vocabulary.index(word) for word in words)
        return Sentence(tuple(words), ids, {"who": tuple(answers)}, {"it>noun": {it: noun}})


because = Because()
