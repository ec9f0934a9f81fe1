"""Training the small models of this course: one function, recipes, what a model gets right.

    >>> from attnlib.training import RECIPES, train
    >>> recipe = RECIPES["concord"].changed(steps=20, held_out=50)
    >>> trained = train(recipe, seed=0, progress=False)
    >>> trained.losses[-1] < trained.losses[0]
    True
    >>> sorted(trained.final.relations)[:2]
    ['adjective>adverb', 'adjective>noun']

``python -m attnlib.training concord --seed 0`` trains a recipe once more and holds what comes out
against the card of its saved weights (see `attnlib.data`).
"""

from attnlib.training.evaluation import Evaluation, answer_loss, evaluate
from attnlib.training.loop import Trained, held_out_sentences, train
from attnlib.training.recipe import Recipe
from attnlib.training.recipes import RECIPES
from attnlib.training.saving import Comparison, compare, save

__all__ = [
    "RECIPES",
    "Comparison",
    "Evaluation",
    "Recipe",
    "Trained",
    "answer_loss",
    "compare",
    "evaluate",
    "held_out_sentences",
    "save",
    "train",
]
