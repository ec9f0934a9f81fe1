"""Illustrations of lesson 5: blocks, and the stream that runs through them."""

import attnlib.plotting  # noqa: F401  # first: it says what to install
from attncourse.lessons.l05.figures.blocks import plot_blocks
from attncourse.lessons.l05.figures.contributions import plot_contributions, stream_shares
from attncourse.lessons.l05.figures.logs import plot_logs

__all__ = ["plot_blocks", "plot_contributions", "plot_logs", "stream_shares"]
