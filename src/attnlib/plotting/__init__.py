"""Matplotlib figures of the course: heads as heatmaps, matrices, curves.

Every function returns a `matplotlib.figure.Figure` that pyplot does not know of, so a notebook
cell shows it once, when it is the cell's last expression.
"""

from attnlib.plotting.heads import plot_heads
from attnlib.plotting.matrices import plot_matrices
from attnlib.plotting.style import new_figure, use_course_style

__all__ = [
    "new_figure",
    "plot_heads",
    "plot_matrices",
    "use_course_style",
]
