"""Training the small models of this course: one function, recipes, what a model gets right.

    >>> from attncourse.training import RECIPES, train
    >>> recipe = RECIPES["concord"].changed(steps=20, held_out=50)
    >>> trained = train(recipe, seed=0, progress=False)
    >>> trained.losses[-1] < trained.losses[0]
    True
    >>> sorted(trained.final.relations)[:2]
    ['adjective>adverb', 'adjective>noun']

``python -m attncourse.training concord --seed 0`` trains a recipe once more and compares it with
the card of its saved weights (see `attncourse.data`); of a sweep it trains the first steps.
"""

from attncourse.grid import GRID, digest
from attncourse.training.baselines import bigram_loss, pair_counts, uniform_loss, unigram_loss
from attncourse.training.evaluation import Evaluation, answer_loss, evaluate
from attncourse.training.fixed_weights import FixedWeights
from attncourse.training.loop import Trained, held_out_sentences, train
from attncourse.training.recipe import Recipe
from attncourse.training.recipes import RECIPES
from attncourse.training.sampling import sample_names, share_of_names
from attncourse.training.saving import Comparison, compare, save
from attncourse.training.sweeps import SWEEPS, Sweep

__all__ = [
    "GRID",
    "RECIPES",
    "SWEEPS",
    "Comparison",
    "Evaluation",
    "FixedWeights",
    "Recipe",
    "Sweep",
    "Trained",
    "answer_loss",
    "bigram_loss",
    "compare",
    "digest",
    "evaluate",
    "held_out_sentences",
    "pair_counts",
    "sample_names",
    "save",
    "share_of_names",
    "train",
    "uniform_loss",
    "unigram_loss",
]
