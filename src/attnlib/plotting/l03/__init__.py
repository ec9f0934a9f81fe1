"""Illustrations of lesson 3: one head, step by step."""

from attnlib.plotting.l03.lookups import plot_lookups
from attnlib.plotting.l03.stages import plot_stages

__all__ = ["plot_lookups", "plot_stages"]
