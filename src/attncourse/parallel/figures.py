"""An illustration of heads over several devices."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.parallel.head_shards import plot_head_shards

__all__ = ["plot_head_shards"]
