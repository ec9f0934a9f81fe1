"""Illustrations of lesson 7: what a model is made of."""

from attncourse.lessons.l07.figures.budgets import plot_budgets

__all__ = ["plot_budgets"]
