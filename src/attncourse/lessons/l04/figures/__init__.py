"""Illustrations of lesson 4: several heads, what each reads and what each adds."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l04.figures.flow import plot_flow
from attncourse.lessons.l04.figures.origin import plot_origin
from attncourse.lessons.l04.figures.sensitivity import plot_sensitivity

__all__ = ["plot_flow", "plot_origin", "plot_sensitivity"]
