"""Illustrations of lesson 10: what caches take, and a layer's heads on several devices."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l10.figures.cache_sizes import plot_cache_sizes
from attncourse.lessons.l10.figures.head_shards import plot_head_shards

__all__ = ["plot_cache_sizes", "plot_head_shards"]
