"""Illustrations of lesson 3: one head, step by step."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l03.figures.lookups import plot_lookups
from attncourse.lessons.l03.figures.stages import plot_stages

__all__ = ["plot_lookups", "plot_stages"]
