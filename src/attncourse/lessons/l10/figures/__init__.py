"""Illustrations of lesson 10: what caches take."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l10.figures.cache_sizes import plot_cache_sizes

__all__ = ["plot_cache_sizes"]
