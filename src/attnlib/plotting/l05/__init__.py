"""Illustrations of lesson 5: blocks, and the stream that runs through them."""

from attnlib.plotting.l05.blocks import plot_blocks
from attnlib.plotting.l05.contributions import plot_contributions, stream_shares
from attnlib.plotting.l05.size_histograms import plot_size_histograms

__all__ = ["plot_blocks", "plot_contributions", "plot_size_histograms", "stream_shares"]
