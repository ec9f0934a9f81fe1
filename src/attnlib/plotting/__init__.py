"""Matplotlib figures of the course: heads as heatmaps, matrices, curves.

Every `plot_...` returns a `matplotlib.figure.Figure` that pyplot does not know of, so a notebook
cell shows it once, when it is the cell's last expression. A notebook then keeps a second drawing
beside it, for phones.
"""

# `plot_x` is in x.py: here if any page may use it, in the folder of a lesson if it illustrates
# that lesson alone.
from attnlib.plotting.beside import plot_beside
from attnlib.plotting.head_atlas import plot_head_atlas
from attnlib.plotting.heads import plot_heads
from attnlib.plotting.long_heads import plot_long_heads
from attnlib.plotting.matrices import plot_matrices
from attnlib.plotting.model import plot_model
from attnlib.plotting.seed_curves import plot_seed_curves
from attnlib.plotting.style import new_figure, use_course_style
from attnlib.plotting.window import plot_window

__all__ = [
    "new_figure",
    "plot_beside",
    "plot_head_atlas",
    "plot_heads",
    "plot_long_heads",
    "plot_matrices",
    "plot_model",
    "plot_seed_curves",
    "plot_window",
    "use_course_style",
]
