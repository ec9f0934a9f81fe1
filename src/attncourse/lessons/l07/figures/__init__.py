"""Illustrations of lesson 7: what a model is made of."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l07.figures.budgets import plot_budgets

__all__ = ["plot_budgets"]
