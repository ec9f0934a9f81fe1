"""Matplotlib figures of the course: heads as heatmaps, matrices, curves.

Every `plot_...` returns a `matplotlib.figure.Figure` that pyplot does not know of, so a notebook
cell shows it once, when it is the cell's last expression.
"""

# `plot_x` is in x.py: here if any page may use it, in the folder of a lesson if it illustrates
# that lesson alone. A lesson's folder lists its own figures.
from attnlib.plotting import l03, l04, l05
from attnlib.plotting.beside import plot_beside
from attnlib.plotting.heads import plot_heads
from attnlib.plotting.l03 import *
from attnlib.plotting.l04 import *
from attnlib.plotting.l05 import *
from attnlib.plotting.long_heads import plot_long_heads
from attnlib.plotting.matrices import plot_matrices
from attnlib.plotting.seed_curves import plot_seed_curves
from attnlib.plotting.style import new_figure, use_course_style
from attnlib.plotting.window import plot_window

__all__ = [
    "new_figure",
    "plot_beside",
    "plot_heads",
    "plot_long_heads",
    "plot_matrices",
    "plot_seed_curves",
    "plot_window",
    "use_course_style",
]
__all__ += l03.__all__
__all__ += l04.__all__
__all__ += l05.__all__
