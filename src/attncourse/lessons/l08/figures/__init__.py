"""Illustrations of lesson 8: heads scored, over several seeds."""

from attncourse.lessons.l08.figures.beside_baselines import plot_beside_baselines

__all__ = ["plot_beside_baselines"]
