"""Illustrations of lesson 11: one token on its way through a GPT."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l11.figures.packed_heads import plot_packed_heads
from attncourse.lessons.l11.figures.token_walk import plot_token_walk

__all__ = ["plot_packed_heads", "plot_token_walk"]
