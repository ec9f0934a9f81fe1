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
from attnlib.plotting.l03.lookups import plot_lookups
from attnlib.plotting.l03.stages import plot_stages
from attnlib.plotting.l04.flow import plot_flow
from attnlib.plotting.l04.head_contributions import plot_head_contributions
from attnlib.plotting.l04.origin import plot_origin
from attnlib.plotting.l04.sensitivity import plot_sensitivity
from attnlib.plotting.l05.blocks import plot_blocks
from attnlib.plotting.l05.contributions import plot_contributions, stream_shares
from attnlib.plotting.l05.logs import plot_logs
from attnlib.plotting.l05.size_histograms import plot_size_histograms
from attnlib.plotting.l07.budgets import plot_budgets
from attnlib.plotting.l08.beside_baselines import plot_beside_baselines
from attnlib.plotting.l09.contents import plot_contents
from attnlib.plotting.l09.directions import plot_directions
from attnlib.plotting.l10.cache_sizes import plot_cache_sizes
from attnlib.plotting.l10.head_shards import plot_head_shards
from attnlib.plotting.l11.packed_heads import plot_packed_heads
from attnlib.plotting.l11.token_walk import plot_token_walk
from attnlib.plotting.long_heads import plot_long_heads
from attnlib.plotting.matrices import plot_matrices
from attnlib.plotting.model import plot_model
from attnlib.plotting.seed_curves import plot_seed_curves
from attnlib.plotting.style import new_figure, use_course_style
from attnlib.plotting.window import plot_window

__all__ = [
    "new_figure",
    "plot_beside",
    "plot_beside_baselines",
    "plot_blocks",
    "plot_budgets",
    "plot_cache_sizes",
    "plot_contents",
    "plot_contributions",
    "plot_directions",
    "plot_flow",
    "plot_head_atlas",
    "plot_head_contributions",
    "plot_head_shards",
    "plot_heads",
    "plot_logs",
    "plot_long_heads",
    "plot_lookups",
    "plot_matrices",
    "plot_model",
    "plot_origin",
    "plot_packed_heads",
    "plot_seed_curves",
    "plot_sensitivity",
    "plot_size_histograms",
    "plot_stages",
    "plot_token_walk",
    "plot_window",
    "stream_shares",
    "use_course_style",
]
