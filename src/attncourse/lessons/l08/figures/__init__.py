"""Illustrations of lesson 8: heads scored, over several seeds."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l08.figures.beside_baselines import plot_beside_baselines

__all__ = ["plot_beside_baselines"]
