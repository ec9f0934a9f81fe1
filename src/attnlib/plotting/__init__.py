"""Matplotlib figures of the course: heads as heatmaps, matrices, curves.

Every `plot_...` returns a `matplotlib.figure.Figure` that pyplot does not know of, so a notebook
cell shows it once, when it is the cell's last expression.
"""

from attnlib.plotting.beside import plot_beside
from attnlib.plotting.blocks import plot_blocks
from attnlib.plotting.contributions import plot_head_contributions
from attnlib.plotting.curves import plot_seed_curves
from attnlib.plotting.flow import plot_flow
from attnlib.plotting.heads import plot_heads
from attnlib.plotting.long_heads import plot_long_heads
from attnlib.plotting.lookups import plot_lookups
from attnlib.plotting.matrices import plot_matrices
from attnlib.plotting.ridges import plot_size_histograms
from attnlib.plotting.sensitivity import plot_sensitivity
from attnlib.plotting.shapes import plot_origin
from attnlib.plotting.stages import plot_stages
from attnlib.plotting.streams import plot_contributions, stream_shares
from attnlib.plotting.style import new_figure, use_course_style
from attnlib.plotting.window import plot_window

__all__ = [
    "new_figure",
    "plot_beside",
    "plot_blocks",
    "plot_contributions",
    "plot_flow",
    "plot_head_contributions",
    "plot_heads",
    "plot_long_heads",
    "plot_lookups",
    "plot_matrices",
    "plot_origin",
    "plot_seed_curves",
    "plot_sensitivity",
    "plot_size_histograms",
    "plot_stages",
    "plot_window",
    "stream_shares",
    "use_course_style",
]
