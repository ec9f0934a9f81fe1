"""Matplotlib figures: heads as heatmaps, matrices, curves.

Every `plot_...` returns a `matplotlib.figure.Figure` that isn't registered with pyplot, so a
notebook shows it once, as the last expression of a cell. The notebook also stores a narrow copy for
phones.
"""

from importlib.util import find_spec

if find_spec("matplotlib") is None:
    raise ImportError("attnlib.plotting needs matplotlib: pip install 'attnlib[plotting]'")

# `plot_x` is in x.py; figures of single lessons are in attncourse.lessons.lNN.figures.
from attnlib.plotting.beside import plot_beside
from attnlib.plotting.head_atlas import plot_head_atlas
from attnlib.plotting.heads import plot_heads
from attnlib.plotting.long_heads import plot_long_heads
from attnlib.plotting.matrices import plot_matrices
from attnlib.plotting.model import plot_model
from attnlib.plotting.seed_curves import plot_seed_curves
from attnlib.plotting.style import new_figure, use_course_style

__all__ = [
    "new_figure",
    "plot_beside",
    "plot_head_atlas",
    "plot_heads",
    "plot_long_heads",
    "plot_matrices",
    "plot_model",
    "plot_seed_curves",
    "use_course_style",
]
