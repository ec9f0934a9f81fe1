"""Illustrations of lesson 9: what one row can bring back, and two."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l09.figures.contents import plot_contents
from attncourse.lessons.l09.figures.directions import plot_directions

__all__ = ["plot_contents", "plot_directions"]
